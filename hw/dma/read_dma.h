#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "hw/dma/request_cut.h"
#include "hw/machine/machine.h"

/// The cycle contract of a DMA port that reads rows of bytes from memory: which requests it makes,
/// and when. rtl/dma/systole_read_dma.sv meets it; tlm/dma/request_dma.h spends it.
namespace systole::hw {

/// What a port is built for.
struct ReadParams {
  RequestCut cut;
  std::uint32_t outstanding;  ///< requests in flight
  SlotOrder slots;
  std::uint32_t commands;  ///< in flight: how many the port can tell apart
};

/// A command of a port: `rows` rows of `bytes` bytes, at least one each, `pitch` apart in memory
/// and `to_pitch` apart where they go.
struct RowRead {
  std::uint64_t address = 0, pitch = 0, rows = 1, bytes = 1;
  std::uint64_t to = 0, to_pitch = 0;
  std::uint64_t arrival = 0;  ///< cycle from which the port can start it
  bool sums = false;          ///< they go to the accumulator
};

struct ReadRequest {
  std::size_t command = 0;  ///< position
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t to = 0;  ///< of its first byte
  std::uint64_t issued = 0;
  std::uint64_t done = 0;  ///< cycle with which its last byte is there
  bool sums = false;       ///< as those of its command
};

struct ReadTimes {
  std::uint64_t started = 0;
  std::uint64_t released = 0;   ///< the port can start another one: its last request was before it
  std::uint64_t completed = 0;  ///< all bytes are in their places
};

struct ReadSchedule {
  std::vector<ReadRequest> requests;  ///< in the order of issue
  std::vector<ReadTimes> times;       ///< by command
};

/// What is at the other side of a port.
struct ReadMemory {
  /// Whether it takes a request in a cycle. There has to be one again and again.
  std::function<bool(std::uint64_t cycle)> takes;
  /// The cycle with which a request is done, whose other fields say what it is: later than its
  /// issue. Called once for each, in their order.
  std::function<std::uint64_t(const ReadRequest& request)> done;
  /// The cycle with which the bytes of a request are in the accumulator that is done, later than
  /// that. Where it is empty, and of bytes for the scratchpad, it is the same cycle.
  std::function<std::uint64_t(const ReadRequest& request)> placed = {};
};

/// A port that runs commands. A command's first request issues in the cycle of its start at the
/// earliest, the others one a cycle, each when the memory takes it and it has a slot: that of the
/// request `outstanding` before it, or any that is free, as `slots` says. A slot is free from the
/// cycle with which the bytes of its request are in their places.
class ReadPort {
 public:
  ReadPort(const ReadParams& params, ReadMemory memory)
      : params_(params), memory_(std::move(memory)), slots_(params.outstanding, 0) {}

  /// Runs a command that starts in cycle `started`, at which the port must be free. Adds its
  /// requests to `requests`.
  ReadTimes run(const RowRead& command, std::size_t position, std::uint64_t started,
                std::vector<ReadRequest>& requests);

 private:
  [[nodiscard]] std::size_t next_slot() const;

  const ReadParams params_;
  const ReadMemory memory_;
  std::vector<std::uint64_t> slots_;  ///< cycle from which each is free
  std::size_t issued_ = 0;
};

/// Runs commands in order: one starts when the port is free, from its arrival on, when fewer than
/// `commands` are in flight.
[[nodiscard]] ReadSchedule read_schedule(const std::vector<RowRead>& commands,
                                         const ReadParams& params, const ReadMemory& memory);

/// Bytes of a beat that are written into the local memory.
struct LocalWrite {
  std::uint64_t cycle = 0, to = 0, bytes = 0;
  std::uint64_t from = 0;  ///< address of the first
  bool sums = false;       ///< as those of its request
};
/// The writes of a request whose beats of `beat_bytes` come one a cycle up to its end: a beat has
/// the bytes up to the next multiple of that.
[[nodiscard]] std::vector<LocalWrite> local_writes(const ReadRequest& request,
                                                   std::uint64_t beat_bytes);

}  // namespace systole::hw
