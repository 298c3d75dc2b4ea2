#include <numeric>

#include "hw/function/rms_norm.h"
#include "hw/postop/stage_constants.h"
#include "tests/hw/kernel/row_kernel_targets.h"

namespace systole::hw::row {
namespace {

using test::pick;
using test::Random;

class RowKernels : public test::RowKernelTest {};

constexpr int kRounds = 2000;

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
    const GeluConstants constants = gelu_constants(stage);
    const Clamp bounds = limits();
    const int narrow = static_cast<int>(pick(random_, 0, 24));
    expect_same([&](std::int32_t* x, std::size_t n) { gelu(x, n, constants, bounds); },
                [&](std::int32_t* x, std::size_t n) { plain::gelu_row(x, n, constants, bounds); },
                narrow);
  }
}

TEST_P(RowKernels, SiluLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const auto fraction_bits =
        static_cast<unsigned>(pick(random_, kMinExpFractionBits, kMaxExpFractionBits));
    Dyadic argument = factor();
    argument.multiplier = std::max(argument.multiplier, -argument.multiplier);
    const SiluConstants constants{argument, make_int_exp_constants(fraction_bits), factor()};
    const Clamp bounds = limits();
    const int narrow = static_cast<int>(pick(random_, 0, 24));
    expect_same([&](std::int32_t* x, std::size_t n) { silu(x, n, constants, bounds); },
                [&](std::int32_t* x, std::size_t n) { plain::silu_row(x, n, constants, bounds); },
                narrow);
  }
}

TEST_P(RowKernels, SiluOfEveryInput) {
  for (const unsigned fraction_bits : {1U, 8U, 14U}) {
    SiluConstants constants = make_silu_constants(8.0 / 32767, 1.0 / 4096);
    constants.exp = make_int_exp_constants(fraction_bits);
    std::vector<std::int32_t> x(65536 + 3);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i) - 32769;
    std::vector<std::int32_t> expected = x;
    silu(x.data(), x.size(), constants, {-40000, 40000});
    plain::silu_row(expected.data(), expected.size(), constants, {-40000, 40000});
    ASSERT_EQ(x, expected) << fraction_bits << " fraction bits";
  }
}

SoftmaxConstants random_softmax(Random& random) {
  return softmax_constants(test::random_stage(random, StageOp::kSoftmax));
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

/// Statistics of a row, or of words that belong to none.
LayerNormStatistics any_statistics(Random& random) {
  const auto word = [&random] { return (pick(random, 0, 1) << 63) ^ pick(random, 0, INT64_MAX); };
  const auto n = static_cast<std::size_t>(pick(random, 1, kLayerNormMaxLength));
  const std::int64_t sum = word() >> pick(random, 0, 63);
  const auto squares = static_cast<std::uint64_t>(word()) >> pick(random, 0, 63);
  return pick(random, 0, 1) == 0 ? rms_norm_statistics(squares)
                                 : layernorm_statistics_from_sums(sum, squares, n);
}

TEST_P(RowKernels, NormOfAnyStatisticsLikeThePlainLoop) {
  for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
    const std::vector<std::int32_t> multipliers = words(80);
    const std::vector<std::int32_t> biases = words(80);
    const LayerNormFactors factors{multipliers.data(), i % 2 == 0 ? biases.data() : nullptr,
                                   static_cast<unsigned>(pick(random_, 0, 62)),
                                   static_cast<unsigned>(pick(random_, 1, 30))};
    const Clamp bounds = limits();
    const LayerNormStatistics statistics = any_statistics(random_);
    expect_same([&](std::int32_t* x,
                    std::size_t n) { layer_norm_output(x, n, statistics, factors, bounds); },
                [&](std::int32_t* x, std::size_t n) {
                  plain::layer_norm_row(x, n, statistics, factors, bounds);
                },
                static_cast<int>(pick(random_, 8, 31)));
  }
}

TEST_P(RowKernels, SumsOfARow) {
  for (int i = 0; i < kRounds; ++i) {
    std::vector<std::int32_t> x = words(static_cast<std::size_t>(pick(random_, 1, 80)));
    ASSERT_EQ(sum(x.data(), x.size()), std::accumulate(x.begin(), x.end(), std::int64_t{0}));
    std::uint64_t squares = 0;
    for (std::int32_t& value : x) {
      value >>= 8;
      squares += static_cast<std::uint64_t>(std::int64_t{value} * value);
    }
    ASSERT_EQ(sum_squares(x.data(), x.size()), squares);
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
      ASSERT_EQ(back[j], saturate(x[j], range_of(type))) << name_of(type);
    }
    ASSERT_EQ(memory.front(), 0xa5);
    ASSERT_EQ(memory.back(), 0xa5);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, RowKernels, test::every_target(), systole::test::target_name);

}  // namespace
}  // namespace systole::hw::row
