#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "hw/loop/load_path.h"
#include "hw/loop/loop_types.h"

namespace systole::hw::loop {

/// What the execute path has to know of the machine.
struct ArrayShape {
  std::uint32_t side = 16;
  std::uint32_t queue = 8;        ///< commands that wait at the controller
  std::uint32_t read_stages = 4;  ///< of a bank of the scratchpad, after the cycle of the read
  std::uint32_t scratchpad_bank_rows = 4096, accumulator_bank_rows = 512;
  /// From a row at the array's edge to its sums at the accumulator: one cycle a row of the array,
  /// one after the last, and the skew of the columns.
  [[nodiscard]] std::uint32_t latency() const { return 2 * side; }
};

/// Gemmini's execute controller and its weight-stationary array.
///
/// Commands come in pairs: a preload of weights that also says where results go, and a compute that
/// streams rows of A. A compute runs together with the preload of the pair after it, if both and
/// the command after them are in the queue; else alone, as a first preload does. Each takes a row a
/// cycle: `side` rows if weights come in, else as many as A has, but four at least, so that a row
/// of the accumulator is not added to again before the sum has reached it. A and the weights read
/// their rows from the scratchpad; a bank that takes a row from memory in this cycle, or both
/// operands in one bank, cost a cycle (A first). At most six commands are in the array.
class ExecutePath {
 public:
  explicit ExecutePath(const ArrayShape& shape) : shape_(shape), queue_(shape.queue) {}

  [[nodiscard]] bool accepts() const { return !incoming_.full(); }
  void push(const Command& command) { incoming_.push(command); }

  /// First: sums that reach the accumulator in this cycle.
  void land(AccumulatorWrites& writes);
  /// A command that has ended in this cycle: its entry in the station.
  [[nodiscard]] std::optional<std::uint16_t> done() const noexcept { return done_; }
  /// `scratchpad_banks`: those that take a row from memory in this cycle (bits).
  void step(std::uint32_t scratchpad_banks);
  /// Nothing has happened for so many cycles.
  void skip(std::uint64_t cycles) { cycle_ += cycles; }
  [[nodiscard]] bool busy() const { return !results_.empty() || !queue_.empty() || streaming_; }

  struct Counts {
    std::uint64_t rows = 0;          ///< that entered the array
    std::uint64_t conflicts = 0;     ///< cycles in which a row waited for its bank
    std::uint64_t operand_rows = 0;  ///< read from the scratchpad
    std::uint64_t sums = 0;          ///< rows of sums that reached the accumulator
    std::uint64_t accumulated = 0;   ///< of these, added to what was there
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Tag {
    bool garbage = true;
    bool accumulate = false;
    std::optional<std::uint16_t> slot;
    std::uint32_t row = 0, rows = 0;
  };
  /// A row in flight from the controller to the array.
  struct Control {
    bool a = false, weights = false, zeros = false;  ///< operands that are part of it
    bool first = false;                              ///< of its command
    bool reads_a = false, reads_weights = false;
    std::uint64_t ready = 0;  ///< cycle at which what it reads has come
    std::uint32_t rows = 0;   ///< of the command
    Tag tag;
  };
  struct Result {
    std::uint64_t cycle;
    Tag tag;
    std::uint32_t row;
    bool last;
  };
  enum class Work : std::uint8_t { kNone, kPreload, kBoth, kCompute };

  void enter_array();
  [[nodiscard]] Work choose();
  void read_row(Work work, std::uint32_t scratchpad_banks, bool accepts);
  void finish(Work work);
  [[nodiscard]] bool computing() const;

  static constexpr std::size_t kMostQueued = 32;
  static constexpr std::uint32_t kFewestRows = 4;
  static constexpr std::uint32_t kCommandsInArray = 6;

  const ArrayShape shape_;
  std::uint64_t cycle_ = 0;
  Fifo<Command, 2> incoming_;
  Fifo<Command, kMostQueued> queue_;
  Work work_ = Work::kNone;
  // Rows of A, of the weights and of the operand that is always zero, and whether any was read.
  std::uint32_t a_ = 0, weights_ = 0, zeros_ = 0;
  bool a_begun_ = false, weights_begun_ = false, zeros_begun_ = false;
  std::array<std::optional<std::uint16_t>, 2> ended_;  ///< not reported yet
  std::uint32_t pops_ = 0;
  Fifo<Control, 8> controls_;
  std::size_t control_entries() const { return shape_.read_stages + 1; }
  bool popped_control_ = false, controls_full_ = false;
  // At the array's edge.
  bool streaming_ = false;  ///< a command's rows enter
  std::uint32_t stream_rows_ = 0, entered_ = 0;
  bool a_here_ = false, weights_here_ = false, zeros_here_ = false;
  Tag current_, next_;
  std::uint32_t in_array_ = 0;
  std::deque<Result> results_;
  std::optional<std::uint16_t> done_;
  Counts counts_;
};

}  // namespace systole::hw::loop
