#include "hw/postop/postop.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/hw/postop/random_tile.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;
using test::random_cols;
using test::RandomTile;

/// Runs a chain over a random tile and compares it with the plain stages.
void expect_equals_scalar(const Chain& chain, std::size_t rows, std::size_t cols, Random& random) {
  ASSERT_NO_THROW(check_chain(chain, {}));
  RandomTile tile(chain, rows, cols, random);
  RandomTile oracle = tile;
  const bool transposed = transposes(chain);
  const std::size_t element = bytes_of(chain.out);
  const std::size_t out_rows = transposed ? cols : rows;
  const std::size_t row_bytes = (transposed ? rows : cols) * element;
  const std::size_t pitch = row_bytes + tile.gap();
  std::vector<unsigned char> out(out_rows * pitch + 2, 0xa5);

  ChainOperands operands = tile.operands();
  operands.out = out.data() + 1;
  operands.out_pitch = pitch;
  apply_chain(chain, operands);

  EXPECT_EQ(out.front(), 0xa5);
  EXPECT_EQ(out.back(), 0xa5);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::vector<std::int32_t> expected = oracle.expected_row(chain, r);
    for (std::size_t i = 0; i < cols; ++i) {
      const std::size_t at = transposed ? i * pitch + r * element : r * pitch + i * element;
      ASSERT_EQ(test::read_element(out, 1 + at, chain.out), expected[i])
          << "row " << r << " of " << rows << ", column " << i << " of " << cols;
    }
  }
  for (std::size_t r = 0; r < out_rows; ++r) {
    for (std::size_t i = row_bytes; i < pitch; ++i) ASSERT_EQ(out[1 + r * pitch + i], 0xa5);
  }
  ASSERT_EQ(tile.statistics(), oracle.statistics());
}

class EachStage : public testing::TestWithParam<int> {};

TEST_P(EachStage, EqualsItsScalarFunction) {
  Random random(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 400; ++i) {
    Chain chain;
    chain.out = pick(random, 0, 1) != 0 ? DType::kS32 : DType::kS8;
    chain.stages = {test::random_stage(random, static_cast<StageOp>(GetParam()), true)};
    expect_equals_scalar(chain, static_cast<std::size_t>(pick(random, 1, 9)),
                         random_cols(chain, random), random);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Chain, EachStage, testing::Range(0, int{kStageOps}),
                         [](const testing::TestParamInfo<int>& test) {
                           return std::string(stage_info(static_cast<StageOp>(test.param)).name);
                         });

TEST(Chain, RandomOnesEqualTheirScalarFunctions) {
  Random random(7);
  for (int i = 0; i < 1500; ++i) {
    const Chain chain = test::random_chain(random, 8);
    expect_equals_scalar(chain, static_cast<std::size_t>(pick(random, 1, 20)),
                         random_cols(chain, random), random);
    if (HasFatalFailure()) return;
  }
}

TEST(Chain, FunctionsByTableEqualThoseByPolynomial) {
  // After a stage that leaves eight bits at most, or one value more, which no table has.
  Random random(11);
  for (int i = 0; i < 240; ++i) {
    constexpr StageOp kFunctions[] = {StageOp::kGelu, StageOp::kSilu, StageOp::kExp,
                                      StageOp::kTanh};
    constexpr StageOp kBounds[] = {StageOp::kClamp, StageOp::kMul, StageOp::kRequantise,
                                   StageOp::kDivide};
    constexpr std::size_t kBoundAt[] = {0, 1, 2, 1};  // where the bound of each is
    const auto which = static_cast<std::size_t>(random() % 4);
    Stage bound = test::random_stage(random, kBounds[which]);
    bound.imm[kBoundAt[which]] = -128 - pick(random, 0, 1);
    bound.imm[kBoundAt[which] + 1] = 127 + pick(random, 0, 1);
    const Chain chain{{bound, test::random_stage(random, kFunctions[i / 3 % 4])}, DType::kS32};
    expect_equals_scalar(chain, 40, random_cols(chain, random), random);
    if (HasFatalFailure()) return;
  }
}

TEST(Chain, WithoutStagesSaturatesToTheOutput) {
  const std::int32_t accumulator[] = {-40000, -129, -1, 0, 256, 70000};
  std::uint8_t out[6] = {};
  ChainOperands operands;
  operands.accumulator = accumulator;
  operands.out = out;
  operands.rows = 1;
  operands.cols = 6;
  apply_chain({{}, DType::kU8}, operands);
  const std::uint8_t expected[] = {0, 0, 0, 0, 255, 255};
  EXPECT_TRUE(std::equal(std::begin(out), std::end(out), std::begin(expected)));
}

TEST(Chain, OfAnEmptyTileTouchesNothing) {
  ChainOperands operands;
  operands.rows = 3;
  EXPECT_NO_THROW(apply_chain({{}, DType::kS8}, operands));
}

}  // namespace
}  // namespace systole::hw
