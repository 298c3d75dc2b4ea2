#pragma once

#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::analysis {

/// What the rows that a DMA port moves become on their way: requests that never cross a multiple of
/// dma.request_bytes, beats of the bus, and whole bursts of the DRAM.
class PortTraffic {
 public:
  explicit PortTraffic(const hw::Machine& machine);

  /// `count` rows of `bytes`, `pitch` apart.
  void add_rows(std::uint64_t address, std::uint64_t pitch, std::uint64_t count,
                std::uint64_t bytes);

  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t beats() const { return beats_; }
  [[nodiscard]] std::uint64_t burst_bytes() const { return bursts_ * burst_; }

 private:
  /// `rows` rows that are cut in the same places.
  void add_row(std::uint64_t begin, std::uint64_t end, std::uint64_t rows);

  std::uint64_t request_, beat_, burst_;  ///< bytes
  std::uint64_t requests_ = 0, bytes_ = 0, beats_ = 0, bursts_ = 0;
};

}  // namespace systole::analysis
