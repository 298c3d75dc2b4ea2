#include "model/network/network_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "model/network/network_shapes.h"

namespace systole::model {
namespace {

std::uint64_t type_bytes(std::string_view type) {
  if (type == "i64") return 8;
  if (type == "f32" || type == "s32") return 4;
  return type == "s16" ? 2 : 1;
}

NetworkShape filled(NetworkShape shape, std::uint32_t tokens) {
  std::replace(shape.begin(), shape.end(), kTokens, std::int64_t{tokens});
  return shape;
}

std::uint32_t positions_of(const NetworkFile& file, const NetworkNode& node) {
  return static_cast<std::uint32_t>(file.shape_of(node.inputs[0])[0] -
                                    node.attributes.at("offset").get<std::int64_t>());
}

/// A label in the language of dot.
std::string dot_text(const std::string& text) {
  std::string quoted;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted;
}

}  // namespace

std::vector<NodeCounts> count_network(const NetworkFile& file, std::uint32_t tokens) {
  std::vector<NodeCounts> counts;
  std::set<std::string> counted;
  for (const NetworkNode& node : file.document().nodes) {
    if (node.is("positions") && tokens > positions_of(file, node)) {
      file.fail(node, fmt::format("{} positions, fewer than {} tokens", positions_of(file, node),
                                  tokens));
    }
    NodeCounts row;
    row.node = &node;
    row.result = filled(file.shape_of(node.output), tokens);
    std::vector<NetworkShape> operands;
    for (const std::string& input : node.inputs) {
      operands.push_back(filled(file.shape_of(input), tokens));
      if (!file.constants().has(input) || !counted.insert(input).second) continue;
      row.constant_bytes += file.constants().tensor(input).bytes;
      const auto entry = file.document().tensors.find(input);
      if (entry != file.document().tensors.end() && entry->second.scale->axis) {
        row.constant_bytes += file.constants().tensor(entry->second.scale->values).bytes;
      }
    }
    row.macs = node_macs(node, operands, row.result);
    row.result_bytes = type_bytes(file.document().tensors.at(node.output).type);
    for (const std::int64_t size : row.result) {
      row.result_bytes *= static_cast<std::uint64_t>(size);
    }
    counts.push_back(std::move(row));
  }
  return counts;
}

bool has_open_tokens(const NetworkFile& file) {
  const auto& tensors = file.document().tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
    const NetworkShape& shape = entry.second.shape;
    return std::find(shape.begin(), shape.end(), kTokens) != shape.end();
  });
}

std::optional<std::uint32_t> most_tokens(const NetworkFile& file) {
  std::optional<std::uint32_t> most;
  for (const NetworkNode& node : file.document().nodes) {
    if (node.is("rope") && node.attributes.contains("positions")) {
      most =
          std::min(most.value_or(UINT32_MAX), node.attributes.at("positions").get<std::uint32_t>());
    }
    if (!node.is("positions")) continue;
    most = std::min(most.value_or(UINT32_MAX), positions_of(file, node));
  }
  return most;
}

std::string network_dot(const NetworkFile& file) {
  const NetworkDocument& document = file.document();
  std::string text = fmt::format(
      "digraph \"{}\" {{\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n"
      "  edge [fontname=\"sans-serif\", fontsize=8];\n",
      dot_text(document.name));
  const auto label = [&](const std::string& value) {
    const NetworkTensor& tensor = document.tensors.at(value);
    return fmt::format("{} {}", tensor.type, network_shape_text(tensor.shape));
  };
  for (const std::string& input : document.inputs) {
    text += fmt::format("  \"value {0}\" [label=\"{0}\", shape=ellipse];\n", dot_text(input));
  }
  for (const NetworkNode& node : document.nodes) {
    text += fmt::format("  \"value {}\" [label=\"{}\\n{}\"];\n", dot_text(node.output),
                        node.op->name, dot_text(node.name));
    for (const std::string& input : node.inputs) {
      if (file.constants().has(input)) continue;
      text += fmt::format("  \"value {}\" -> \"value {}\" [label=\"{}\"];\n", dot_text(input),
                          dot_text(node.output), label(input));
    }
  }
  return text + "}\n";
}

}  // namespace systole::model
