#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/program/window.h"
#include "model/network/network_document.h"

namespace systole::model {

/// The attribute `padding` of a checked node: a number for all sides, a list of four, or none.
[[nodiscard]] hw::Padding padding_of(const NetworkNode& node);

/// The shape of a node's result from those of its operands, in the order of `node.inputs`. Calls
/// `fail` with what is wrong if they do not go together; `fail` does not return.
[[nodiscard]] NetworkShape result_shape(const NetworkNode& node,
                                        const std::vector<NetworkShape>& operands,
                                        const std::function<void(const std::string&)>& fail);

/// Multiply-accumulates of a node whose operands and result have these shapes, kTokens replaced.
[[nodiscard]] std::uint64_t node_macs(const NetworkNode& node,
                                      const std::vector<NetworkShape>& operands,
                                      const NetworkShape& result);

}  // namespace systole::model
