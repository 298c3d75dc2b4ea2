#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hw/function/softmax.h"
#include "hw/number/softmax_mode.h"
#include "hw/postop/postop.h"
#include "model/checkpoint/keep_mask.h"
#include "model/graph/stages.h"
#include "model/integer/integer_vit.h"
#include "tests/support/input_error.h"

/// The softmax chain of a machine with a mask's table in it.
namespace systole::model {
namespace {

/// A machine's softmax after a score of s8 vectors.
struct ScoreCase {
  const char* name;
  std::uint32_t head_width;
  double largest_score;  ///< real value of the largest possible product
  hw::Machine::Datapath datapath;
};

/// The masked chain of the machine, and softmax with a keep mask, on the same rows.
class MaskedSoftmax : public ::testing::TestWithParam<ScoreCase> {
 protected:
  MaskedSoftmax()
      : largest_(static_cast<std::int32_t>(GetParam().head_width) * 127 * 127),
        constants_(hw::make_softmax_constants(
            GetParam().largest_score / largest_,
            {GetParam().datapath.softmax, GetParam().datapath.softmax_bits, hw::kScoreFractionBits,
             GetParam().datapath.multiplier_bits})),
        factor_(prune_factor(constants_.score, GetParam().head_width,
                             GetParam().datapath.multiplier_bits)) {}

  /// Codes, and the row sum after them.
  std::vector<std::uint32_t> chain(const std::vector<std::int32_t>& scores,
                                   const std::vector<std::uint8_t>& keep, hw::Dyadic factor) const {
    const hw::Machine::Datapath& datapath = GetParam().datapath;
    const std::size_t n = scores.size();
    std::vector<std::int8_t> table(n, 0);
    std::transform(keep.begin(), keep.end(), table.begin(),
                   [](std::uint8_t kept) { return kept != 0 ? std::int8_t{0} : kPrunedCode; });
    const hw::Chain chain{
        {add_tensor_stage(hw::DType::kS8, factor, kBranchBits, datapath.rounding),
         softmax_stage(datapath, constants_.score, hw::kScoreFractionBits, constants_.exp_to_code)},
        hw::DType::kU8};
    hw::check_chain(chain, {});
    std::vector<std::uint8_t> codes(n);
    std::uint32_t row_sum = 0;
    hw::ChainOperands operands;
    operands.accumulator = scores.data();
    operands.accumulator_pitch = n;
    operands.tensors[0] = {table.data(), n};
    operands.row_statistics = &row_sum;
    operands.out = codes.data();
    operands.out_pitch = n;
    operands.rows = 1;
    operands.cols = n;
    hw::apply_chain(chain, operands);
    std::vector<std::uint32_t> result(codes.begin(), codes.end());
    const bool deferred = datapath.softmax == hw::SoftmaxMode::kDeferred;
    result.push_back(deferred ? row_sum : 1);
    return result;
  }

  std::vector<std::uint32_t> direct(const std::vector<std::int32_t>& scores,
                                    const std::vector<std::uint8_t>& keep) const {
    std::vector<std::uint32_t> result(scores.size());
    const std::uint32_t divisor =
        hw::softmax_row(scores.data(), keep.data(), scores.size(), constants_, result.data());
    result.push_back(divisor);
    return result;
  }

  std::int32_t largest_;
  hw::SoftmaxConstants constants_;
  hw::Dyadic factor_;
};

/// The row's maximum is the lowest product there is, so every pruned score of the whole range is as
/// far above it as can be.
TEST_P(MaskedSoftmax, EveryPrunedScoreVanishesBesideTheLowestMaximum) {
  constexpr std::int32_t kCells = 1 << 12;
  const std::int32_t step = std::max(1, largest_ / (1 << 18));
  for (std::int64_t first = -largest_; first <= largest_; first += std::int64_t{kCells} * step) {
    std::vector<std::int32_t> scores{-largest_};
    for (std::int32_t i = 0; i < kCells; ++i) {
      scores.push_back(
          static_cast<std::int32_t>(std::min<std::int64_t>(first + i * step, largest_)));
    }
    scores.push_back(largest_);
    std::vector<std::uint8_t> keep(scores.size(), 0);
    keep.front() = 1;
    ASSERT_EQ(chain(scores, keep, factor_), direct(scores, keep)) << first;
  }
}

TEST_P(MaskedSoftmax, EveryMaximumBesideTheHighestPrunedScore) {
  const std::int32_t step = std::max(1, largest_ / (1 << 16));
  for (std::int64_t maximum = -largest_; maximum <= largest_; maximum += step) {
    const auto kept = static_cast<std::int32_t>(maximum);
    const std::vector<std::int32_t> scores{largest_, kept, std::max(kept - 1, -largest_), largest_};
    ASSERT_EQ(chain(scores, {0, 1, 1, 0}, factor_), direct(scores, {0, 1, 1, 0})) << maximum;
  }
}

TEST_P(MaskedSoftmax, RandomRowsAndMasks) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    // Spread over the whole range in some rows, crowded in others.
    const std::int32_t range = std::max(1, largest_ >> (random() % 20));
    std::uniform_int_distribution<std::int32_t> score(-range, range);
    const std::size_t n = 1 + random() % 70;
    std::vector<std::int32_t> scores(n);
    std::vector<std::uint8_t> keep(n);
    for (std::size_t i = 0; i < n; ++i) {
      scores[i] = score(random);
      keep[i] = static_cast<std::uint8_t>(random() % 4 == 0);
    }
    keep[random() % n] = 1;
    ASSERT_EQ(chain(scores, keep, factor_), direct(scores, keep)) << round;
  }
}

/// The factor is not larger than it must be by much, so what the tests above see is its doing.
TEST_P(MaskedSoftmax, HalfTheFactorLetsPrunedScoresThrough) {
  const std::vector<std::int32_t> scores{-largest_, largest_};
  const hw::Dyadic half{factor_.multiplier / 2, factor_.shift};
  EXPECT_NE(chain(scores, {1, 0}, half), direct(scores, {1, 0}));
}

constexpr hw::Machine::Datapath kFloor{16, hw::Rounding::kHalfEven, 16,
                                       hw::SoftmaxMode::kNormalisedFloor, 8};
constexpr hw::Machine::Datapath kIBertScores{31, hw::Rounding::kHalfEven, 22,
                                             hw::SoftmaxMode::kNormalisedRound, 8};

INSTANTIATE_TEST_SUITE_P(
    Datapaths, MaskedSoftmax,
    ::testing::Values(ScoreCase{"one_wide", 1, 3.0, {}}, ScoreCase{"vit65", 16, 20.0, {}},
                      ScoreCase{"deit", 64, 60.0, {}}, ScoreCase{"flat", 16, 1.0, {}},
                      ScoreCase{"steep", 16, 900.0, {}}, ScoreCase{"floor", 16, 20.0, kFloor},
                      ScoreCase{"ibert", 4096, 200.0, kIBertScores}),
    [](const auto& score) { return std::string(score.param.name); });

TEST(PruneFactor, RefusesWhatNoMultiplierHolds) {
  const hw::Dyadic score{40000, 25};
  EXPECT_EQ(prune_factor(score, 16, 16).shift, 0);
  const auto error = [](hw::Dyadic factor, std::uint32_t head_width, unsigned bits) {
    return input_error_of([&] { return prune_factor(factor, head_width, bits); });
  };
  EXPECT_NE(error(score, 16, 8).find("a multiplier beyond 8 bits"), std::string::npos);
  EXPECT_NE(error(score, 16384, 16).find("a multiplier beyond 16 bits"), std::string::npos);
  EXPECT_NE(error({0, 0}, 16, 31).find("a multiplier beyond 31 bits"), std::string::npos);
  EXPECT_NE(error({1, 63}, 16, 31).find("a multiplier beyond 31 bits"), std::string::npos);
}

}  // namespace
}  // namespace systole::model
