#include "hw/attention/head_mix.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "hw/kernel/gemm.h"
#include "hw/postop/postop.h"
#include "model/graph/stages.h"
#include "model/integer/head_mix.h"

namespace systole::model {
namespace {

int pick(std::mt19937_64& random, int lowest, int highest) {
  return std::uniform_int_distribution<int>(lowest, highest)(random);
}

/// The encoder lines and the matmul with the Kronecker matrix are two machines for one function.
TEST(HeadMix, IsTheMatmulAcrossHeadsWithItsBiasAndRequantisation) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    const auto in_heads = static_cast<std::uint32_t>(pick(random, 1, 6));
    const auto out_heads = static_cast<std::uint32_t>(pick(random, 1, 6));
    const auto features = static_cast<std::uint32_t>(pick(random, 1, 70));
    const auto rounding = static_cast<hw::Rounding>(pick(random, 0, 2));
    IntegerLinear coefficients;
    coefficients.inputs = in_heads;
    coefficients.outputs = out_heads;
    coefficients.weight.edit().resize(in_heads * out_heads);
    for (std::int8_t& weight : coefficients.weight.edit()) {
      weight = static_cast<std::int8_t>(pick(random, -128, 127));
    }
    for (std::uint32_t o = 0; o < out_heads; ++o) {
      coefficients.bias.push_back(pick(random, -100000, 100000));
      coefficients.factor.push_back(
          {pick(random, -65535, 65535), static_cast<std::int8_t>(pick(random, 12, 32))});
    }
    std::vector<std::int8_t> in(in_heads * features);
    for (std::int8_t& value : in) value = static_cast<std::int8_t>(pick(random, -128, 127));

    const IntegerLinear layer = across_heads(coefficients, features);
    std::vector<std::int32_t> sums(layer.outputs);
    hw::GemmArgs product;
    product.a = in.data();
    product.b = layer.weight.data();
    product.b_transposed = true;
    product.lda = product.ldb = product.k = layer.inputs;
    product.c = sums.data();
    product.ldc = product.n = layer.outputs;
    product.m = 1;
    hw::gemm(product);
    std::vector<std::int32_t> parameters = layer.bias;
    for (const hw::Dyadic factor : layer.factor) parameters.push_back(factor.multiplier);
    for (const hw::Dyadic factor : layer.factor) parameters.push_back(factor.shift);
    std::vector<std::int8_t> expected(layer.outputs);
    hw::ChainOperands operands;
    operands.accumulator = sums.data();
    operands.parameters = parameters.data();
    operands.out = expected.data();
    operands.rows = 1;
    operands.cols = layer.outputs;
    hw::apply_chain({{bias_stage(), channel_requantise_stage(8, rounding)}, hw::DType::kS8},
                    operands);

    const hw::HeadMix mix{in_heads,          out_heads,           coefficients.weight,
                          coefficients.bias, coefficients.factor, rounding};
    std::vector<std::int8_t> out(out_heads * features);
    hw::mix_heads(mix, in.data(), features, out.data());
    ASSERT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace systole::model
