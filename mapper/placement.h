#pragma once

#include <cstdint>
#include <vector>

#include "hw/machine.h"
#include "mapper/fusion.h"
#include "model/graph.h"

namespace systole::mapper {

/// Where a tensor lives.
struct Location {
  enum class Place : std::uint8_t {
    kNowhere,     ///< fused away, or a weight, which stands in DRAM tile by tile
    kDram,        ///< `address` in bytes
    kScratchpad,  ///< `address` in bytes
    kStatistics,  ///< `address` in words
  };
  Place place = Place::kNowhere;
  std::uint64_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes between rows
};

struct Placement {
  std::vector<Location> tensors;  ///< by TensorId
  std::uint64_t dram_end = 0;     ///< first free byte behind them
  /// By group: first byte of the scratchpad that streams its tiles, above the tensors that are
  /// alive then.
  std::vector<std::uint64_t> stream_begins;
};

/// Rows in DRAM begin at multiples of this, so that they split into few requests.
inline constexpr std::uint32_t kDramRowAlignment = 64;

/// Decides what stays on chip: tensors that only matmuls read stay in the scratchpad, whole, while
/// they live, as long as half of it is left for streaming tiles; with mapper.on_chip = 0 none do.
/// Everything else has a place in DRAM. Tensors whose lives do not meet share addresses. Throws
/// InputError when the row statistics do not fit, std::invalid_argument when they are no
/// activation.
[[nodiscard]] Placement place_tensors(const model::Graph& graph, const std::vector<Group>& groups,
                                      const hw::Machine& machine);

}  // namespace systole::mapper
