#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::hw {

/// How a port cuts a run of bytes into requests.
struct RequestCut {
  std::uint64_t request_bytes = 64;  ///< none crosses a multiple of it
  std::uint64_t row_bytes = 0;       ///< nor one of this from the run's begin on; 0: whole runs

  explicit RequestCut(const Machine::Dma& dma)
      : request_bytes(dma.request_bytes), row_bytes(dma.row_bytes) {}
  /// Whole runs.
  explicit constexpr RequestCut(std::uint64_t bytes) : request_bytes(bytes) {}

  /// Bytes of the request that begins `at` bytes into a run of `bytes` from `address` on.
  [[nodiscard]] std::uint64_t length(std::uint64_t address, std::uint64_t at,
                                     std::uint64_t bytes) const {
    const std::uint64_t boundary = request_bytes - (address + at) % request_bytes;
    const std::uint64_t piece = row_bytes == 0 ? bytes : row_bytes - at % row_bytes;
    return std::min({boundary, piece, bytes - at});
  }

  /// Calls `request(at, length)` for each of them.
  template <typename Request>
  void for_each(std::uint64_t address, std::uint64_t bytes, Request request) const {
    for (std::uint64_t at = 0; at < bytes;) {
      // Only the first has to find its boundary, unless rows have others. Saves a division.
      const std::uint64_t next = at == 0 || row_bytes != 0 ? length(address, at, bytes)
                                                           : std::min(request_bytes, bytes - at);
      request(at, next);
      at += next;
    }
  }
};

/// What the host moves on its bus in one request.
inline constexpr std::uint32_t kHostLineBytes = 64;
inline constexpr RequestCut kHostLines{kHostLineBytes};

}  // namespace systole::hw
