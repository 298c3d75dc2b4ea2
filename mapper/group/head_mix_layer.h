#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/attention/head_mix.h"
#include "hw/machine/machine.h"
#include "model/graph/graph.h"

namespace systole::mapper {

struct Group;

/// A layer of a graph that mixes heads: a matmul with the Kronecker product of coefficients and
/// identity, its plain bias (hw::is_bias()) and its requantisation, one after the other and read by
/// nothing else, nothing between them wanted in memory.
struct HeadMixLayer {
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
[[nodiscard]] std::optional<HeadMixLayer> match_head_mix_layer(
    const model::Graph& graph, std::size_t first, std::uint32_t features,
    const std::vector<unsigned>& readers);

/// The same with the most features, at least 2, for which the layer mixes heads.
[[nodiscard]] std::optional<HeadMixLayer> match_head_mix_layer(
    const model::Graph& graph, std::size_t first, const std::vector<unsigned>& readers);

/// The columns of a projection's result in sections of one width: some of them are read by nothing
/// but an encoder, the rest lie side by side.
struct EncodedSections {
  std::vector<HeadMixLayer> encoders;  ///< by section; none if the result does not have this form
  model::View rest;                    ///< what is written as it is
};

/// `group`: a matmul and its chain, whose result must be s8 and a whole tensor. A machine without
/// encoder lines has no encoded sections. An encoder runs earlier than its place in the graph, so
/// no operator up to there may write its section, or use what it writes. `readers`: how many nodes
/// read each tensor; `taken`: nodes that are part of something else.
[[nodiscard]] EncodedSections encoded_sections(const model::Graph& graph, const Group& group,
                                               const hw::Machine& machine,
                                               const std::vector<unsigned>& readers,
                                               const std::vector<bool>& taken);

}  // namespace systole::mapper
