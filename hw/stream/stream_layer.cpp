#include "hw/stream/stream_layer.h"

#include "hw/kernel/gemm.h"

namespace systole::hw::stream {

Product multiply(const ProductOperands& operands, const Requantiser& requantiser) {
  Product product;
  product.sums.resize(operands.m * operands.n);
  GemmArgs args;
  args.a = static_cast<const std::uint8_t*>(operands.a);
  args.b = operands.b;
  args.c = product.sums.data();
  args.m = operands.m;
  args.n = operands.n;
  args.k = operands.k;
  args.lda = operands.k;
  args.ldb = operands.b_transposed ? operands.k : operands.n;
  args.ldc = operands.n;
  args.a_unsigned = operands.a_unsigned;
  args.b_transposed = operands.b_transposed;
  gemm(args);
  product.results.resize(product.sums.size());
  for (std::size_t i = 0; i < product.sums.size(); ++i) {
    const std::int64_t bias = operands.bias == nullptr ? 0 : (*operands.bias)[i % operands.n];
    product.sums[i] = wrap(product.sums[i] + bias, kAccumulatorBits);
    product.results[i] = requantise(product.sums[i], requantiser);
  }
  return product;
}

std::vector<std::uint8_t> softmax(const std::vector<std::int8_t>& scores, std::size_t length,
                                  std::vector<SoftmaxRow>& rows) {
  std::vector<std::uint8_t> probabilities(scores.size());
  rows.assign(scores.size() / length, {});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::int8_t* const x = &scores[row * length];
    for (std::size_t i = 0; i < length; i += kGroup) rows[row].take(x + i);
    const std::uint8_t inverse = rows[row].inverse();
    for (std::size_t i = 0; i < length; ++i) {
      probabilities[row * length + i] = rows[row].probability(x[i], inverse);
    }
  }
  return probabilities;
}

HeadResult attend(const LayerShape& shape, const std::vector<std::int8_t>& x_q,
                  const std::vector<std::int8_t>& x_kv, const HeadWeights& weights) {
  const std::size_t s = shape.sequence, e = shape.embedding, p = shape.projection;
  HeadResult head;
  const auto run = [&](Phase phase, const ProductOperands& operands) -> const auto& {
    const auto i = static_cast<std::size_t>(phase);
    head.products[i] = multiply(operands, weights.requantisers[i]);
    return head.products[i].results;
  };
  const auto& q =
      run(Phase::kQ, {x_q.data(), weights.q.data(), s, p, e, false, false, &weights.q_bias});
  const auto& k =
      run(Phase::kK, {x_kv.data(), weights.k.data(), s, p, e, false, false, &weights.k_bias});
  const auto& v =
      run(Phase::kV, {x_kv.data(), weights.v.data(), s, p, e, false, false, &weights.v_bias});
  const auto& scores = run(Phase::kQk, {q.data(), k.data(), s, s, p, false, true, nullptr});
  head.probabilities = softmax(scores, s, head.rows);
  const auto& context =
      run(Phase::kAv, {head.probabilities.data(), v.data(), s, p, s, true, false, nullptr});
  run(Phase::kOw, {context.data(), weights.o.data(), s, e, p, false, false, &weights.o_bias});
  return head;
}

Product add_heads(const std::vector<HeadResult>& heads, const Requantiser& by) {
  Product sum;
  sum.sums.resize(heads.front().of(Phase::kOw).results.size());
  for (const HeadResult& head : heads) {
    const std::vector<std::int8_t>& out = head.of(Phase::kOw).results;
    for (std::size_t i = 0; i < out.size(); ++i) sum.sums[i] += out[i];
  }
  for (const std::int32_t value : sum.sums) sum.results.push_back(requantise(value, by));
  return sum;
}

FeedForwardResult feed_forward(const LayerShape& shape, const std::vector<std::int8_t>& x,
                               const FeedForwardWeights& weights) {
  const std::size_t s = shape.sequence, e = shape.embedding, f = shape.hidden;
  FeedForwardResult result;
  result.f1 = multiply({x.data(), weights.w1.data(), s, f, e, false, false, &weights.bias1},
                       weights.requantiser1);
  for (const std::int8_t value : result.f1.results) {
    result.hidden.push_back(activate(value, weights.activation));
  }
  result.f2 =
      multiply({result.hidden.data(), weights.w2.data(), s, e, f, false, false, &weights.bias2},
               weights.requantiser2);
  return result;
}

}  // namespace systole::hw::stream
