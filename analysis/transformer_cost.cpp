#include "analysis/transformer_cost.h"

#include <cmath>
#include <string>
#include <utility>

namespace systole::analysis {
namespace {

/// FLOPs of the softmax of one score: subtract, exponential, sum, divide.
constexpr double kSoftmaxFlops = 4;
/// A sum that goes to a nonlinear operator.
constexpr double kWideBytes = 4;
/// Nonlinear operators on the residual stream: two LayerNorms and two additions.
constexpr double kNarrowOperators = 4;

/// A product of an m x k by a k x n matrix, `count` times in each layer.
struct Product {
  std::string name;
  OperatorClass kind;
  double count, m, n, k;
  bool has_weights;        ///< the k x n operand is constant
  double tiled_out_bytes;  ///< per result, if results leave unfused
  bool is_counted = true;  ///< false: its MACs and weights are left out, its activations are not

  [[nodiscard]] double macs() const { return is_counted ? count * m * n * k : 0; }
  [[nodiscard]] double flops() const {
    if (!is_counted) return 0;
    return has_weights ? 2 * macs() : 2 * macs() - count * m * n;
  }
  /// Bytes if the operands are read `a_times` and `b_times`.
  [[nodiscard]] double bytes(double a_times, double b_times, double out_bytes) const {
    const double b = has_weights && !is_counted ? 0 : k * n * b_times;
    return count * (m * k * a_times + b + m * n * out_bytes);
  }
};

std::vector<Product> products_of(const EncoderWorkload& workload) {
  const double l = workload.length, d = workload.shape.width, heads = workload.shape.heads;
  const double hidden = workload.shape.hidden, head = workload.shape.head_width();
  constexpr OperatorClass kProjection = OperatorClass::kProjection;
  constexpr OperatorClass kFeedForward = OperatorClass::kFeedForward;
  return {
      {"query", kProjection, 1, l, d, d, true, 1},
      {"key", kProjection, 1, l, d, d, true, 1},
      {"value", kProjection, 1, l, d, d, true, 1, workload.projections >= 4},
      {"scores", OperatorClass::kAttention, heads, l, l, head, false, kWideBytes},
      {"context", OperatorClass::kAttention, heads, l, head, l, false, 1},
      {"output", kProjection, 1, l, d, d, true, kWideBytes},
      {"W1", kFeedForward, 1, l, hidden, d, true, kWideBytes},
      {"W2", kFeedForward, 1, l, d, hidden, true, 1},
  };
}

std::vector<OperatorCost> all_layers(std::vector<OperatorCost> operators, double layers) {
  for (OperatorCost& op : operators) {
    op.macs *= layers;
    op.flops *= layers;
    op.bytes *= layers;
    op.elements *= layers;
  }
  return operators;
}

OperatorCost other(std::string name, double elements, double flops, double bytes) {
  return {std::move(name), OperatorClass::kOther, 0, flops, bytes, elements};
}

}  // namespace

std::uint32_t TileLimits::cols() const {
  const double slice = 2.0 * array_width;  // of one byte, double-buffered
  return static_cast<std::uint32_t>((l2_bytes - slice * rows) / (kWideBytes * rows + slice));
}

std::vector<OperatorCost> ideal_costs(const EncoderWorkload& workload) {
  std::vector<OperatorCost> operators;
  for (const Product& p : products_of(workload)) {
    operators.push_back({p.name, p.kind, p.macs(), p.flops(), p.bytes(1, 1, 1)});
  }
  const double stream = double{1} * workload.length * workload.shape.width;
  const double hidden = double{1} * workload.length * workload.shape.hidden;
  const double scores = double{1} * workload.length * workload.length * workload.shape.heads;
  operators.push_back(other("softmax", scores, kSoftmaxFlops * scores, 2 * scores));
  operators.push_back(other("elementwise", kNarrowOperators * stream + hidden,
                            kOtherFlopsPerElement * stream, kOtherBytesPerElement * stream));
  return all_layers(std::move(operators), workload.shape.layers);
}

std::vector<OperatorCost> tiled_costs(const EncoderWorkload& workload, const TileLimits& limits) {
  std::vector<OperatorCost> operators;
  for (const Product& p : products_of(workload)) {
    // Products of activations have square tiles, or Q would be read more often than Tab. 5 shows.
    const double cols = p.has_weights ? limits.cols() : limits.rows;
    const double bytes =
        p.bytes(std::ceil(p.n / cols), std::ceil(p.m / limits.rows), p.tiled_out_bytes);
    operators.push_back({p.name, p.kind, p.macs(), p.flops(), bytes});
  }
  const double stream = double{1} * workload.length * workload.shape.width;
  const double hidden = double{1} * workload.length * workload.shape.hidden;
  const double scores = double{1} * workload.length * workload.length * workload.shape.heads;
  operators.push_back(other("softmax", scores, kSoftmaxFlops * scores, (kWideBytes + 1) * scores));
  operators.push_back(other("GELU", hidden, 0, (kWideBytes + 1) * hidden));
  // Two LayerNorms, and two additions of one byte each to one byte.
  operators.push_back(other("LayerNorm, residual", kNarrowOperators * stream,
                            kOtherFlopsPerElement * stream,
                            2 * (kWideBytes + 1) * stream + 2 * 3 * stream));
  return all_layers(std::move(operators), workload.shape.layers);
}

std::vector<OperatorCost> decode_costs(const model::EncoderShape& shape, std::uint32_t length) {
  const double d = shape.width, hidden = shape.hidden, heads = shape.heads, tokens = length;
  const double context = tokens / 2;
  std::vector<OperatorCost> operators;
  const auto vector_product = [&](const char* name, OperatorClass kind, double n, double k) {
    const double macs = n * k * tokens;
    operators.push_back({name, kind, macs, 2 * macs, (n * k + n + k) * tokens});
  };
  for (const char* name : {"query", "key", "value", "output"}) {
    vector_product(name, OperatorClass::kProjection, d, d);
  }
  // Q and the cached K are read, the new key is written; the scores are moved once. Then the cached
  // V is read, the new value and the result are written.
  const double macs = d * context * tokens;
  const double scores = heads * context * tokens;
  operators.push_back({"scores", OperatorClass::kAttention, macs, 2 * macs,
                       (d + d * context + d) * tokens + scores});
  operators.push_back(
      {"context", OperatorClass::kAttention, macs, 2 * macs, (d * context + d + d) * tokens});
  vector_product("W1", OperatorClass::kFeedForward, hidden, d);
  vector_product("W2", OperatorClass::kFeedForward, d, hidden);
  operators.push_back(other("softmax", scores, kSoftmaxFlops * scores, 2 * scores));
  operators.push_back(other("elementwise", (kNarrowOperators * d + hidden) * tokens,
                            kOtherFlopsPerElement * d * tokens,
                            kDecodeOtherBytesPerElement * d * tokens));
  return all_layers(std::move(operators), shape.layers);
}

}  // namespace systole::analysis
