#include "hw/row_kernels.h"

#include <gtest/gtest.h>
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL  // as in the kernels
#endif
#include <hwy/targets.h>

#include <functional>
#include <string>
#include <vector>

#include "hw/row_plain.h"
#include "tests/hw/postop_oracle.h"

namespace systole::hw::row {
namespace {

using test::any_int32;
using test::pick;
using test::Random;

/// Every vector instruction set that this processor has, one at a time.
class RowKernels : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  using Kernel = std::function<void(std::int32_t* x, std::size_t n)>;

  /// Both kernels on the same elements, at every length around whole vectors.
  void expect_same(const Kernel& vectors, const Kernel& plain, int narrow = 0) {
    const auto n = static_cast<std::size_t>(pick(random_, 1, 80));
    constexpr std::int32_t kGuard = 0x5a5a5a5a;
    std::vector<std::int32_t> x(n + 1);
    for (std::int32_t& value : x) value = any_int32(random_) >> narrow;
    x[n] = kGuard;
    std::vector<std::int32_t> expected = x;
    vectors(x.data(), n);
    plain(expected.data(), n);
    ASSERT_EQ(x, expected);
  }

  std::vector<std::int32_t> words(std::size_t n) {
    std::vector<std::int32_t> result(n);
    for (std::int32_t& value : result) value = any_int32(random_);
    return result;
  }

  Clamp limits() {
    const std::int32_t a = any_int32(random_);
    const std::int32_t b = any_int32(random_);
    return {std::min(a, b), std::max(a, b)};
  }

  Dyadic factor() {
    return {std::max(any_int32(random_), -2147483647),
            static_cast<std::int8_t>(pick(random_, 0, 63))};
  }

  Rounding rounding() { return static_cast<Rounding>(pick(random_, 0, 2)); }

  Random random_{17};
};

constexpr int kRounds = 2000;

TEST_P(RowKernels, AddLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const std::vector<std::int32_t> y = words(80);
    expect_same([&](std::int32_t* x, std::size_t n) { add(x, y.data(), n, 1); },
                [&](std::int32_t* x, std::size_t n) { plain::add_rows(x, y.data(), n, 1); });
  }
}

TEST_P(RowKernels, ClampLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const Clamp bounds = limits();
    expect_same([&](std::int32_t* x, std::size_t n) { clamp(x, n, bounds); },
                [&](std::int32_t* x, std::size_t n) { plain::clamp_row(x, n, bounds); });
  }
}

TEST_P(RowKernels, RequantiseLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const Dyadic f = factor();
    const Rounding r = rounding();
    const Clamp bounds = limits();
    expect_same([&](std::int32_t* x, std::size_t n) { requantise(x, n, f, r, bounds); },
                [&](std::int32_t* x, std::size_t n) { plain::requantise_row(x, n, f, r, bounds); });
  }
}

TEST_P(RowKernels, RequantiseTiesByEveryRounding) {
  for (const Rounding r : {Rounding::kHalfUp, Rounding::kHalfEven, Rounding::kFloor}) {
    for (std::int8_t shift = 0; shift <= kMaxDyadicShift; ++shift) {
      for (const std::int32_t multiplier : {1, -1, 3, 1 << 30, 2147483647, -2147483647}) {
        const Dyadic f{multiplier, shift};
        std::vector<std::int32_t> x = {0, 1, -1, 2, -2, 2147483647, -2147483647 - 1};
        for (int bit = 0; bit < 31; ++bit) {
          for (const std::int32_t odd : {1, 3, -1, -3}) x.push_back(odd * (1 << std::min(bit, 29)));
        }
        std::vector<std::int32_t> expected = x;
        constexpr Clamp kAll{-2147483647 - 1, 2147483647};
        requantise(x.data(), x.size(), f, r, kAll);
        plain::requantise_row(expected.data(), expected.size(), f, r, kAll);
        ASSERT_EQ(x, expected) << multiplier << " >> " << int{shift};
      }
    }
  }
}

TEST_P(RowKernels, RequantiseChannelsLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int32_t> shifts;
    for (int c = 0; c < 80; ++c) {
      const Dyadic f = factor();
      multipliers.push_back(f.multiplier);
      shifts.push_back(f.shift);
    }
    const Rounding r = rounding();
    const Clamp bounds = limits();
    expect_same(
        [&](std::int32_t* x, std::size_t n) {
          requantise_channels(x, n, 1, multipliers.data(), shifts.data(), r, bounds);
        },
        [&](std::int32_t* x, std::size_t n) {
          plain::requantise_channels_rows(x, n, 1, multipliers.data(), shifts.data(), r, bounds);
        });
  }
}

TEST_P(RowKernels, GeluLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const Stage stage = test::random_stage(random_, StageOp::kGelu);
    const GeluConstants constants{stage.imm[0], stage.imm[1], stage.imm[2],
                                  test::dyadic(stage.imm[3], stage.imm[4])};
    const Clamp bounds = limits();
    const int narrow = static_cast<int>(pick(random_, 0, 24));
    expect_same([&](std::int32_t* x, std::size_t n) { gelu(x, n, constants, bounds); },
                [&](std::int32_t* x, std::size_t n) { plain::gelu_row(x, n, constants, bounds); },
                narrow);
  }
}

SoftmaxConstants random_softmax(Random& random) {
  const Stage stage = test::random_stage(random, StageOp::kSoftmax);
  return {static_cast<SoftmaxMode>(stage.imm[0]),
          test::dyadic(stage.imm[1], stage.imm[2]),
          make_int_exp_constants(static_cast<unsigned>(stage.imm[3])),
          test::dyadic(stage.imm[4], stage.imm[5]),
          static_cast<unsigned>(stage.imm[6]),
          32};
}

TEST_P(RowKernels, ExponentialsLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const SoftmaxConstants constants = random_softmax(random_);
    const int narrow = static_cast<int>(pick(random_, 0, 24));
    expect_same(
        [&](std::int32_t* x, std::size_t n) { exponentials(x, n, maximum(x, n), constants); },
        [&](std::int32_t* x, std::size_t n) {
          plain::exponentials_row(x, n, plain::maximum_row(x, n), constants);
        },
        narrow);
  }
}

TEST_P(RowKernels, ExponentialsOfEveryArgument) {
  for (unsigned bits = kMinExpFractionBits; bits <= kMaxExpFractionBits; ++bits) {
    SoftmaxConstants constants = make_softmax_constants(1.0);
    constants.exp = make_int_exp_constants(bits);
    constants.score = {1, 0};
    std::vector<std::int32_t> x(32771);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = -static_cast<std::int32_t>(i);
    std::vector<std::int32_t> expected = x;
    exponentials(x.data(), x.size(), 0, constants);
    plain::exponentials_row(expected.data(), expected.size(), 0, constants);
    ASSERT_EQ(x, expected) << bits << " fraction bits";
  }
}

TEST_P(RowKernels, NormaliseLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    SoftmaxConstants constants = random_softmax(random_);
    constants.mode = i % 2 == 0 ? SoftmaxMode::kNormalisedFloor : SoftmaxMode::kNormalisedRound;
    const int narrow = static_cast<int>(pick(random_, 0, 24));
    expect_same(
        [&](std::int32_t* x, std::size_t n) {
          exponentials(x, n, maximum(x, n), constants);
          normalise_exponentials(x, n, sum_unsigned(x, n), constants);
        },
        [&](std::int32_t* x, std::size_t n) {
          plain::exponentials_row(x, n, plain::maximum_row(x, n), constants);
          plain::normalise_row(x, n, plain::sum_unsigned_row(x, n), constants);
        },
        narrow);
  }
}

TEST_P(RowKernels, LayerNormLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const std::vector<std::int32_t> multipliers = words(80);
    const std::vector<std::int32_t> biases = words(80);
    const LayerNormFactors factors{multipliers.data(), biases.data(),
                                   static_cast<unsigned>(pick(random_, 0, 62)),
                                   static_cast<unsigned>(pick(random_, 1, 30))};
    const Clamp bounds = limits();
    // 24-bit inputs at most; narrow ones reach deviations of zero and one.
    const int narrow = static_cast<int>(pick(random_, 8, 32)) - 1;
    expect_same(
        [&](std::int32_t* x, std::size_t n) {
          clamp(x, n, {-(1 << 23), (1 << 23) - 1});
          layer_norm_output(x, n, layer_norm_statistics(x, n), factors, bounds);
        },
        [&](std::int32_t* x, std::size_t n) {
          plain::clamp_row(x, n, {-(1 << 23), (1 << 23) - 1});
          plain::layer_norm_row(x, n, layernorm_statistics(x, n), factors, bounds);
        },
        std::min(narrow, 31));
  }
}

TEST_P(RowKernels, LayerNormStatisticsOfTheLongestRow) {
  std::vector<std::int32_t> x(kLayerNormMaxLength);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? -(1 << 23) : (1 << 23) - 1;
  const LayerNormStatistics wide = layer_norm_statistics(x.data(), x.size());
  const LayerNormStatistics scalar = layernorm_statistics(x.data(), x.size());
  EXPECT_EQ(wide.mean, scalar.mean);
  EXPECT_EQ(wide.sum_squares, scalar.sum_squares);
  EXPECT_EQ(wide.factor, scalar.factor);
}

TEST_P(RowKernels, ConvertEveryTypeBothWays) {
  for (int i = 0; i < kRounds; ++i) {
    const auto type = static_cast<DType>(i % kDTypes);
    const auto n = static_cast<std::size_t>(pick(random_, 1, 80));
    const std::vector<std::int32_t> x = words(n);
    std::vector<unsigned char> memory(n * bytes_of(type) + 2, 0xa5);
    narrow(x.data(), memory.data() + 1, type, n);
    std::vector<std::int32_t> back(n);
    widen(memory.data() + 1, type, back.data(), n);
    for (std::size_t j = 0; j < n; ++j) {
      ASSERT_EQ(back[j], saturate(x[j], test::range_of(type))) << name_of(type);
    }
    ASSERT_EQ(memory.front(), 0xa5);
    ASSERT_EQ(memory.back(), 0xa5);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, RowKernels,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<std::int64_t>& test) {
                           return std::string(hwy::TargetName(test.param));
                         });

}  // namespace
}  // namespace systole::hw::row
