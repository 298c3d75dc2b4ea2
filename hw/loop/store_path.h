#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "hw/loop/load_path.h"
#include "hw/loop/loop_types.h"
#include "hw/loop/memory_port.h"
#include "hw/loop/tracked_commands.h"

namespace systole::hw::loop {

/// From the accumulator to memory: Gemmini's store controller, the read of a bank, its normaliser
/// (which passes through what is not normalised), the scaling pipeline and the stream writer.
///
/// The controller takes commands in order and asks for a block of a row a cycle. A bank gives a
/// block a cycle, unless the array adds to one of its rows in that cycle, or the same row was
/// written in the last two. Blocks take `scale_stages` cycles through the scaling pipeline. The
/// writer collects up to PathShape::request_bytes of a row, a block a cycle, and then sends them
/// as requests of aligned powers of two, a beat a cycle; it takes the next block with the last
/// beat. A command has ended when its last block was read from the accumulator.
class StorePath {
 public:
  StorePath(const PathShape& shape, std::uint32_t scale_stages, std::uint32_t banks,
            MemoryPort& port, Translation& translation);

  [[nodiscard]] bool accepts() const { return !queue_.full(); }
  void push(const Command& command) { queue_.push(command); }

  /// Takes an acknowledgement that has arrived.
  void acknowledge();
  /// The writer, the pipeline and the reads of the accumulator; `writes` are those of this cycle.
  /// After MemoryPort::move().
  void move(const AccumulatorWrites& writes);
  void control();
  [[nodiscard]] std::optional<std::uint16_t> done() const { return tracked_.done(); }
  void take_done() { tracked_.take_done(); }
  void end_cycle();
  /// Nothing has happened for so many cycles.
  void skip(std::uint64_t cycles) { cycle_ += cycles; }

  [[nodiscard]] bool busy() const;

  struct Counts {
    std::uint64_t blocks = 0;        ///< read from the accumulator
    std::uint64_t acknowledged = 0;  ///< writes
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Block {
    std::uint64_t address = 0;  ///< of the row of blocks that it belongs to
    std::uint32_t bytes = 0;
    std::uint32_t before = 0;  ///< bytes of the blocks before it
    bool last = false;         ///< of its row of blocks
    std::uint32_t row = 0;     ///< of the accumulator
    std::uint8_t tracked = 0;
  };
  struct Bank {
    bool has_block = false;
    std::uint64_t from = 0;                     ///< cycle from which it can be taken
    std::array<AccumulatorWrite, 2> written{};  ///< in the last two cycles
  };

  bool write_beat();
  [[nodiscard]] bool conflicts(const Bank& bank, const AccumulatorWrite& write,
                               std::uint32_t row) const;

  static constexpr std::size_t kMostQueued = 32;
  static constexpr std::size_t kNormaliserEntries = 2;

  const PathShape shape_;
  const std::uint32_t scale_stages_;
  MemoryPort& port_;
  Translation& translation_;
  std::uint64_t cycle_ = 0;
  Fifo<Command, kMostQueued> queue_;
  enum class State : std::uint8_t { kWaiting, kFirstBlock, kBlocks } state_ = State::kWaiting;
  std::uint32_t row_ = 0, block_ = 0;
  std::uint8_t current_ = 0;
  bool ends_ = false;
  Fifo<Block, 2> dispatched_;
  Fifo<Block, 6> normalising_, scaling_;
  Fifo<Block, 5> issuing_;
  bool dispatch_full_ = false;
  std::size_t normalised_ = 0;            ///< blocks in the normaliser
  std::deque<std::uint64_t> in_scaling_;  ///< cycles in which blocks leave the pipeline
  std::vector<Bank> banks_;
  // Writer.
  enum class Writer : std::uint8_t { kIdle, kNewRequest, kBeats } writer_ = Writer::kIdle;
  std::uint64_t address_ = 0;
  std::uint32_t left_ = 0;  ///< bytes of the row without a request
  std::uint32_t beats_left_ = 0;
  MemoryPort::Beat beat_;
  std::uint64_t in_flight_ = 0, in_flight_before_ = 0;  ///< bits: requests without an answer
  std::optional<MemoryPort::Beat> translating_, sending_, later_;
  std::uint64_t asked_ = 0;  ///< address
  TrackedCommands tracked_;
  std::optional<std::uint8_t> returned_;
  Counts counts_;
};

}  // namespace systole::hw::loop
