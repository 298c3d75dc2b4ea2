#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/loop/loop_types.h"
#include "hw/loop/memory_port.h"
#include "hw/loop/tracked_commands.h"
#include "hw/loop/translation.h"

namespace systole::hw::loop {

/// What the load and store paths have to know of the machine.
struct PathShape {
  std::uint32_t side = 16;           ///< elements of a local row
  std::uint32_t beat_bytes = 16;     ///< of the memory port
  std::uint32_t request_bytes = 64;  ///< the largest request
  std::uint32_t in_flight = 16;      ///< requests
  std::uint32_t queue = 8;           ///< commands that wait at the controller
  std::uint32_t scratchpad_bank_rows = 4096, accumulator_bank_rows = 512;

  [[nodiscard]] std::uint32_t scratchpad_bank(std::uint32_t row) const {
    return row / scratchpad_bank_rows;
  }
  [[nodiscard]] std::uint32_t accumulator_bank(std::uint32_t row) const {
    return (row & ~kAccumulatorRow) / accumulator_bank_rows;
  }
  /// Commands that a controller has begun and not ended: one more than fill all requests with rows.
  [[nodiscard]] std::uint32_t tracked() const { return in_flight / side + 1; }
};

/// The request that moves most of the next bytes: a power of two of beats, aligned to its size.
struct Packet {
  std::uint32_t size = 0;   ///< bytes of the request
  std::uint32_t shift = 0;  ///< bytes before the first that is wanted
  std::uint32_t bytes = 0;  ///< wanted
};
[[nodiscard]] Packet largest_packet(const PathShape& shape, std::uint64_t address,
                                    std::uint32_t left);

/// A row of an accumulator bank that is written in a cycle.
struct AccumulatorWrite {
  bool any = false;
  bool accumulates = false;  ///< takes the bank's read port too
  std::uint32_t row = 0;
};
inline constexpr std::size_t kMostAccumulatorBanks = 8;
using AccumulatorWrites = std::array<AccumulatorWrite, kMostAccumulatorBanks>;

/// From memory into the local memories: Gemmini's load controller, its stream reader, the merger of
/// beats and the scaling stages.
///
/// The controller takes commands in order and asks for a row a cycle, while at most
/// PathShape::tracked() commands have begun and not ended. The reader cuts each row into requests,
/// one a cycle, as long as one of `in_flight` numbers is free; a number is free in the cycle after
/// the last beat of its answer. A request that its buffer does not take goes round once more, two
/// cycles. The merger shifts the beats of an answer and passes on a local row a cycle. Rows of the
/// scratchpad take three more cycles (scaling, repetition), rows of the accumulator one.
class LoadPath {
 public:
  LoadPath(const PathShape& shape, MemoryPort& port, Translation& translation)
      : shape_(shape),
        port_(port),
        translation_(translation),
        queue_(shape.queue),
        requests_(shape.in_flight),
        tracked_(shape.tracked()) {}

  [[nodiscard]] bool accepts() const { return !queue_.full(); }
  void push(const Command& command) { queue_.push(command); }

  /// First: rows that arrive in the banks in this cycle. Sets the banks of the scratchpad that are
  /// written (bits) and, where `writes` leaves room, those of the accumulator.
  void land(std::uint32_t& scratchpad_banks, AccumulatorWrites& writes);
  /// Takes beats that have arrived.
  void merge();
  /// Cuts rows into requests. After MemoryPort::move().
  void request();
  /// The controller.
  void control();
  /// A command that has ended: its entry in the station. `take_done()` when the station has seen
  /// it.
  [[nodiscard]] std::optional<std::uint16_t> done() const { return tracked_.done(); }
  void take_done() { tracked_.take_done(); }
  /// The end of a cycle.
  void end_cycle();

  [[nodiscard]] bool busy() const;

  struct Counts {
    std::uint64_t scratchpad_rows = 0, accumulator_rows = 0;  ///< written by loads
    std::uint64_t window_full = 0;  ///< cycles in which all requests were in flight
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct RowRequest {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    bool accumulator = false;
    std::uint32_t row = 0;
    std::uint8_t tracked = 0;
  };
  struct Request {
    bool valid = false;
    bool freed = false;  ///< in this cycle
    Packet packet;
    bool accumulator = false;
    std::uint32_t offset = 0;  ///< of its first byte in a local row
    std::uint32_t row = 0;
    std::uint8_t tracked = 0;
  };
  struct LocalRow {
    bool valid = false, last = false;
    std::uint32_t row = 0, bytes = 0;
    std::uint8_t tracked = 0;
  };

  [[nodiscard]] std::uint32_t row_bytes(bool accumulator) const {
    return shape_.side * (accumulator ? 4 : 1);
  }
  void take_first_beat();
  void pass_row(bool& popped);

  static constexpr std::size_t kMostQueued = 32;

  const PathShape shape_;
  MemoryPort& port_;
  Translation& translation_;
  Fifo<Command, kMostQueued> queue_;
  // Controller.
  enum class State : std::uint8_t { kWaiting, kFirstRow, kRows } state_ = State::kWaiting;
  std::uint32_t row_ = 0;
  std::uint8_t current_ = 0;
  bool ends_ = false;  ///< the front of the queue leaves at the end of the cycle
  Fifo<RowRequest, 5> rows_;
  bool rows_full_ = false;
  // Reader.
  bool reading_ = false;
  RowRequest read_;
  std::uint32_t read_bytes_ = 0;  ///< requested
  std::vector<Request> requests_;
  std::optional<MemoryPort::Beat> translating_, sending_;
  std::uint64_t asked_ = 0;  ///< address
  // Merger.
  bool merging_ = false;
  Request merged_;
  std::uint32_t arrived_ = 0, passed_ = 0;  ///< bytes
  // Scaling.
  LocalRow scaled_, held_, repeated_, sum_row_;
  TrackedCommands tracked_;
  std::uint32_t returned_bytes_ = 0;
  std::uint8_t returned_ = 0;
  Counts counts_;
};

}  // namespace systole::hw::loop
