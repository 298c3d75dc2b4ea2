#include "model/build/llama_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"

namespace systole::model {

Routing seeded_routing(const LlamaShape& shape, std::uint32_t tokens, RoutingKind kind,
                       std::uint64_t seed) {
  Routing routing;
  for (std::uint32_t block = 0; block < shape.layers; ++block) {
    std::set<std::uint32_t> found;
    for (std::uint32_t token = 0; token < tokens; ++token) {
      if (kind == RoutingKind::kWorst) {
        for (std::uint32_t i = 0; i < shape.active_experts; ++i) {
          found.insert((token * shape.active_experts + i) % shape.experts);
        }
        continue;
      }
      std::seed_seq sequence{static_cast<std::uint32_t>(seed), block, token};
      std::mt19937 random(sequence);
      std::vector<std::uint32_t> all = routed_experts({}, shape, block);
      // The first of a shuffled list, of which no more is shuffled.
      for (std::uint32_t i = 0; i < shape.active_experts; ++i) {
        std::swap(all[i], all[i + random() % (shape.experts - i)]);
        found.insert(all[i]);
      }
    }
    routing.emplace_back(found.begin(), found.end());
  }
  return routing;
}

double expected_experts(const LlamaShape& shape, std::uint32_t tokens) {
  const double all = shape.experts;
  return all * (1.0 - std::pow(1.0 - shape.active_experts / all, tokens));
}

std::uint32_t most_experts(const LlamaShape& shape, std::uint32_t tokens) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(shape.experts, std::uint64_t{shape.active_experts} * tokens));
}

std::vector<std::uint32_t> routed_experts(const Routing& routing, const LlamaShape& shape,
                                          std::uint32_t block) {
  if (!routing.empty()) return routing.at(block);
  std::vector<std::uint32_t> all(shape.experts);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::string shares_name(std::size_t block) {
  return "blocks." + std::to_string(block) + ".mlp.shares";
}

Routing find_routing(Graph graph, const LlamaShape& shape,
                     const std::vector<std::int32_t>& embedding) {
  // An output is not freed after its last reader.
  for (std::size_t i = 0; i < shape.layers; ++i) {
    graph.tensors[find_tensor(graph, shares_name(i))].kind = Tensor::Kind::kOutput;
  }
  Reference reference(graph, {true, true});
  reference.set_input("embedding", embedding);
  reference.run();
  Routing routing(shape.layers);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const std::vector<std::uint8_t>& shares = reference.bytes(shares_name(i));
    for (std::uint32_t expert = 0; expert < shape.experts; ++expert) {
      bool any = false;
      for (std::size_t at = expert; at < shares.size(); at += shape.experts) {
        any = any || shares[at] != 0;
      }
      if (any) routing[i].push_back(expert);
    }
  }
  return routing;
}

}  // namespace systole::model
