#include "hw/function/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "hw/function/ibert_softmax.h"
#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

using Keep = std::vector<std::uint8_t>;
using Scores = std::vector<std::int32_t>;

constexpr double kScoreScale = 1.0 / 256;

SoftmaxOptions options_of(SoftmaxMode mode, unsigned output_bits = 8) {
  SoftmaxOptions options;
  options.mode = mode;
  options.output_bits = output_bits;
  return options;
}

struct SoftmaxRow {
  std::vector<std::uint16_t> codes;
  std::uint32_t divisor;
};

SoftmaxRow run(const Scores& scores, const SoftmaxConstants& constants, const Keep& keep = {}) {
  SoftmaxRow row{std::vector<std::uint16_t>(scores.size()), 0};
  row.divisor = softmax_row(scores.data(), keep.empty() ? nullptr : keep.data(), scores.size(),
                            constants, row.codes.data());
  return row;
}

std::uint64_t total(const SoftmaxRow& row) {
  return std::accumulate(row.codes.begin(), row.codes.end(), std::uint64_t{0});
}

Scores random_scores(std::size_t n, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, deviation / kScoreScale);
  Scores scores(n);
  for (auto& score : scores) score = static_cast<std::int32_t>(std::lround(normal(random)));
  return scores;
}

std::vector<double> real_softmax(const Scores& scores) {
  const double maximum = *std::max_element(scores.begin(), scores.end());
  std::vector<double> result;
  for (const std::int32_t score : scores) result.push_back(std::exp((score - maximum) / 256));
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& value : result) value /= sum;
  return result;
}

SoftmaxMode softmax_mode(const std::string& name) {
  if (name == "deferred") return SoftmaxMode::kDeferred;
  return name == "ibert" ? SoftmaxMode::kNormalisedFloor : SoftmaxMode::kNormalisedRound;
}

TEST(Softmax, MatchesTheReferenceTableInEveryMode) {
  for (const auto& entry : golden_cases("datapath/softmax.json")) {
    SoftmaxOptions options = options_of(softmax_mode(entry["mode"]), entry["bits"]);
    options.fraction_bits = entry["fraction_bits"];
    options.factor_bits = entry["factor_bits"];
    const SoftmaxConstants constants = make_softmax_constants(entry["score_scale"], options);
    EXPECT_EQ(constants.score.multiplier, entry["m"]);
    EXPECT_EQ(constants.score.shift, entry["s"]);
    EXPECT_EQ(constants.exp_to_code.multiplier, entry["em"]);
    EXPECT_EQ(constants.exp_to_code.shift, entry["es"]);
    const SoftmaxRow row = run(entry["scores"].get<Scores>(), constants, entry["keep"].get<Keep>());
    EXPECT_EQ(row.codes, entry["codes"].get<std::vector<std::uint16_t>>()) << entry["mode"];
    if (options.mode != SoftmaxMode::kDeferred) continue;
    EXPECT_EQ(row.divisor, entry["sum"]);
    const auto acc = entry["acc"].get<Scores>();
    for (std::size_t i = 0; i < acc.size(); ++i) {
      EXPECT_EQ(deferred_divide(acc[i], row.divisor), entry["divided"][i]);
    }
  }
}

TEST(Softmax, DeferredCodesFollowTheRealFunctionRelativeToTheMaximum) {
  const SoftmaxConstants constants = make_softmax_constants(kScoreScale);
  for (const double deviation : {0.3, 1.0, 3.0}) {
    const Scores scores = random_scores(500, deviation, 11);
    const SoftmaxRow row = run(scores, constants);
    const std::vector<double> expected = real_softmax(scores);
    EXPECT_EQ(row.divisor, total(row));
    EXPECT_EQ(*std::max_element(row.codes.begin(), row.codes.end()), 255);
    const double highest = *std::max_element(expected.begin(), expected.end());
    for (std::size_t i = 0; i < scores.size(); ++i) {
      // Half a code, and the exponential's own error.
      EXPECT_NEAR(row.codes[i] / 255.0, expected[i] / highest, 0.5 / 255 + 3e-3);
    }
  }
}

TEST(Softmax, NormalisedCodesFollowTheRealFunction) {
  const Scores scores = random_scores(100, 2.0, 5);
  const std::vector<double> expected = real_softmax(scores);
  const SoftmaxRow floored =
      run(scores, make_softmax_constants(kScoreScale, options_of(SoftmaxMode::kNormalisedFloor)));
  const SoftmaxRow rounded = run(
      scores, make_softmax_constants(kScoreScale, options_of(SoftmaxMode::kNormalisedRound, 16)));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(floored.codes[i] / 256.0, expected[i], 1.1 / 256 + 3e-3);
    EXPECT_NEAR(rounded.codes[i] / 65536.0, expected[i], 3e-3);
  }
  EXPECT_LT(total(floored), 256U);
  EXPECT_EQ(floored.divisor, 1U);
}

TEST(Softmax, UniformRowOf256KeysVanishesInTheFlooredModeOnly) {
  const auto uniform = [](SoftmaxMode mode, std::size_t n) {
    return run(Scores(n, -7), make_softmax_constants(kScoreScale, options_of(mode)));
  };
  EXPECT_EQ(total(uniform(SoftmaxMode::kNormalisedFloor, 255)), 255U);
  EXPECT_EQ(total(uniform(SoftmaxMode::kNormalisedFloor, 256)), 0U);
  EXPECT_EQ(total(uniform(SoftmaxMode::kNormalisedRound, 256)), 256U);
  EXPECT_EQ(uniform(SoftmaxMode::kDeferred, 256).divisor, 256U * 255U);
}

TEST(Softmax, MaskedCellsLeaveTheRowAsIfTheyWereNotThere) {
  for (const SoftmaxMode mode :
       {SoftmaxMode::kDeferred, SoftmaxMode::kNormalisedFloor, SoftmaxMode::kNormalisedRound}) {
    const SoftmaxConstants constants = make_softmax_constants(kScoreScale, options_of(mode));
    Scores scores = random_scores(60, 1.5, 3);
    Keep keep(scores.size(), 1);
    Scores compact;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (i % 3 == 0) {
        keep[i] = 0;
        scores[i] = std::numeric_limits<std::int32_t>::max();
      } else {
        compact.push_back(scores[i]);
      }
    }
    const SoftmaxRow masked = run(scores, constants, keep);
    const SoftmaxRow reference = run(compact, constants);
    EXPECT_EQ(masked.divisor, reference.divisor);
    std::size_t next = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      EXPECT_EQ(masked.codes[i], keep[i] != 0 ? reference.codes[next++] : 0);
    }
  }
}

TEST(Softmax, RowWithoutAKeptCellIsZeroWithDivisorOne) {
  for (const SoftmaxMode mode :
       {SoftmaxMode::kDeferred, SoftmaxMode::kNormalisedFloor, SoftmaxMode::kNormalisedRound}) {
    const SoftmaxRow row =
        run({5, 6, 7}, make_softmax_constants(kScoreScale, options_of(mode)), Keep{0, 0, 0});
    EXPECT_EQ(total(row), 0U);
    EXPECT_EQ(row.divisor, 1U);
  }
  EXPECT_EQ(deferred_divide(0, 1), 0);
}

TEST(Softmax, DependsOnDifferencesOnlyUpToTheEndsOfInt32) {
  const SoftmaxConstants constants = make_softmax_constants(kScoreScale);
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  const SoftmaxRow reference = run({0, -100, -300}, constants);
  EXPECT_EQ(run({kMax, kMax - 100, kMax - 300}, constants).codes, reference.codes);
  EXPECT_EQ(run({kMin + 300, kMin + 200, kMin}, constants).codes, reference.codes);
  EXPECT_EQ(run({kMin, kMax}, constants).codes, (std::vector<std::uint16_t>{0, 255}));
  SoftmaxOptions wide;
  wide.multiplier_bits = 31;
  EXPECT_EQ(run({kMin, kMax}, make_softmax_constants(kScoreScale, wide)).codes,
            (std::vector<std::uint16_t>{0, 255}));
}

TEST(Softmax, EightBitCodesFitABytePerCell) {
  std::vector<std::uint8_t> bytes(3);
  const Scores scores{10, 0, 10};
  const std::uint32_t sum =
      softmax_row(scores.data(), nullptr, 3, make_softmax_constants(kScoreScale), bytes.data());
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{255, 245, 255}));
  EXPECT_EQ(sum, 755U);
  const SoftmaxConstants wide =
      make_softmax_constants(kScoreScale, options_of(SoftmaxMode::kNormalisedRound, 16));
  EXPECT_THROW(softmax_row(scores.data(), nullptr, 3, wide, bytes.data()), std::invalid_argument);
}

TEST(Softmax, RefusesOptionsAndScalesOutOfRange) {
  SoftmaxOptions options;
  options.output_bits = 17;
  EXPECT_THROW(make_softmax_constants(0.01, options), std::invalid_argument);
  options = {};
  options.factor_bits = 49;
  EXPECT_THROW(make_softmax_constants(0.01, options), std::invalid_argument);
  EXPECT_THROW(make_softmax_constants(0.0), InputError);
  EXPECT_THROW(make_softmax_constants(std::nan("")), InputError);
  EXPECT_THROW(make_softmax_constants(1e6), InputError);
}

TEST(DeferredDivide, GivesEightFractionBitsOfTheWeightedMean) {
  EXPECT_EQ(deferred_divide(255 * 100, 255), 25600);
  EXPECT_EQ(deferred_divide(-255 * 127, 255), -127 * 256);
  EXPECT_EQ(deferred_divide(7, 0), 7 * 256);
  EXPECT_EQ(deferred_divide(2097152, 1 << 22), 128);
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto sum = static_cast<std::uint32_t>(255 + random() % 65000);
    const auto acc = static_cast<std::int32_t>(random() % (2 * 127 * sum)) -
                     static_cast<std::int32_t>(127 * sum);
    const double exact = 256.0 * acc / sum;
    EXPECT_NEAR(static_cast<double>(deferred_divide(acc, sum)), exact,
                0.5 + std::fabs(exact) * sum / (1 << 24));
  }
}

/// Constants whose 16-bit code maps the exponential's value at zero to 32767.
IBertSoftmaxConstants constants_of(double scale) {
  const IBertExpConstants exp = make_ibert_exp_constants(scale);
  const double at_zero = std::ldexp(static_cast<double>(exp.c), kIBertExpHalvings);
  return {exp, make_ibert_dyadic(32767 / at_zero)};
}

struct IBertRow {
  std::vector<std::uint16_t> exponentials;
  std::vector<std::uint16_t> codes;
};

IBertRow run(const std::vector<std::int32_t>& scores, const IBertSoftmaxConstants& constants,
             const std::vector<std::uint8_t>& keep = {}) {
  const std::size_t n = scores.size();
  IBertRow row{std::vector<std::uint16_t>(n), std::vector<std::uint16_t>(n)};
  ibert_softmax_row(scores.data(), keep.empty() ? nullptr : keep.data(), n, constants,
                    row.exponentials.data(), row.codes.data());
  return row;
}

TEST(IBertSoftmax, GivesTheExactCodesWhereFloatingPointOverflowsThem) {
  const IBertSoftmaxConstants constants = constants_of(0.01);
  EXPECT_EQ(run({42}, constants).codes, (std::vector<std::uint16_t>{255}));
  EXPECT_EQ(run({9, 9}, constants).codes, (std::vector<std::uint16_t>{127, 127}));
  EXPECT_EQ(run(std::vector<std::int32_t>(256, 3), constants).codes.front(), 0);
}

TEST(IBertSoftmax, FoldsTheShiftLeftOfThirtyBitsWithoutChangingTheValue) {
  // At this scale the unfolded product still fits 128 bits: z * 2^(30 - k) * m.
  const IBertSoftmaxConstants constants = constants_of(0.002);
  for (std::int64_t difference = -12000; difference <= 0; ++difference) {
    const IBertExp exp = ibert_exp(difference, constants.exp);
    const Int128 product = (Int128{exp.polynomial} << (kIBertExpHalvings - exp.halvings)) *
                           constants.exp_to_code.multiplier;
    const int shift = constants.exp_to_code.shift;
    Int128 expected = (product + (Int128{1} << (shift - 1))) >> shift;
    if ((expected << shift) - product == Int128{1} << (shift - 1)) expected -= expected & 1;
    expected = std::min<Int128>(expected, 32767);
    ASSERT_EQ(ibert_softmax_exponential(difference, constants),
              static_cast<std::uint32_t>(expected))
        << difference;
  }
}

TEST(IBertSoftmax, RoundsTheExponentialHalfToEven) {
  // Polynomial 5 and 7 at zero, factor 2^-31 * 2^30 = 1/2.
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 5}, {1, 31}}), 2U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 7}, {1, 31}}), 4U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 5}, {3, 32}}), 4U);
}

TEST(IBertSoftmax, SaturatesTheExponentialAt32767ForEveryShift) {
  for (const std::int8_t shift : std::vector<std::int8_t>{-128, -20, 0, 16, 30}) {
    EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 100000}, {1, shift}}), 32767U);
  }
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 100000}, {1, 127}}), 0U);
  EXPECT_EQ(ibert_softmax_exponential(0, {{-1, 0, 3}, {1, 28}}), 12U);
}

TEST(IBertSoftmax, MaskedCellsTakeNoPart) {
  const IBertSoftmaxConstants constants = constants_of(0.02);
  const IBertRow row = run({10, 1000000, 12, 2000000, -3}, constants, {1, 0, 1, 0, 1});
  const IBertRow compact = run({10, 12, -3}, constants);
  EXPECT_EQ(row.codes, (std::vector<std::uint16_t>{compact.codes[0], 0, compact.codes[1], 0,
                                                   compact.codes[2]}));
  EXPECT_EQ(row.exponentials[1], 0);
}

TEST(IBertSoftmax, RowWithoutAKeptCellIsZero) {
  const IBertRow row = run({1, 2}, constants_of(0.02), {0, 0});
  EXPECT_EQ(row.codes, (std::vector<std::uint16_t>{0, 0}));
}

}  // namespace
}  // namespace systole::hw
