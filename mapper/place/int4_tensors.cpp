#include <algorithm>

#include "mapper/group/memory_use.h"
#include "mapper/place/placement.h"

namespace systole::mapper {
namespace {

/// Whether a group reads the tensor of `view` as pairs: as A of a product by int4 weights, whole
/// rows of it, or whole pairs of each pixel's channels under a window.
bool reads_pairs(const model::Graph& graph, const Group& group, const model::View& view,
                 const hw::Machine& machine) {
  const MatmulAnchor* const product = group.matmul();
  const bool is_operand =
      std::any_of(group.tensors.begin(), group.tensors.end(),
                  [&](const model::View& operand) { return operand.tensor == view.tensor; });
  if (product == nullptr || group.pre || product->a_unsigned || !same(view, group.a) ||
      product->b.tensor == view.tensor || is_operand || view.folded ||
      !is_int4(graph, product->b, machine)) {
    return false;
  }
  if (!group.window) return view.col == 0 && view.cols == graph.tensors[view.tensor].cols;
  return view.col % hw::kInt4Pair == 0 && group.window->channels % hw::kInt4Pair == 0;
}

/// Whether a group's stores leave pairs.
bool writes_pairs(const model::Graph& graph, const Group& group) {
  const model::View& out = group.out;
  const bool to_end = out.col + out.cols == graph.tensors[out.tensor].cols;
  return group.is_tiled() && group.sections.encoders.empty() && !out.folded &&
         group.chain.out == hw::DType::kS8 && !hw::transposes(group.chain) &&
         out.col % hw::kInt4Pair == 0 && (to_end || out.cols % hw::kInt4Pair == 0);
}

}  // namespace

std::vector<bool> int4_tensors(const model::Graph& graph, const std::vector<Group>& groups,
                               const hw::Machine& machine) {
  using Kind = model::Tensor::Kind;
  const std::size_t count = graph.tensors.size();
  std::vector<bool> pairs(count, false), read(count, false);
  if (machine.array.split != hw::ArraySplit::kBoth) return pairs;
  for (std::size_t id = 0; id < count; ++id) {
    const model::Tensor& tensor = graph.tensors[id];
    pairs[id] = may_be_int4(tensor, machine) && tensor.data.empty() &&
                (tensor.kind == Kind::kInput || tensor.kind == Kind::kActivation);
  }
  for (const Group& group : groups) {
    const MemoryUse use = memory_use(graph, group);
    for (const model::View& view : use.reads) {
      read[view.tensor] = true;
      if (!reads_pairs(graph, group, view, machine)) pairs[view.tensor] = false;
    }
    for (const model::View& view : use.writes) {
      if (!same(view, group.out) || !writes_pairs(graph, group)) pairs[view.tensor] = false;
    }
  }
  for (std::size_t id = 0; id < count; ++id) pairs[id] = pairs[id] && read[id];
  return pairs;
}

}  // namespace systole::mapper
