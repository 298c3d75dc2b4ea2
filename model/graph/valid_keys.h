#pragma once

#include <cstdint>
#include <functional>

#include "model/graph/graph.h"

namespace systole::model {

/// Narrows every attention of a graph to the first `keys` rows of its keys and values, by the views
/// of its operators: scores and probabilities have so many columns. The tensors stay as they are,
/// so another call widens it again. Whatever multiplies by a tensor that is no constant counts as
/// attention, unless no node writes it: keys of another text are as many as they are.
void attend_to_keys(Graph& graph, std::uint32_t keys);
/// The same for the products of queries and keys, or probabilities and values, that `narrows`
/// names.
void attend_to_keys(Graph& graph, std::uint32_t keys,
                    const std::function<bool(const Node&)>& narrows);

}  // namespace systole::model
