#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "mapper/mapping.h"
#include "model/graph/graph.h"

/// What became of every operator of a graph: `systole map --explain`.
namespace systole::testbench {

/// A row per operator of the graph, in its order: the operator of the program that it runs in, its
/// place there, and why it runs by itself or what decided. At most kTextWidth columns.
[[nodiscard]] std::string fusion_text(const model::Graph& graph, const mapper::Mapping& mapping);
/// `passes`, `loop_trips`, `accesses` and `operators`, as docs/cli.md describes them.
[[nodiscard]] nlohmann::ordered_json fusion_json(const model::Graph& graph,
                                                 const mapper::Mapping& mapping);

}  // namespace systole::testbench
