#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/network/network_document.h"

namespace systole::testbench {

/// What a network file holds and what it costs, operator by operator, for texts of `tokens` tokens;
/// at most kTextWidth columns.
[[nodiscard]] std::string network_text(const model::NetworkFile& file, std::uint32_t tokens);

/// The same, node by node.
[[nodiscard]] nlohmann::ordered_json network_json(const model::NetworkFile& file,
                                                  std::uint32_t tokens);

/// Draws the graph with Graphviz's `dot`. Throws InputError if that is not installed or fails.
void draw_network(const model::NetworkFile& file, const std::string& path);

}  // namespace systole::testbench
