#include "model/graph/graph_builder.h"

#include <stdexcept>
#include <utility>

#include "hw/number/int4.h"

namespace systole::model {

TensorId find_tensor(const Graph& graph, std::string_view name) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return static_cast<TensorId>(i);
  }
  throw std::out_of_range("graph '" + graph.name + "' has no tensor '" + std::string(name) + "'");
}

std::uint64_t count_macs(const Graph& graph) {
  std::uint64_t macs = 0;
  for (const Node& node : graph.nodes) macs += node.macs();
  return macs;
}

TensorId GraphBuilder::add_tensor(Tensor tensor) {
  graph_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(graph_.tensors.size() - 1);
}

View GraphBuilder::whole(TensorId id) const {
  const Tensor& tensor = graph_.tensors[id];
  return {id, 0, 0, tensor.rows, tensor.cols};
}

View GraphBuilder::matmul(const std::string& name, View a, View b, bool b_transposed) {
  Tensor out;
  out.name = name;
  out.rows = a.rows;
  out.cols = b_transposed ? b.rows : b.cols;
  out.type = hw::DType::kS32;
  Node node;
  node.name = name;
  node.in = a;
  node.op = Product{b, b_transposed};
  node.out = whole(add_tensor(std::move(out)));
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().out;
}

View GraphBuilder::convolution(const std::string& name, View picture, const hw::Window& window,
                               View b, std::uint32_t groups) {
  const View out = matmul(name, picture, b, false);
  Node& node = graph_.nodes.back();
  node.window = window;
  node.product()->groups = groups;
  graph_.tensors[out.tensor].rows = node.out.rows = node.in_rows();
  return node.out;
}

View GraphBuilder::pooling(const std::string& name, View picture, const hw::Window& window,
                           const hw::Stage& stage, hw::DType type) {
  const View out = this->stage(name, picture, stage, type);
  Node& node = graph_.nodes.back();
  node.window = window;
  graph_.tensors[out.tensor].rows = node.out.rows = node.in_rows();
  return node.out;
}

View GraphBuilder::stage(const std::string& name, View in, const hw::Stage& stage, hw::DType type,
                         StageOperands operands) {
  Tensor out;
  out.name = name;
  out.rows = in.rows;
  out.cols = in.cols;
  out.type = type;
  out.int4 = type == hw::DType::kS8 &&
             (hw::clamps_to(stage, {hw::kLeastInt4, hw::kLargestInt4}) ||
              (stage.op == hw::StageOp::kRelu && graph_.tensors[in.tensor].int4));
  const View view = whole(add_tensor(std::move(out)));
  stage_to(name, in, stage, view, std::move(operands));
  return view;
}

View GraphBuilder::host(const std::string& name, View in, hw::HostFunction function) {
  Tensor tensor;
  tensor.name = name;
  tensor.rows = in.rows;
  tensor.cols = in.cols;
  tensor.type = function.out;
  const View view = whole(add_tensor(std::move(tensor)));
  graph_.nodes.push_back({name, in, view, HostUse{std::move(function), {}, 0}, std::nullopt});
  return view;
}

void GraphBuilder::stage_to(const std::string& name, View in, const hw::Stage& stage, View out,
                            StageOperands operands) {
  Node node;
  node.name = name;
  node.in = in;
  node.op = StageUse{stage, std::move(operands.parameters), operands.tensor, operands.statistics,
                     operands.valid_cols};
  node.out = out;
  graph_.nodes.push_back(std::move(node));
}

}  // namespace systole::model
