#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/softmax.h"
#include "hw/number/dyadic.h"
#include "hw/number/int_exp.h"
#include "testbench/vectors/vector_checks.h"

namespace systole::model {
namespace {

std::string place_of(const std::string& key, std::size_t i) {
  return key + "[" + std::to_string(i) + "]";
}

unsigned width(const VectorFields& fields, const std::string& key, unsigned lowest,
               unsigned highest) {
  return static_cast<unsigned>(fields.integer(key, {lowest, highest}));
}

std::vector<std::int32_t> int32s(const VectorFields& fields, const std::string& key,
                                 IntegerLimits limits = kInt32Limits) {
  const std::vector<std::int64_t> values = fields.integers(key, limits);
  return {values.begin(), values.end()};
}

/// Compares the elements of `actual` with the field.
template <typename Actual>
void expect_all(const VectorFields& fields, const std::string& key, const std::string& place,
                const std::vector<Actual>& actual, VectorComparison& comparison) {
  const std::vector<std::int64_t> expected = fields.integers(key, {});
  fields.expect_length(key, expected.size(), actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    comparison.expect(place + place_of(key, i), static_cast<std::int64_t>(actual[i]), expected[i]);
  }
}

void expect_dyadic(const VectorFields& fields, const char* multiplier, const char* shift,
                   hw::Dyadic actual, VectorComparison& comparison) {
  comparison.expect(multiplier, actual.multiplier, fields.integer(multiplier, {}));
  comparison.expect(shift, actual.shift, fields.integer(shift, {}));
}

/// Constants that `make` derives; what it refuses is an error of the field `key`.
template <typename Make>
auto derive(const VectorFields& fields, const std::string& key, Make make) {
  try {
    return make();
  } catch (const hw::InputError& error) {
    fields.fail(key, error.what());
  }
}

hw::SoftmaxMode softmax_mode_of(const VectorFields& fields) {
  const std::string mode = fields.text("mode");
  if (mode == "deferred") return hw::SoftmaxMode::kDeferred;
  if (mode == "ibert") return hw::SoftmaxMode::kNormalisedFloor;
  if (mode == "ibert_round") return hw::SoftmaxMode::kNormalisedRound;
  fields.fail("mode", R"(unknown, expected "deferred", "ibert" or "ibert_round")");
}

}  // namespace

void check_default_exponential(const VectorFields& fields, VectorComparison& comparison) {
  const hw::IntExpConstants constants = hw::make_int_exp_constants(
      width(fields, "fraction_bits", hw::kMinExpFractionBits, hw::kMaxExpFractionBits));
  comparison.expect("q_ln2", constants.q_ln2, fields.integer("q_ln2", {}));
  comparison.expect("b", constants.b, fields.integer("b", {}));
  comparison.expect("c", constants.c, fields.integer("c", {}));
  std::vector<std::uint32_t> exponentials;
  for (const std::int64_t q : fields.integers("q", {kInt32Limits.lo, 0})) {
    exponentials.push_back(hw::int_exp(q, constants));
  }
  expect_all(fields, "e", "", exponentials, comparison);
}

void check_default_gelu(const VectorFields& fields, VectorComparison& comparison) {
  constexpr IntegerLimits kInput{-(1 << 15), (1 << 15) - 1};
  constexpr double kFinestScale = 1e-6;  // no product of such inputs leaves 64 bits
  constexpr unsigned kProductBits = 47;  // what a requantisation takes (hw/number/dyadic.h)
  const std::vector<std::int32_t> inputs = int32s(fields, "q", kInput);
  const unsigned output_bits = width(fields, "output_bits", 2, 16);
  const double input_scale = fields.scale("input_scale"),
               output_scale = fields.scale("output_scale");
  if (input_scale < kFinestScale) {
    fields.fail("input_scale", "below 1e-6, expected a coarser scale");
  }
  const hw::GeluConstants constants = derive(
      fields, "input_scale", [&] { return hw::make_gelu_constants(input_scale, output_scale); });
  comparison.expect("b", constants.b, fields.integer("b", {}));
  comparison.expect("c", constants.c, fields.integer("c", {}));
  comparison.expect("one", constants.one, fields.integer("one", {}));
  expect_dyadic(fields, "m", "s", constants.output, comparison);
  std::vector<std::int64_t> products, outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    products.push_back(hw::gelu_product(inputs[i], constants));
    if (hw::signed_bits(products.back()) > kProductBits) {
      fields.fail(place_of("q", i), "its product has more than 47 bits, expected a smaller input");
    }
    outputs.push_back(hw::gelu(inputs[i], constants, output_bits));
  }
  expect_all(fields, "product", "", products, comparison);
  expect_all(fields, "out", "", outputs, comparison);
}

void check_default_layernorm(const VectorFields& fields, VectorComparison& comparison) {
  constexpr std::int64_t kInput = std::int64_t{1} << (hw::kLayerNormMaxInputBits - 1);
  const std::vector<double> gamma = fields.reals("gamma"), beta = fields.reals("beta");
  if (gamma.size() > hw::kLayerNormMaxLength) {
    fields.fail("gamma", std::to_string(gamma.size()) + " elements, expected at most " +
                             std::to_string(hw::kLayerNormMaxLength));
  }
  const unsigned output_bits = width(fields, "output_bits", 2, 32);
  const double output_scale = fields.scale("output_scale");
  const unsigned fraction_bits = width(fields, "fraction_bits", 1, hw::kLayerNormMaxFractionBits);
  const unsigned multiplier_bits = width(fields, "multiplier_bits", 2, 30);
  const hw::LayerNormConstants constants = derive(fields, "gamma", [&] {
    return hw::make_layernorm_constants(gamma, beta, output_scale, fraction_bits, multiplier_bits);
  });
  expect_all(fields, "multiplier", "", constants.multiplier, comparison);
  expect_all(fields, "bias", "", constants.bias, comparison);
  comparison.expect("shift", constants.shift, fields.integer("shift", {}));
  const std::vector<VectorFields> rows = fields.objects("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<std::int32_t> x = int32s(rows[i], "x", {-kInput, kInput - 1});
    rows[i].expect_length("x", x.size(), gamma.size());
    std::vector<std::int32_t> out(x.size());
    hw::layernorm_row(x.data(), constants, out.data(), output_bits);
    expect_all(rows[i], "out", place_of("rows", i) + ".", out, comparison);
  }
}

void check_default_requantisation(const VectorFields& fields, VectorComparison& comparison) {
  const unsigned bits = width(fields, "bits", 2, 31);
  const std::vector<double> real = fields.reals("factor");
  fields.expect_length("factor", real.size(), 1);
  const hw::Dyadic factor =
      derive(fields, "factor", [&] { return hw::make_dyadic(real.front(), bits); });
  expect_dyadic(fields, "m", "s", factor, comparison);
  const std::vector<std::int32_t> inputs = int32s(fields, "x");
  for (const unsigned output_bits : {8U, 16U, 31U}) {
    std::vector<std::int64_t> outputs;
    for (const std::int32_t x : inputs) {
      outputs.push_back(
          hw::requantise(x, factor, hw::Rounding::kHalfUp, hw::symmetric_range(output_bits)));
    }
    expect_all(fields, "q" + std::to_string(output_bits), "", outputs, comparison);
  }
}

void check_default_softmax(const VectorFields& fields, VectorComparison& comparison) {
  hw::SoftmaxOptions options;
  options.mode = softmax_mode_of(fields);
  options.output_bits = width(fields, "bits", 1, 16);
  options.fraction_bits =
      width(fields, "fraction_bits", hw::kMinExpFractionBits, hw::kMaxExpFractionBits);
  options.factor_bits = width(fields, "factor_bits", 16, 48);
  const double score_scale = fields.scale("score_scale");
  const hw::SoftmaxConstants constants = derive(
      fields, "score_scale", [&] { return hw::make_softmax_constants(score_scale, options); });
  expect_dyadic(fields, "m", "s", constants.score, comparison);
  expect_dyadic(fields, "em", "es", constants.exp_to_code, comparison);
  const std::vector<std::int32_t> scores = int32s(fields, "scores");
  const std::vector<std::int64_t> cells = fields.integers("keep", {0, 1});
  fields.expect_length("keep", cells.size(), scores.size());
  const std::vector<std::uint8_t> keep(cells.begin(), cells.end());
  std::vector<std::uint16_t> codes(scores.size());
  const std::uint32_t sum =
      hw::softmax_row(scores.data(), keep.data(), scores.size(), constants, codes.data());
  expect_all(fields, "codes", "", codes, comparison);
  if (options.mode != hw::SoftmaxMode::kDeferred) return;
  comparison.expect("sum", sum, fields.integer("sum", {}));
  std::vector<std::int64_t> quotients;
  for (const std::int32_t acc : int32s(fields, "acc")) {
    quotients.push_back(hw::deferred_divide(acc, sum));
  }
  expect_all(fields, "divided", "", quotients, comparison);
}

}  // namespace systole::model
