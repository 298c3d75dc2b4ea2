#include "model/network/network_walk.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "model/format/safetensors_entries.h"

namespace systole::model {

const NetworkNode& NetworkWalk::before(const NetworkNode& reader, std::string_view op,
                                       std::size_t index) const {
  const std::string& value = reader.inputs.at(index);
  const NetworkNode* const node = file_.producer(value);
  if (node != nullptr && node->is(op)) return *node;
  file_.fail(reader, fmt::format("input {}: is {}, expected the output of {}: no network that is "
                                 "known",
                                 in_quotes(value),
                                 node == nullptr ? "a graph input"
                                                 : "the output of " + std::string(node->op->name),
                                 op));
}

const NetworkNode& NetworkWalk::last() const {
  const std::vector<std::string>& outputs = file_.document().outputs;
  const NetworkNode& node = *file_.producer(outputs.front());
  if (outputs.size() != 1) file_.fail(node, "the network has more outputs, expected one");
  return node;
}

NetworkWalk::Sum NetworkWalk::sum(const NetworkNode& add) const {
  if (!add.is("add")) file_.fail(add, "expected an add");
  const std::string &a = add.inputs[0], &b = add.inputs[1];
  if (made_by(b, "linear")) return {a, file_.producer(b)};
  if (!file_.document().is_integer() && made_by(a, "linear")) return {b, file_.producer(a)};
  file_.fail(add, "input 'b': expected the output of linear");
}

void NetworkWalk::require_same_input(const NetworkNode& node, const std::string& value) const {
  if (node.inputs[0] == value) return;
  file_.fail(node, fmt::format("input {}: expected {}, as in a Transformer block",
                               in_quotes(node.inputs[0]), in_quotes(value)));
}

NetworkWalk::Ending NetworkWalk::ending(const std::string& value) const {
  const NetworkNode* node = file_.producer(value);
  const bool norm = node != nullptr && node->is("layer_norm");
  if (norm) node = file_.producer(node->inputs[0]);
  if (node == nullptr || !node->is("add")) return {};
  for (const std::string& operand : node->inputs) {
    if (!made_by(operand, "linear")) continue;
    const NetworkNode& fc2 = *file_.producer(operand);
    const std::string& activated = coded(fc2).inputs[0];
    if (!made_by(activated, "gelu")) continue;
    if (!norm) return {true, false};
    // The LayerNorm is the block's own if the MLP reads the residual stream itself; else it is that
    // after the last block.
    const NetworkNode* const fc1 = file_.producer(file_.producer(activated)->inputs[0]);
    const std::string& identity = operand == node->inputs[0] ? node->inputs[1] : node->inputs[0];
    if (fc1 != nullptr && !fc1->inputs.empty() && coded(*fc1).inputs[0] == identity) {
      return {true, true};
    }
  }
  return {};
}

hw::Dyadic factor_of(const NetworkNode& node, const char* key) {
  const auto pair = node.attributes.at(key).get<std::vector<std::int32_t>>();
  return {pair.at(0), static_cast<std::int8_t>(pair.at(1))};
}

hw::GeluConstants gelu_of(const NetworkNode& node) {
  const auto number = [&](const char* key) { return node.attributes.at(key).get<std::int64_t>(); };
  return {number("b"), number("c"), number("one"), factor_of(node, "factor")};
}

std::uint32_t columns_of(const NetworkFile& file, const std::string& value) {
  return static_cast<std::uint32_t>(file.shape_of(value).back());
}

std::uint32_t rows_of_constant(const NetworkFile& file, const std::string& constant) {
  return static_cast<std::uint32_t>(file.constants().tensor(constant).shape.front());
}

}  // namespace systole::model
