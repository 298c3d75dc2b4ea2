#include "mapper/group/head_mix_layer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/postop/stage_constants.h"
#include "mapper/group/memory_use.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;
using model::View;

/// The three nodes of a layer, whose shapes and types are those of a mix.
struct Nodes {
  const Node *matmul, *bias, *requantise;
};

std::optional<Nodes> layer_nodes(const Graph& graph, std::size_t first,
                                 const std::vector<unsigned>& readers) {
  if (first + HeadMixLayer::kNodes > graph.nodes.size()) return std::nullopt;
  const Node& matmul = graph.nodes[first];
  const Node& bias = graph.nodes[first + 1];
  const Node& requantise = graph.nodes[first + 2];
  const model::Product* const product = matmul.product();
  if (matmul.window || bias.window || requantise.window) return std::nullopt;
  if (product == nullptr || bias.stage() == nullptr || requantise.stage() == nullptr) {
    return std::nullopt;
  }
  const model::Tensor& b = graph.tensors[product->b.tensor];
  const hw::Stage& last = requantise.stage()->stage;
  const auto follows = [&](const Node& node, bool fits, const model::View& in) {
    const model::Tensor& between = graph.tensors[in.tensor];
    return fits && same(node.in, in) && readers[in.tensor] == 1 &&
           between.kind == model::Tensor::Kind::kActivation && between.data.empty();
  };
  const auto is_s8 = [&](const model::View& view) {
    return graph.tensors[view.tensor].type == hw::DType::kS8;
  };
  constexpr hw::IntRange kRange = hw::symmetric_range(8);
  const bool fits =
      !product->b_transposed && follows(bias, hw::is_bias(bias.stage()->stage), matmul.out) &&
      follows(requantise, last.op == hw::StageOp::kRequantise, bias.out) &&
      last.side == hw::Reduction::kNone && last.imm[2] == kRange.lo && last.imm[3] == kRange.hi &&
      is_s8(matmul.in) && is_s8(requantise.out) && b.kind == model::Tensor::Kind::kConstant &&
      !b.data.empty() && !bias.stage()->parameters.empty();
  return fits ? std::optional<Nodes>({&matmul, &bias, &requantise}) : std::nullopt;
}

/// The coefficients of each head's first feature, [out][in], if all else is as they say.
std::optional<std::vector<std::int8_t>> coefficients(const Graph& graph, const model::View& weight,
                                                     std::uint32_t features) {
  const model::Tensor& tensor = graph.tensors[weight.tensor];
  const auto at = [&](std::uint32_t in, std::uint32_t out) {
    return static_cast<std::int8_t>(
        tensor.data[std::size_t{weight.row + in} * tensor.cols + weight.col + out]);
  };
  std::vector<std::int8_t> result;
  for (std::uint32_t out = 0; out < weight.cols; out += features) {
    for (std::uint32_t in = 0; in < weight.rows; in += features) result.push_back(at(in, out));
  }
  const std::uint32_t in_heads = weight.rows / features;
  for (std::uint32_t in = 0; in < weight.rows; ++in) {
    for (std::uint32_t out = 0; out < weight.cols; ++out) {
      const bool same_feature = in % features == out % features;
      const std::int8_t coefficient = result[out / features * in_heads + in / features];
      if (at(in, out) != (same_feature ? coefficient : 0)) return std::nullopt;
    }
  }
  return result;
}

/// The value of each head, if all its features have the same.
std::optional<std::vector<std::int32_t>> by_head(const std::int32_t* values, std::uint32_t cols,
                                                 std::uint32_t features) {
  std::vector<std::int32_t> result;
  for (std::uint32_t col = 0; col < cols; ++col) {
    if (col % features == 0) {
      result.push_back(values[col]);
    } else if (values[col] != result.back()) {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<std::vector<hw::Dyadic>> factors_by_head(const Node& requantise,
                                                       std::uint32_t features) {
  const std::uint32_t cols = requantise.out.cols;
  const model::StageUse& use = *requantise.stage();
  if (use.stage.operand != hw::Operand::kChannel) {
    return std::vector<hw::Dyadic>(cols / features, hw::dyadic_at(use.stage, 0));
  }
  if (use.parameters.empty()) return std::nullopt;
  const auto multipliers = by_head(use.parameters.data(), cols, features);
  const auto shifts = by_head(use.parameters.data() + cols, cols, features);
  if (!multipliers || !shifts) return std::nullopt;
  std::vector<hw::Dyadic> factors;
  for (std::size_t o = 0; o < multipliers->size(); ++o) {
    const std::int32_t shift = (*shifts)[o];
    if (shift < 0 || shift > hw::kMaxDyadicShift) return std::nullopt;
    factors.push_back({(*multipliers)[o], static_cast<std::int8_t>(shift)});
  }
  return factors;
}

std::optional<HeadMixLayer> mix_of(const Graph& graph, std::size_t first, const Nodes& nodes,
                                   std::uint32_t features) {
  const model::View& in = nodes.matmul->in;
  const model::View& out = nodes.requantise->out;
  if (features == 0 || in.cols % features != 0 || out.cols % features != 0) return std::nullopt;
  auto weights = coefficients(graph, nodes.matmul->product()->b, features);
  if (!weights) return std::nullopt;
  auto bias = by_head(nodes.bias->stage()->parameters.data(), out.cols, features);
  auto factors = factors_by_head(*nodes.requantise, features);
  if (!bias || !factors) return std::nullopt;
  HeadMixLayer layer{
      first,
      in,
      out,
      {in.cols / features, out.cols / features, std::move(*weights), std::move(*bias),
       std::move(*factors), nodes.requantise->stage()->stage.rounding}};
  try {
    hw::check_head_mix(layer.mix);
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
  return layer;
}

bool reads(const Node& node, const View& view) {
  return overlap(node.in, view) || overlap(node.second(), view);
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
bool runs_early(const Graph& graph, const HeadMixLayer& layer, const Group& group,
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
View rest_of(const View& result, const std::vector<HeadMixLayer>& encoders, std::uint32_t width) {
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

std::optional<HeadMixLayer> match_head_mix_layer(const Graph& graph, std::size_t first,
                                                 std::uint32_t features,
                                                 const std::vector<unsigned>& readers) {
  const std::optional<Nodes> nodes = layer_nodes(graph, first, readers);
  return nodes ? mix_of(graph, first, *nodes, features) : std::nullopt;
}

std::optional<HeadMixLayer> match_head_mix_layer(const Graph& graph, std::size_t first,
                                                 const std::vector<unsigned>& readers) {
  const std::optional<Nodes> nodes = layer_nodes(graph, first, readers);
  if (!nodes) return std::nullopt;
  const std::uint32_t most = std::gcd(nodes->matmul->in.cols, nodes->requantise->out.cols);
  // With a single feature, every matrix is a mix.
  for (std::uint32_t features = most; features >= 2; --features) {
    if (most % features != 0) continue;
    if (auto layer = mix_of(graph, first, *nodes, features)) return layer;
  }
  return std::nullopt;
}

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
    if (taken[i] || node.product() == nullptr || node.in.tensor != result.tensor ||
        node.in.rows != result.rows || only_reader(graph, node.in) != &node) {
      continue;
    }
    auto layer = match_head_mix_layer(graph, i, readers);
    if (layer && runs_early(graph, *layer, group, taken)) {
      sections.encoders.push_back(std::move(*layer));
    }
  }
  if (sections.encoders.empty()) return {};
  std::sort(sections.encoders.begin(), sections.encoders.end(),
            [](const HeadMixLayer& a, const HeadMixLayer& b) { return a.in.col < b.in.col; });
  const std::uint32_t width = sections.encoders.front().in.cols;
  const bool equal =
      std::all_of(sections.encoders.begin(), sections.encoders.end(),
                  [&](const HeadMixLayer& encoder) { return encoder.in.cols == width; });
  if (!equal || result.cols % width != 0) return {};
  sections.rest = rest_of(result, sections.encoders, width);
  return sections.rest.cols == 0 ? EncodedSections{} : sections;
}

}  // namespace systole::mapper
