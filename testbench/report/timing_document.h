#pragma once

#include <nlohmann/json.hpp>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::testbench {

/// The document of `systole run` for one inference of a network, timing alone. One simulation per
/// process. Throws InputError if the machine cannot run it.
[[nodiscard]] nlohmann::ordered_json timing_document(const model::Graph& graph,
                                                     const hw::Machine& machine);

/// Cycles that the attention engines of such a run were active or held up.
[[nodiscard]] double attention_cycles_of(const nlohmann::ordered_json& network);

}  // namespace systole::testbench
