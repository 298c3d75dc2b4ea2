#include "mapper/group/encoded_sections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mapper/group/memory_use.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

bool reads(const Node& node, const View& view) {
  return overlap(node.in, view) || overlap(node.b, view) || overlap(node.tensor, view);
}

/// The only node that reads any of `view`, or nothing.
const Node* only_reader(const Graph& graph, const View& view) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes) {
    if (!reads(node, view)) continue;
    if (found != nullptr) return nullptr;
    found = &node;
  }
  return found;
}

/// Whether a layer may run with the group, earlier than its place in the graph. Its order changes
/// with the operators between group and layer, and with those before the group that are part of
/// something that may run later.
bool runs_early(const Graph& graph, const MixLayer& layer, const Group& group,
                const std::vector<bool>& taken) {
  const std::size_t last = group.nodes.back();
  if (layer.first <= last) return false;
  std::vector<View> used = memory_use(graph, group).reads;
  used.push_back(group.out);
  std::vector<View> written;
  for (std::size_t i = 0; i < layer.first; ++i) {
    if (i <= last && !taken[i]) continue;
    const MemoryUse use = memory_use(graph, graph.nodes[i]);
    used.insert(used.end(), use.reads.begin(), use.reads.end());
    written.insert(written.end(), use.writes.begin(), use.writes.end());
  }
  return meeting({layer.out}, used) == nullptr &&
         meeting({layer.in, layer.out}, written) == nullptr;
}

/// The columns without `encoders`, which are in order and of one width, if they lie side by side.
View rest_of(const View& result, const std::vector<MixLayer>& encoders, std::uint32_t width) {
  View rest = result;
  rest.cols = 0;
  std::size_t next = 0;
  for (std::uint32_t col = 0; col < result.cols; col += width) {
    if (next < encoders.size() && encoders[next].in.col == col) {
      ++next;
      continue;
    }
    if (rest.cols == 0) rest.col = col;
    if (rest.col + rest.cols != col) return {};
    rest.cols += width;
  }
  return next == encoders.size() ? rest : View{};
}

}  // namespace

EncodedSections encoded_sections(const Graph& graph, const Group& group, const hw::Machine& machine,
                                 const std::vector<unsigned>& readers,
                                 const std::vector<bool>& taken) {
  EncodedSections sections;
  const View& result = group.out;
  const model::Tensor& tensor = graph.tensors[result.tensor];
  if (!machine.attention.encodes() || tensor.kind != model::Tensor::Kind::kActivation ||
      !tensor.data.empty() || tensor.type != hw::DType::kS8 || result.cols != tensor.cols ||
      result.rows != tensor.rows) {
    return {};
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (taken[i] || node.kind != Node::Kind::kMatmul || node.in.tensor != result.tensor ||
        node.in.rows != result.rows || only_reader(graph, node.in) != &node) {
      continue;
    }
    auto layer = match_mix_layer(graph, i, readers);
    if (layer && runs_early(graph, *layer, group, taken)) {
      sections.encoders.push_back(std::move(*layer));
    }
  }
  if (sections.encoders.empty()) return {};
  std::sort(sections.encoders.begin(), sections.encoders.end(),
            [](const MixLayer& a, const MixLayer& b) { return a.in.col < b.in.col; });
  const std::uint32_t width = sections.encoders.front().in.cols;
  const bool equal = std::all_of(sections.encoders.begin(), sections.encoders.end(),
                                 [&](const MixLayer& encoder) { return encoder.in.cols == width; });
  if (!equal || result.cols % width != 0) return {};
  sections.rest = rest_of(result, sections.encoders, width);
  return sections.rest.cols == 0 ? EncodedSections{} : sections;
}

}  // namespace systole::mapper
