#include <algorithm>

#include "model/build/llama_graph.h"
#include "model/graph/valid_keys.h"

namespace systole::model {

void move_llama_to_chunk(Graph& graph, std::uint32_t first, std::uint32_t count) {
  attend_to_keys(graph, first + count);
  // Of tensors with a row for each token of a chunk; those of the last token alone stay.
  const std::uint32_t chunk =
      std::find_if(graph.tensors.begin(), graph.tensors.end(), [](const Tensor& tensor) {
        return tensor.kind == Tensor::Kind::kInput;
      })->rows;
  const auto cut = [&](View& view) {
    if (view.tensor == kNoTensor) return;
    const Tensor& tensor = graph.tensors[view.tensor];
    const bool per_token =
        tensor.kind != Tensor::Kind::kConstant && tensor.kind != Tensor::Kind::kState;
    if (per_token && tensor.rows == chunk) view.rows = count;
  };
  for (Node& node : graph.nodes) {
    const bool picks_last =
        graph.tensors[node.in.tensor].rows == chunk && graph.tensors[node.out.tensor].rows == 1;
    if (picks_last) {
      node.in.row = count - 1;
      continue;
    }
    cut(node.in);
    cut(node.out);
    if (graph.tensors[node.out.tensor].kind == Tensor::Kind::kState) {
      node.out.row = first;
      node.out.rows = count;
    }
    StageUse* const use = node.stage();
    if (use == nullptr) continue;
    cut(use->tensor);
    if (node.is(hw::StageOp::kRope)) {
      use->tensor.row = first;
      use->tensor.rows = count;
    }
    if (use->valid_cols != 0) use->valid_cols = first + 1;
  }
}

void move_llama_to_token(Graph& graph, const LlamaShape& shape, std::uint32_t token) {
  const std::uint32_t keys = shape.window == 0 ? token + 1 : std::min(token + 1, shape.window);
  attend_to_keys(graph, keys);
  for (Node& node : graph.nodes) {
    if (graph.tensors[node.out.tensor].kind == Tensor::Kind::kState) node.out.row = token;
    if (node.is(hw::StageOp::kRope)) node.stage()->tensor.row = token * node.out.rows;
    if (Product* const product = node.product()) {
      const bool cached = graph.tensors[product->b.tensor].kind == Tensor::Kind::kState;
      if (cached) product->b.row = token + 1 - keys;
    }
  }
}

}  // namespace systole::model
