#include "testbench/vectors/vector_checks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/ibert_layernorm.h"
#include "hw/function/ibert_softmax.h"
#include "hw/number/dyadic.h"

namespace systole::model {
namespace {

constexpr std::int64_t kOne = 1;
constexpr IntegerLimits kMultiplierLimits{0, std::numeric_limits<std::int32_t>::max()};
constexpr IntegerLimits kBiasLimits{-(kOne << 62), kOne << 62};
constexpr IntegerLimits kShiftLimits{0, std::numeric_limits<std::int8_t>::max()};

std::string indexed(const std::string& name, std::size_t i) {
  return name + "[" + std::to_string(i) + "]";
}

hw::Dyadic dyadic_of(std::int64_t multiplier, std::int64_t shift) {
  return {static_cast<std::int32_t>(multiplier), static_cast<std::int8_t>(shift)};
}

/// Value i of a list with one element for all or one per channel, the channel running fastest.
template <typename T>
T broadcast(const std::vector<T>& values, std::size_t i) {
  return values[i % values.size()];
}

/// Compares a given multiplier and shift with those the real factor derives.
void check_dyadic(const VectorFields& fields, const std::string& name, double factor,
                  hw::Dyadic given, VectorComparison& comparison) {
  if (!(factor < std::ldexp(1.0, hw::kIBertMultiplierBits))) {
    fields.fail(name, "its scales give a factor of 2^31 or more, expected less");
  }
  const hw::Dyadic derived = hw::make_ibert_dyadic(factor);
  comparison.expect(name + " (multiplier from scales)", given.multiplier, derived.multiplier);
  comparison.expect(name + " (shift from scales)", given.shift, derived.shift);
}

/// The factors of a requantisation as given: one, or one per channel.
std::vector<hw::Dyadic> requantisation_factors(const VectorFields& fields,
                                               const std::string& scale_key,
                                               const std::string& multiplier_key,
                                               const std::string& shift_key,
                                               VectorComparison& comparison) {
  const std::vector<std::int64_t> multipliers =
      fields.integer_or_integers(multiplier_key, kMultiplierLimits);
  const std::vector<std::int64_t> shifts = fields.integer_or_integers(shift_key, kShiftLimits);
  const std::vector<double> scales = fields.scales(scale_key);
  const double output_scale = fields.scale("S_out");
  fields.expect_length(shift_key, shifts.size(), multipliers.size());
  fields.expect_length(scale_key, scales.size(), multipliers.size());
  std::vector<hw::Dyadic> factors;
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    factors.push_back(dyadic_of(multipliers[i], shifts[i]));
    check_dyadic(fields, indexed(multiplier_key, i), scales[i] / output_scale, factors[i],
                 comparison);
  }
  return factors;
}

/// One branch of a requantisation: integers and the factors they have yet to be scaled by.
struct ScaledBranch {
  std::vector<std::int64_t> x;
  std::vector<hw::Dyadic> factors;
};

/// Has the datapath scale the branch, which leaves a factor of one.
void scale_branch(const VectorFields& fields, const std::string& x_key,
                  const std::string& shift_key, VectorDatapath& datapath, ScaledBranch& branch) {
  for (std::size_t i = 0; i < branch.factors.size(); ++i) {
    if (branch.factors[i].shift > hw::kMaxDyadicShift) {
      fields.fail(indexed(shift_key, i), "is " + std::to_string(branch.factors[i].shift) +
                                             ", not possible with " + datapath.name() +
                                             ", expected at most " +
                                             std::to_string(hw::kMaxDyadicShift));
    }
  }
  for (std::size_t i = 0; i < branch.x.size(); ++i) {
    const std::int64_t scaled =
        hw::scale(branch.x[i], broadcast(branch.factors, i), hw::Rounding::kHalfEven);
    if (scaled < kInt32Limits.lo || scaled > kInt32Limits.hi) {
      fields.fail(indexed(x_key, i), "scales to " + std::to_string(scaled) +
                                         ", not possible with " + datapath.name() +
                                         ", expected a result of 32 bits");
    }
  }
  const std::vector<std::int32_t> scaled =
      datapath.scale({branch.x.begin(), branch.x.end()}, branch.factors);
  branch = {{scaled.begin(), scaled.end()}, {hw::Dyadic{1, 0}}};
}

/// Finest scale whose I-BERT constants fit 64 bits (hw/function/gelu.h, hw/number/int_exp.h).
double polynomial_scale(const VectorFields& fields) {
  constexpr double kFinestScale = 9e-10;
  const double scale = fields.scale("S_in");
  if (scale < kFinestScale) fields.fail("S_in", "below 9e-10, expected a coarser scale");
  return scale;
}

hw::IBertSoftmaxConstants softmax_constants(const VectorFields& fields,
                                            VectorComparison& comparison) {
  const VectorFields given = fields.object("const_f64");
  const hw::IBertSoftmaxConstants constants{
      {given.integer("x0_int", {-(kOne << 30), -1}), given.integer("b_int", {0, kOne << 32}),
       given.integer("c_int", {0, kOne << 62})},
      dyadic_of(fields.integer("dyadic_m", kMultiplierLimits),
                fields.integer("dyadic_e", kShiftLimits))};
  const hw::IBertExpConstants derived = hw::make_ibert_exp_constants(polynomial_scale(fields));
  comparison.expect("const_f64.x0_int", constants.exp.x0, derived.x0);
  comparison.expect("const_f64.b_int", constants.exp.b, derived.b);
  comparison.expect("const_f64.c_int", constants.exp.c, derived.c);

  const double act16_scale = fields.scale("S_act16");
  if (fields.has("act16_range")) {
    const auto derived_scale = static_cast<float>(fields.scale("act16_range") / 32767.0);
    comparison.expect_same("S_act16", act16_scale, derived_scale);
  }
  check_dyadic(fields, "dyadic_m", 1.0 / act16_scale, constants.exp_to_code, comparison);
  return constants;
}

void check_softmax_row(const VectorFields& row, const std::string& place,
                       const hw::IBertSoftmaxConstants& constants, VectorComparison& comparison) {
  const auto inputs = row.nullable_integers("x_int", kInt32Limits);
  const std::size_t n = inputs.size();
  std::vector<std::int32_t> scores(n);
  std::vector<std::uint8_t> keep(n);
  for (std::size_t i = 0; i < n; ++i) {
    keep[i] = inputs[i].has_value() ? 1 : 0;
    scores[i] = static_cast<std::int32_t>(inputs[i].value_or(0));
  }
  std::vector<std::uint16_t> exponentials(n);
  std::vector<std::uint16_t> codes(n);
  hw::ibert_softmax_row(scores.data(), keep.data(), n, constants, exponentials.data(),
                        codes.data());

  const auto compare = [&](const std::string& key, const std::vector<std::uint16_t>& actual) {
    const auto expected = row.nullable_integers(key, {});
    row.expect_length(key, expected.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      comparison.expect(place + indexed(key, i), actual[i], expected[i].value_or(0));
    }
  };
  compare("q_exact", codes);
  if (row.has("exp16_exact")) compare("exp16_exact", exponentials);
  if (row.has("sum_q_exact")) {
    std::int64_t sum = 0;
    for (const std::uint16_t code : codes) sum += code;
    comparison.expect(place + "sum_q_exact", sum, row.integer("sum_q_exact", {}));
  }
}

/// Bias per channel on the output grid. A given `bias_int` is the datapath's operand; it is checked
/// against weight and bias up to one float32 step, as it may stem from either precision.
std::vector<std::int64_t> layernorm_bias(const VectorFields& fields, std::size_t n,
                                         VectorComparison& comparison) {
  const auto channel_values = [&](const std::string& key, double absent) {
    std::vector<double> values = fields.has(key) ? fields.reals(key) : std::vector<double>{absent};
    if (values.size() == 1) values.resize(n, values.front());
    fields.expect_length(key, values.size(), n);
    return values;
  };
  const std::vector<double> weight = channel_values("weight", 1.0);
  const std::vector<double> bias = channel_values("bias", 0.0);
  std::vector<std::int64_t> given;
  if (fields.has("bias_int")) {
    given = fields.integer_or_integers("bias_int", kBiasLimits);
    if (given.size() == 1) given.resize(n, given.front());
    fields.expect_length("bias_int", given.size(), n);
  }
  std::vector<std::int64_t> result = given;
  for (std::size_t i = 0; i < n; ++i) {
    const double derived = hw::ibert_layernorm_bias(weight[i], bias[i], n);
    const bool derivable =
        std::isfinite(derived) && std::fabs(derived) <= static_cast<double>(kBiasLimits.hi);
    if (given.empty()) {
      if (!derivable) fields.fail(indexed("bias", i), "bias / weight leaves 62 bits");
      result.push_back(static_cast<std::int64_t>(derived));
    } else if (derivable && fields.has("bias")) {
      const double tolerance = std::max(1.0, std::ldexp(std::fabs(derived), -22));
      comparison.expect_true(
          indexed("bias_int", i), std::fabs(derived - static_cast<double>(given[i])) <= tolerance,
          std::to_string(given[i]) + ", weight and bias give " + std::to_string(derived));
    }
  }
  return result;
}

void check_layernorm_row(const VectorFields& row, const std::string& place,
                         const std::vector<std::int32_t>& x, unsigned shift,
                         const std::vector<std::int64_t>& bias, VectorComparison& comparison) {
  const hw::IBertLayerNormStatistics actual =
      hw::ibert_layernorm_statistics(x.data(), x.size(), shift);
  if (row.has("stat_exact")) {
    const VectorFields expected = row.object("stat_exact");
    comparison.expect(place + "mean", actual.mean, expected.integer("mean", {}));
    comparison.expect(place + "sumsq", static_cast<std::int64_t>(actual.sum_squares),
                      expected.integer("sumsq", {}));
    comparison.expect(place + "std", actual.deviation, expected.integer("std", {}));
    // Undefined (null) without variance, where hw/ leaves 0.
    const std::int64_t factor = expected.has("factor") ? expected.integer("factor", {}) : 0;
    comparison.expect(place + "factor", actual.factor, factor);
  }
  const auto expected = row.nullable_integers("q_exact", {});
  row.expect_length("q_exact", expected.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    comparison.expect(place + indexed("q_exact", i),
                      hw::ibert_layernorm_output(x[i], actual, bias[i]),
                      expected[i].value_or(bias[i]));
  }
}

}  // namespace

void VectorComparison::expect_true(const std::string& what, bool holds, const std::string& text) {
  ++result_.checked;
  if (holds) return;
  if (result_.failed == 0) result_.first_failure = what + ": " + text;
  ++result_.failed;
}

void VectorComparison::add(const VectorResult& part) {
  result_.checked += part.checked;
  if (result_.failed == 0 && part.failed != 0) {
    result_.first_failure = part.name + ": " + part.first_failure;
  }
  result_.failed += part.failed;
}

void VectorComparison::expect(const std::string& what, std::int64_t actual, std::int64_t expected) {
  expect_true(what, actual == expected,
              "is " + std::to_string(actual) + ", expected " + std::to_string(expected));
}

void VectorComparison::expect_same(const std::string& what, double actual, double expected) {
  expect_true(what, actual == expected,
              "is " + std::to_string(actual) + ", expected " + std::to_string(expected));
}

void check_gelu_case(const VectorFields& fields, VectorComparison& comparison) {
  const VectorFields given = fields.object("const_f64");
  const hw::IBertGeluConstants constants{given.integer("b_int", {-(kOne << 33), -1}),
                                         given.integer("c_int", {}),
                                         given.integer("shift_int", {})};
  const double scale = polynomial_scale(fields);
  const hw::IBertGeluConstants derived = hw::make_ibert_gelu_constants(scale);
  comparison.expect("const_f64.b_int", constants.b, derived.b);
  comparison.expect("const_f64.c_int", constants.c, derived.c);
  comparison.expect("const_f64.shift_int", constants.one, derived.one);
  if (fields.has("S_out_hex")) {
    comparison.expect_same("S_out_hex", fields.reals("S_out_hex").front(),
                           hw::ibert_gelu_output_scale(scale));
  }
  const std::vector<std::int64_t> x = fields.integers("x_int", kInt32Limits);
  const std::vector<std::int64_t> expected = fields.integers("q_exact", {});
  fields.expect_length("q_exact", expected.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    try {
      comparison.expect(indexed("q_exact", i),
                        hw::ibert_gelu(static_cast<std::int32_t>(x[i]), constants), expected[i]);
    } catch (const std::overflow_error&) {
      fields.fail(indexed("x_int", i), "the result leaves 64 bits, expected a smaller input");
    }
  }
}

void check_softmax_case(const VectorFields& fields, VectorComparison& comparison) {
  const hw::IBertSoftmaxConstants constants = softmax_constants(fields, comparison);
  const std::vector<VectorFields> rows = fields.objects("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_softmax_row(rows[i], indexed("rows", i) + ".", constants, comparison);
  }
}

void check_layernorm_case(const VectorFields& fields, VectorComparison& comparison) {
  constexpr std::int64_t kMaxLength = 1 << 20;
  const auto n = static_cast<std::size_t>(fields.integer("n", {1, kMaxLength}));
  const std::vector<std::int64_t> bias = layernorm_bias(fields, n, comparison);
  const std::vector<VectorFields> rows = fields.objects("rows");
  std::vector<std::vector<std::int32_t>> inputs;
  unsigned derived_shift = 0;
  for (const VectorFields& row : rows) {
    const std::vector<std::int64_t> x = row.integers("x_int", kInt32Limits);
    row.expect_length("x_int", x.size(), n);
    inputs.emplace_back(x.begin(), x.end());
    derived_shift = std::max(derived_shift, hw::ibert_layernorm_shift(inputs.back().data(), n));
  }
  unsigned shift = derived_shift;
  if (fields.has("shift_f64")) {
    shift = static_cast<unsigned>(fields.integer("shift_f64", {0, 31}));
    comparison.expect("shift_f64", shift, derived_shift);
  }
  if (fields.has("S_out_base")) {
    comparison.expect_same("S_out_base", fields.scale("S_out_base"),
                           hw::ibert_layernorm_output_scale(n));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_layernorm_row(rows[i], indexed("rows", i) + ".", inputs[i], shift, bias, comparison);
  }
}

void check_requantisation_case(const VectorFields& fields, VectorDatapath* datapath,
                               VectorComparison& comparison) {
  const auto bits = static_cast<unsigned>(fields.integer("bit_num", {2, 32}));
  ScaledBranch activation{fields.integers("x_int", kInt32Limits), {}};
  const std::size_t n = activation.x.size();
  const std::vector<std::int64_t> expected = fields.integers("q_exact", {});
  fields.expect_length("q_exact", expected.size(), n);
  activation.factors = requantisation_factors(fields, "S_in", "m", "e", comparison);
  if (n % activation.factors.size() != 0) {
    fields.fail("m", std::to_string(activation.factors.size()) +
                         " channels, expected a divisor of the " + std::to_string(n) + " inputs");
  }
  if (datapath != nullptr) scale_branch(fields, "x_int", "e", *datapath, activation);
  std::vector<std::int64_t> residual(n, 0);
  if (fields.has("identity_int")) {
    ScaledBranch identity{fields.integers("identity_int", kInt32Limits), {}};
    fields.expect_length("identity_int", identity.x.size(), n);
    identity.factors = requantisation_factors(fields, "S_identity", "m_id", "e_id", comparison);
    if (datapath != nullptr) scale_branch(fields, "identity_int", "e_id", *datapath, identity);
    for (std::size_t i = 0; i < n; ++i) {
      residual[i] =
          hw::scale(identity.x[i], broadcast(identity.factors, i), hw::Rounding::kHalfEven);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    comparison.expect(indexed("q_exact", i),
                      hw::ibert_requantise(static_cast<std::int32_t>(activation.x[i]),
                                           broadcast(activation.factors, i), residual[i], bits),
                      expected[i]);
  }
}

}  // namespace systole::model
