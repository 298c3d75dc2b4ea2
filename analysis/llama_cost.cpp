#include "analysis/llama_cost.h"

#include <string>
#include <utility>

namespace systole::analysis {
namespace {

/// Of one result: root mean square (product and sum), normalised, weighted.
constexpr double kRmsNormFlops = 4;
/// A rotation of a pair: four products and two sums.
constexpr double kRopeFlops = 3;
/// Subtract, exponential, sum, divide.
constexpr double kLlamaSoftmaxFlops = 4;
/// Exponential, sum, divide; product with what it gates.
constexpr double kSwiGluFlops = 4;

/// [m x k] times weights [k x n].
OperatorCost weighted(std::string name, OperatorClass kind, double m, double k, double n) {
  const double macs = m * k * n;
  return {std::move(name), kind, macs, 2 * macs, m * k + k * n + m * n};
}

/// `operands` are read and one result is written for each element.
OperatorCost elementwise(std::string name, double elements, double flops, double operands) {
  return {std::move(name),  OperatorClass::kOther,     0,
          flops * elements, (operands + 1) * elements, elements};
}

}  // namespace

std::vector<OperatorCost> llama_costs(const model::LlamaShape& shape, std::uint32_t length) {
  constexpr OperatorClass kProjection = OperatorClass::kProjection;
  constexpr OperatorClass kFeedForward = OperatorClass::kFeedForward;
  const double l = length, d = shape.width, hidden = shape.hidden;
  const double q = shape.query_width(), kv = shape.kv_width(), heads = shape.heads;
  const double scores = heads * l * l;
  const double attention = l * l * q;  // MACs of scores, and of contexts
  std::vector<OperatorCost> costs = {
      weighted("query", kProjection, l, d, q),
      weighted("key", kProjection, l, d, kv),
      weighted("value", kProjection, l, d, kv),
      {"scores", OperatorClass::kAttention, attention, 2 * attention - scores,
       l * q + l * kv + scores},
      {"context", OperatorClass::kAttention, attention, 2 * attention - l * q,
       scores + l * kv + l * q},
      weighted("projection", kProjection, l, q, d),
      weighted("gate", kFeedForward, l, d, hidden),
      weighted("up", kFeedForward, l, d, hidden),
      weighted("down", kFeedForward, l, hidden, d),
      elementwise("RMSNorm", 2 * l * d, kRmsNormFlops, 1),
      elementwise("RoPE", l * (q + kv), kRopeFlops, 2),
      elementwise("softmax", scores, kLlamaSoftmaxFlops, 1),
      elementwise("SwiGLU", l * hidden, kSwiGluFlops, 2),
      elementwise("residual", 2 * l * d, 1, 2),
  };
  for (OperatorCost& cost : costs) {
    cost.macs *= shape.layers;
    cost.flops *= shape.layers;
    cost.bytes *= shape.layers;
    cost.elements *= shape.layers;
  }
  costs.push_back(elementwise("last RMSNorm", d, kRmsNormFlops, 1));
  costs.push_back(weighted("vocabulary", kProjection, 1, d, shape.vocabulary));
  return costs;
}

}  // namespace systole::analysis
