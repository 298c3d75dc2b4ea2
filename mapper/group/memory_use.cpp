#include "mapper/group/memory_use.h"

#include <algorithm>

#include "hw/postop/stage.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::View;

View whole(const Graph& graph, model::TensorId id) {
  return {id, 0, 0, graph.tensors[id].rows, graph.tensors[id].cols};
}

void add_read(MemoryUse& use, const View& view) {
  if (view.tensor != model::kNoTensor) use.reads.push_back(view);
}

void add_write(MemoryUse& use, const Graph& graph, const View& view) {
  const bool state = graph.tensors[view.tensor].kind == model::Tensor::Kind::kState;
  use.writes.push_back(state ? whole(graph, view.tensor) : view);
}

void add_statistics(MemoryUse& use, const Graph& graph, const hw::Chain& chain,
                    model::TensorId statistics) {
  if (statistics == model::kNoTensor) return;
  if (hw::reads_row_statistics(chain)) add_read(use, whole(graph, statistics));
  if (hw::writes_row_statistics(chain)) add_write(use, graph, whole(graph, statistics));
}

void add_operands(MemoryUse& use, const Graph& graph, const BoundChain& chain) {
  for (const View& view : chain.tensors) add_read(use, view);
  add_statistics(use, graph, chain.chain, chain.statistics);
}

}  // namespace

MemoryUse memory_use(const Graph& graph, const model::Node& node) {
  MemoryUse use;
  for (const View& view : {node.in, node.second()}) add_read(use, view);
  add_write(use, graph, node.out);
  if (node.stage() != nullptr) {
    add_statistics(use, graph, {{node.stage()->stage}, {}}, node.statistics());
  }
  return use;
}

MemoryUse memory_use(const Graph& graph, const Group& group) {
  MemoryUse use;
  if (group.encoder()) return use;
  if (group.attention()) {
    use.reads = {group.attention()->query, group.attention()->key, group.attention()->value};
  } else {
    add_read(use, group.a);
    if (group.matmul() != nullptr) add_read(use, group.matmul()->b);
    add_operands(use, graph, group);
    if (group.pre) add_operands(use, graph, *group.pre);
  }
  add_write(use, graph, group.written());
  for (const HeadMixLayer& encoder : group.sections.encoders) add_write(use, graph, encoder.out);
  return use;
}

const View* meeting(const std::vector<View>& views, const std::vector<View>& others) {
  const auto found = std::find_if(views.begin(), views.end(), [&](const View& view) {
    return std::any_of(others.begin(), others.end(),
                       [&](const View& other) { return overlap(view, other); });
  });
  return found == views.end() ? nullptr : &*found;
}

std::string order_obstacle(const Graph& graph, const std::vector<Group>& groups, std::size_t pass,
                           std::size_t reader) {
  std::vector<View> wanted = memory_use(graph, groups[pass]).reads;
  wanted.push_back(groups[pass].out);
  for (std::size_t between = pass + 1; between <= reader; ++between) {
    const MemoryUse use = memory_use(graph, groups[between]);
    if (const View* const view = meeting(wanted, use.writes)) {
      return graph.tensors[view->tensor].name +
             " may change before it is read: " + groups[between].name + " writes it";
    }
  }
  return "";
}

}  // namespace systole::mapper
