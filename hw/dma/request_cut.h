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

  /// Bytes of the request that begins `at` bytes into a run of `bytes` from `address` on.
  [[nodiscard]] std::uint64_t length(std::uint64_t address, std::uint64_t at,
                                     std::uint64_t bytes) const {
    const std::uint64_t boundary = request_bytes - (address + at) % request_bytes;
    const std::uint64_t piece = row_bytes == 0 ? bytes : row_bytes - at % row_bytes;
    return std::min({boundary, piece, bytes - at});
  }
};

}  // namespace systole::hw
