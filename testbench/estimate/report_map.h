#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "testbench/run/mapping_search.h"

namespace systole::testbench {

/// What the mapper decided for one operator.
struct OperatorSummary {
  std::string name;
  std::uint32_t m = 0, n = 0, k = 0;  ///< k is 0 without a matmul
  std::uint32_t tile_m = 0, tile_n = 0, tile_k = 0;
  std::uint64_t tiles = 0;  ///< of its result
  std::uint64_t commands = 0;
  std::uint64_t cycles = 0;  ///< expected, alone
  std::uint64_t load_bytes = 0;
  bool on_chip = false;  ///< the result stays in the scratchpad
  std::vector<std::string> stages;
};

[[nodiscard]] std::vector<OperatorSummary> summarise(const mapper::Mapping& mapping);

/// At most kTextWidth columns. `files` have been written (empty names aside).
[[nodiscard]] std::string mapping_text(const std::string& model, const std::string& machine,
                                       const mapper::Mapping& mapping,
                                       const std::vector<std::string>& files);
[[nodiscard]] nlohmann::ordered_json mapping_json(const std::string& model,
                                                  const std::string& machine,
                                                  const mapper::Mapping& mapping);

/// A row per operator of the graph, in its order: the operator of the program that it runs in, its
/// place there, and why it runs by itself or what decided. At most kTextWidth columns.
[[nodiscard]] std::string fusion_text(const model::Graph& graph, const mapper::Mapping& mapping);
/// `passes`, `loop_trips`, `accesses` and `operators`, as docs/cli.md describes them.
[[nodiscard]] nlohmann::ordered_json fusion_json(const model::Graph& graph,
                                                 const mapper::Mapping& mapping);

/// At most kTextWidth columns.
[[nodiscard]] std::string search_text(const MappingSearch& search);
[[nodiscard]] nlohmann::ordered_json search_json(const MappingSearch& search);

}  // namespace systole::testbench
