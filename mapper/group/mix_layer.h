#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/attention/head_mix.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// A layer of a graph that mixes heads: a matmul with the Kronecker product of coefficients and
/// identity, its plain bias (hw::is_bias()) and its requantisation, one after the other and read by
/// nothing else, nothing between them wanted in memory.
struct MixLayer {
  std::size_t first = 0;  ///< its matmul among the graph's nodes
  model::View in, out;    ///< s8, [tokens][heads * features]
  hw::HeadMix mix;

  static constexpr std::size_t kNodes = 3;
  [[nodiscard]] std::uint32_t features() const { return in.cols / mix.in_heads; }
  /// Multiply-accumulates of the mix, for all tokens.
  [[nodiscard]] std::uint64_t macs() const {
    return std::uint64_t{in.rows} * features() * hw::mix_products(mix);
  }
};

/// The layer that begins with the graph's node number `first`, if it mixes heads of `features`
/// features. Found in weights, biases and factors themselves; a mere shape has none.
/// `readers`: how many nodes read each tensor.
[[nodiscard]] std::optional<MixLayer> match_mix_layer(const model::Graph& graph, std::size_t first,
                                                      std::uint32_t features,
                                                      const std::vector<unsigned>& readers);

/// The same with the most features, at least 2, for which the layer mixes heads.
[[nodiscard]] std::optional<MixLayer> match_mix_layer(const model::Graph& graph, std::size_t first,
                                                      const std::vector<unsigned>& readers);

}  // namespace systole::mapper
