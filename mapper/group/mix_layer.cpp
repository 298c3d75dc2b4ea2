#include "mapper/group/mix_layer.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "hw/number/integer.h"
#include "hw/postop/stage_constants.h"

namespace systole::mapper {
namespace {

using model::Graph;
using model::Node;

/// The three nodes of a layer, whose shapes and types are those of a mix.
struct Nodes {
  const Node *matmul, *bias, *requantise;
};

std::optional<Nodes> layer_nodes(const Graph& graph, std::size_t first,
                                 const std::vector<unsigned>& readers) {
  if (first + MixLayer::kNodes > graph.nodes.size()) return std::nullopt;
  const Node& matmul = graph.nodes[first];
  const Node& bias = graph.nodes[first + 1];
  const Node& requantise = graph.nodes[first + 2];
  const auto follows = [&](const Node& node, bool fits, const model::View& in) {
    const model::Tensor& between = graph.tensors[in.tensor];
    return node.kind == Node::Kind::kStage && fits && same(node.in, in) &&
           readers[in.tensor] == 1 && between.kind == model::Tensor::Kind::kActivation &&
           between.data.empty();
  };
  const auto is_s8 = [&](const model::View& view) {
    return graph.tensors[view.tensor].type == hw::DType::kS8;
  };
  constexpr hw::IntRange kRange = hw::symmetric_range(8);
  const bool fits =
      matmul.kind == Node::Kind::kMatmul && !matmul.b_transposed &&
      follows(bias, hw::is_bias(bias.stage), matmul.out) &&
      follows(requantise, requantise.stage.op == hw::StageOp::kRequantise, bias.out) &&
      requantise.stage.side == hw::Reduction::kNone && requantise.stage.imm[2] == kRange.lo &&
      requantise.stage.imm[3] == kRange.hi && is_s8(matmul.in) && is_s8(requantise.out) &&
      graph.tensors[matmul.b.tensor].kind == model::Tensor::Kind::kConstant &&
      !graph.tensors[matmul.b.tensor].data.empty() && !bias.parameters.empty();
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
  if (requantise.stage.operand != hw::Operand::kChannel) {
    return std::vector<hw::Dyadic>(cols / features, hw::dyadic_at(requantise.stage, 0));
  }
  if (requantise.parameters.empty()) return std::nullopt;
  const auto multipliers = by_head(requantise.parameters.data(), cols, features);
  const auto shifts = by_head(requantise.parameters.data() + cols, cols, features);
  if (!multipliers || !shifts) return std::nullopt;
  std::vector<hw::Dyadic> factors;
  for (std::size_t o = 0; o < multipliers->size(); ++o) {
    const std::int32_t shift = (*shifts)[o];
    if (shift < 0 || shift > hw::kMaxDyadicShift) return std::nullopt;
    factors.push_back({(*multipliers)[o], static_cast<std::int8_t>(shift)});
  }
  return factors;
}

std::optional<MixLayer> mix_of(const Graph& graph, std::size_t first, const Nodes& nodes,
                               std::uint32_t features) {
  const model::View& in = nodes.matmul->in;
  const model::View& out = nodes.requantise->out;
  if (features == 0 || in.cols % features != 0 || out.cols % features != 0) return std::nullopt;
  auto weights = coefficients(graph, nodes.matmul->b, features);
  if (!weights) return std::nullopt;
  auto bias = by_head(nodes.bias->parameters.data(), out.cols, features);
  auto factors = factors_by_head(*nodes.requantise, features);
  if (!bias || !factors) return std::nullopt;
  MixLayer layer{first,
                 in,
                 out,
                 {in.cols / features, out.cols / features, std::move(*weights), std::move(*bias),
                  std::move(*factors), nodes.requantise->stage.rounding}};
  try {
    hw::check_head_mix(layer.mix);
  } catch (const hw::InputError&) {
    return std::nullopt;
  }
  return layer;
}

}  // namespace

std::optional<MixLayer> match_mix_layer(const Graph& graph, std::size_t first,
                                        std::uint32_t features,
                                        const std::vector<unsigned>& readers) {
  const std::optional<Nodes> nodes = layer_nodes(graph, first, readers);
  return nodes ? mix_of(graph, first, *nodes, features) : std::nullopt;
}

std::optional<MixLayer> match_mix_layer(const Graph& graph, std::size_t first,
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

}  // namespace systole::mapper
