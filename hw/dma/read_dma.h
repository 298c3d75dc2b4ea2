#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/machine/machine.h"

/// The cycle contract of a DMA port that reads rows of bytes from memory: which requests it makes,
/// and when. rtl/dma/systole_read_dma.sv meets it; tlm/dma/request_dma.h spends it.
namespace systole::hw {

/// How a port cuts a run of bytes into requests.
struct RequestCut {
  std::uint64_t request_bytes = 64;  ///< none crosses a multiple of it
  std::uint64_t row_bytes = 0;       ///< nor one of this from the run's begin on; 0: whole runs

  explicit RequestCut(const Machine::Dma& dma)
      : request_bytes(dma.request_bytes), row_bytes(dma.row_bytes) {}

  /// Bytes of the request that begins `at` bytes into a run of `bytes` from `address` on.
  [[nodiscard]] std::uint64_t length(std::uint64_t address, std::uint64_t at,
                                     std::uint64_t bytes) const {
    const std::uint64_t boundary = request_bytes - (address + at) % request_bytes;
    const std::uint64_t piece = row_bytes == 0 ? bytes : row_bytes - at % row_bytes;
    return std::min({boundary, piece, bytes - at});
  }
};

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
};

struct ReadRequest {
  std::size_t command = 0;  ///< position
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t to = 0;  ///< of its first byte
  std::uint64_t issued = 0;
  std::uint64_t done = 0;  ///< cycle with which its last byte is in its place
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
};

/// Runs commands in order. One starts when the port is free, from its arrival on, when fewer than
/// `commands` are in flight. Its first request issues in that cycle at the earliest, the others one
/// a cycle, each when the memory takes it and it has a slot: that of the request `outstanding`
/// before it, or any that is free, as `slots` says. A slot is free from the cycle with which its
/// request is done.
[[nodiscard]] ReadSchedule read_schedule(const std::vector<RowRead>& commands,
                                         const ReadParams& params, const ReadMemory& memory);

/// Bytes of a beat on their way into the local memory.
struct LocalWrite {
  std::uint64_t cycle = 0, to = 0, bytes = 0;
  std::uint64_t from = 0;  ///< address of the first
};
/// The writes of a request whose beats of `beat_bytes` come one a cycle up to its end: a beat has
/// the bytes up to the next multiple of that.
[[nodiscard]] std::vector<LocalWrite> local_writes(const ReadRequest& request,
                                                   std::uint64_t beat_bytes);

}  // namespace systole::hw
