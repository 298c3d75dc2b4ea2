#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::testbench {

/// What a mapping takes.
struct MappingCost {
  double cycles = 0;  ///< of the core
  double joules = 0;
};

/// One way to map a network.
struct MappingCandidate {
  hw::Machine::Mapper mapper;
  std::uint64_t tried = 0;  ///< tilings that were compared for it
  MappingCost expected;     ///< sums over its operators
  std::optional<MappingCost> simulated;

  /// "cost", "search cycles", "search energy", "search edp".
  [[nodiscard]] std::string strategy_name() const;
  /// The value of mapper.fusion.
  [[nodiscard]] std::string_view fusion_name() const;
};

struct MappingSearch {
  hw::MappingObjective objective;
  std::vector<MappingCandidate> candidates;  ///< by expected objective, least first
  std::size_t best = 0;

  [[nodiscard]] double value(const MappingCost& cost) const;
  [[nodiscard]] const MappingCandidate& chosen() const { return candidates[best]; }
};

/// Maps the network by mapper.strategy `cost` and `search`, for the product of energy and delay
/// with every objective, each with all fusion levels up to the machine's. The best `confirm` by the
/// expected objective are simulated without values, each in a separate process, and the mapping
/// by cost with the machine's fusion level with them: the best is the one with the least simulated
/// objective, so never a worse one than that. With `confirm` 0 it is the one that is expected to
/// be. Mappings with the same program are one. The process must have one thread.
/// Throws InputError if the machine cannot run the network.
[[nodiscard]] MappingSearch search_mappings(const model::Graph& graph, const hw::Machine& machine,
                                            std::size_t confirm);

}  // namespace systole::testbench
