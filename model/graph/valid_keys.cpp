#include "model/graph/valid_keys.h"

#include <vector>

namespace systole::model {

void attend_to_keys(Graph& graph, std::uint32_t keys) {
  attend_to_keys(graph, keys, [](const Node&) { return true; });
}

void attend_to_keys(Graph& graph, std::uint32_t keys,
                    const std::function<bool(const Node&)>& narrows) {
  std::vector<bool> is_written(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) is_written[node.out.tensor] = true;
  std::vector<bool> has_keys(graph.tensors.size(), false);  // an entry per key in every row
  for (Node& node : graph.nodes) {
    if (has_keys[node.in.tensor]) node.in.cols = keys;
    if (node.product() != nullptr &&
        graph.tensors[node.product()->b.tensor].kind != Tensor::Kind::kConstant &&
        is_written[node.product()->b.tensor] && narrows(node)) {
      node.product()->b.rows = keys;
      has_keys[node.out.tensor] = node.product()->b_transposed;
    } else if (node.product() == nullptr && has_keys[node.in.tensor]) {
      has_keys[node.out.tensor] = true;
    }
    if (has_keys[node.out.tensor]) node.out.cols = keys;
  }
}

}  // namespace systole::model
