#include "reproduce/study/library_order.h"

#include <cstddef>

namespace systole::testbench {
namespace {

bool is_stage(const model::Node& node, hw::StageOp op) {
  return node.kind == model::Node::Kind::kStage && node.stage.op == op;
}

}  // namespace

model::Graph in_library_order(model::Graph graph) {
  for (std::size_t i = 0; i + 2 < graph.nodes.size(); ++i) {
    const model::Node add = graph.nodes[i], clamp = graph.nodes[i + 1], norm = graph.nodes[i + 2];
    if (!hw::is_residual(add.stage) || !is_stage(clamp, hw::StageOp::kClamp) ||
        !is_stage(norm, hw::StageOp::kLayerNorm)) {
      continue;
    }
    model::Node* const ordered = &graph.nodes[i];
    ordered[0] = norm;
    ordered[1] = add;
    ordered[2] = clamp;
    // Branch, bytes, sum, clamped sum: three tensors for what was sum, clamped sum, bytes.
    ordered[0].in = add.in;
    ordered[0].out = ordered[1].in = add.out;
    ordered[1].out = ordered[2].in = clamp.out;
    ordered[2].out = norm.out;
    graph.tensors[add.out.tensor].type = hw::DType::kS8;
    graph.tensors[clamp.out.tensor].type = hw::DType::kS32;
  }
  return graph;
}

}  // namespace systole::testbench
