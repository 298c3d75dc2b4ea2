#include "testbench/report/report_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "model/network/network_counts.h"
#include "testbench/common/text.h"
#include "testbench/common/tool.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// Sums over the nodes of one operator.
struct OpCounts {
  std::string_view op;
  std::uint64_t nodes = 0, macs = 0, constant_bytes = 0, result_bytes = 0;

  void add(const model::NodeCounts& node) {
    ++nodes;
    macs += node.macs;
    constant_bytes += node.constant_bytes;
    result_bytes += node.result_bytes;
  }
};

std::string values_text(const model::NetworkDocument& document,
                        const std::vector<std::string>& names) {
  std::vector<std::string> values;
  for (const std::string& name : names) {
    const model::NetworkTensor& tensor = document.tensors.at(name);
    values.push_back(fmt::format("{} {} {}", hw::printable(name), tensor.type,
                                 model::network_shape_text(tensor.shape)));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

std::string network_text(const model::NetworkFile& file, std::uint32_t tokens) {
  const model::NetworkDocument& document = file.document();
  OpCounts total{"all"};
  std::vector<OpCounts> ops;
  for (const model::NetworkOp& op : model::network_ops()) ops.push_back({op.name});
  for (const model::NodeCounts& node : model::count_network(file, tokens)) {
    for (OpCounts& op : ops) {
      if (node.node->is(op.op)) op.add(node);
    }
    total.add(node);
  }
  ops.push_back(total);
  FactList facts;
  facts.add("network", document.name);
  facts.add("source", document.source);
  facts.add("numbers", document.is_integer() ? "integers" : "real");
  facts.add("input", values_text(document, document.inputs));
  facts.add("output", values_text(document, document.outputs));
  if (model::has_open_tokens(file)) facts.add("counted for", counted(tokens, "token"));
  Table table("operator | >nodes | >MACs | >constant bytes | >result bytes");
  for (const OpCounts& op : ops) {
    if (op.nodes == 0) continue;
    table.add({std::string(op.op), grouped(op.nodes), grouped(op.macs), grouped(op.constant_bytes),
               grouped(op.result_bytes)});
  }
  return facts.text() + "\n" + table.text();
}

ordered_json network_json(const model::NetworkFile& file, std::uint32_t tokens) {
  const model::NetworkDocument& document = file.document();
  OpCounts total{"all"};
  ordered_json nodes = ordered_json::array();
  for (const model::NodeCounts& node : model::count_network(file, tokens)) {
    total.add(node);
    nodes.push_back({{"name", node.node->name},
                     {"op", node.node->op->name},
                     {"shape", node.result},
                     {"macs", node.macs},
                     {"constant_bytes", node.constant_bytes},
                     {"result_bytes", node.result_bytes}});
  }
  return {{"network", document.name},
          {"source", document.source},
          {"integer", document.is_integer()},
          {"architecture", document.architecture},
          {"tokens", model::has_open_tokens(file) ? ordered_json(tokens) : ordered_json()},
          {"macs", total.macs},
          {"constant_bytes", total.constant_bytes},
          {"result_bytes", total.result_bytes},
          {"nodes", nodes}};
}

void draw_network(const model::NetworkFile& file, const std::string& path) {
  hw::AtomicFile picture(path);
  if (run_tool({"dot", "-Tsvg", "-o", picture.place_to_write()}, model::network_dot(file)) != 0) {
    throw hw::InputError("dot: could not draw " + hw::printable(path));
  }
  picture.commit();
}

}  // namespace systole::testbench
