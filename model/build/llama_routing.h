#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph/graph.h"
#include "model/metadata/llama_shape.h"

/// Which experts the tokens of a step go to. A program has the products of these alone: the host,
/// which routes, makes it so before the core goes on.
namespace systole::model {

/// For each block the experts that any token goes to, ascending. Empty: all of every block.
using Routing = std::vector<std::vector<std::uint32_t>>;

enum class RoutingKind : std::uint8_t {
  kUniform,  ///< every set of experts is as likely as any other, for each token
  kWorst,    ///< no two tokens share an expert, as long as there are others
};

/// A routing of `tokens` that no value decides: seeded, of the same for any `tokens` before them.
[[nodiscard]] Routing seeded_routing(const LlamaShape& shape, std::uint32_t tokens,
                                     RoutingKind kind, std::uint64_t seed);

/// Mean of the distinct experts of a block under uniform routing: E (1 - (1 - k / E)^tokens).
[[nodiscard]] double expected_experts(const LlamaShape& shape, std::uint32_t tokens);
/// Most distinct experts of a block.
[[nodiscard]] std::uint32_t most_experts(const LlamaShape& shape, std::uint32_t tokens);

/// The routing that the routers of `graph`, which has all experts, decide for an input. An expert
/// whose share of every token rounds to 0 is left out. The reference executor computes it.
[[nodiscard]] Routing find_routing(Graph graph, const LlamaShape& shape,
                                   const std::vector<std::int32_t>& embedding);

/// Experts of a block that a graph has: those of `routing`, or all if it is empty.
[[nodiscard]] std::vector<std::uint32_t> routed_experts(const Routing& routing,
                                                        const LlamaShape& shape,
                                                        std::uint32_t block);

/// The tensor with the shares of the experts, [tokens x experts] u8, in steps of 1/256.
[[nodiscard]] std::string shares_name(std::size_t block);

}  // namespace systole::model
