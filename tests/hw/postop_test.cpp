#include "hw/postop.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "hw/error.h"
#include "tests/hw/postop_oracle.h"

namespace systole::hw {
namespace {

using test::any_int32;
using test::pick;
using test::Random;

/// Reads or writes element i of a type at an address without alignment.
std::int32_t read_element(const std::vector<unsigned char>& bytes, std::size_t offset, DType type) {
  std::uint32_t raw = 0;
  std::memcpy(&raw, bytes.data() + offset, bytes_of(type));
  switch (type) {
    case DType::kS8:
      return static_cast<std::int8_t>(raw);
    case DType::kS16:
      return static_cast<std::int16_t>(raw);
    case DType::kU8:
    case DType::kU16:
    case DType::kS32:
      break;
  }
  return static_cast<std::int32_t>(raw);
}

/// Runs a chain over a random tile with gaps between rows, and compares it with the scalar oracle.
void expect_equals_scalar(const Chain& chain, std::size_t rows, std::size_t cols, Random& random) {
  ASSERT_NO_THROW(check_chain(chain, 64));
  const auto gap = static_cast<std::size_t>(pick(random, 0, 3));
  std::vector<std::int32_t> accumulator(rows * (cols + gap));
  const std::int32_t narrow = static_cast<std::int32_t>(pick(random, 0, 24));
  for (std::int32_t& value : accumulator) value = any_int32(random) >> narrow;
  std::vector<std::int32_t> parameters(parameter_words(chain) * cols);
  for (std::int32_t& value : parameters) value = any_int32(random);
  DType type = DType::kS8;
  for (const Stage& stage : chain.stages) {
    if (stage.op == StageOp::kAddTensor) type = stage.tensor;
  }
  const std::size_t tensor_pitch = cols * bytes_of(type) + gap;
  std::vector<unsigned char> tensor(rows * tensor_pitch + 1);
  for (unsigned char& byte : tensor) byte = static_cast<unsigned char>(random());
  std::vector<std::uint32_t> sums(rows);
  for (std::uint32_t& sum : sums) sum = static_cast<std::uint32_t>(any_int32(random));
  const std::vector<std::uint32_t> sums_before = sums;
  const std::size_t out_pitch = cols * bytes_of(chain.out) + gap;
  std::vector<unsigned char> out(rows * out_pitch + 2, 0xa5);

  ChainOperands operands;
  operands.accumulator = accumulator.data();
  operands.accumulator_pitch = cols + gap;
  operands.parameters = parameters.data();
  operands.tensor = tensor.data() + 1;
  operands.tensor_pitch = tensor_pitch;
  operands.row_statistics = sums.data();
  operands.out = out.data() + 1;
  operands.out_pitch = out_pitch;
  operands.rows = rows;
  operands.cols = cols;
  operands.kept = pick(random, 0, 1) == 0
                      ? 0
                      : static_cast<std::size_t>(pick(random, 1, static_cast<std::int64_t>(cols)));
  apply_chain(chain, operands);

  EXPECT_EQ(out.front(), 0xa5);
  EXPECT_EQ(out.back(), 0xa5);
  for (std::size_t r = 0; r < rows; ++r) {
    test::OracleOperands scalar{parameters, {}, sums_before[r]};
    if (operands.kept != 0) scalar.kept = std::min(operands.kept + r, cols);
    for (std::size_t i = 0; i < cols; ++i) {
      scalar.tensor.push_back(
          read_element(tensor, 1 + r * tensor_pitch + i * bytes_of(type), type));
    }
    const auto* row = accumulator.data() + r * (cols + gap);
    const std::vector<std::int32_t> expected =
        test::apply_row(chain, scalar, std::vector<std::int32_t>(row, row + cols));
    for (std::size_t i = 0; i < cols; ++i) {
      const std::size_t offset = 1 + r * out_pitch + i * bytes_of(chain.out);
      ASSERT_EQ(read_element(out, offset, chain.out), expected[i])
          << "row " << r << " of " << rows << ", column " << i << " of " << cols;
    }
    for (std::size_t i = 0; i < gap; ++i) {
      ASSERT_EQ(out[1 + r * out_pitch + cols * bytes_of(chain.out) + i], 0xa5);
    }
    ASSERT_EQ(sums[r], scalar.row_sum);
  }
}

std::size_t random_cols(Random& random) {
  return static_cast<std::size_t>(pick(random, 0, 9) == 0 ? pick(random, 100, 3000)
                                                          : pick(random, 1, 70));
}

class EachStage : public testing::TestWithParam<int> {};

TEST_P(EachStage, EqualsItsScalarFunction) {
  Random random(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 400; ++i) {
    Chain chain;
    chain.out = pick(random, 0, 1) != 0 ? DType::kS32 : DType::kS8;
    chain.stages = {test::random_stage(random, static_cast<StageOp>(GetParam()))};
    expect_equals_scalar(chain, static_cast<std::size_t>(pick(random, 1, 9)), random_cols(random),
                         random);
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
    expect_equals_scalar(test::random_chain(random, 8),
                         static_cast<std::size_t>(pick(random, 1, 20)), random_cols(random),
                         random);
    if (HasFatalFailure()) return;
  }
}

TEST(Chain, GeluByTableEqualsGeluByPolynomial) {
  Random random(11);
  for (int i = 0; i < 50; ++i) {
    Chain chain;
    chain.stages = {test::random_stage(random, StageOp::kClamp),
                    test::random_stage(random, StageOp::kGelu)};
    chain.stages[0].imm = {-128 + i, 127};
    expect_equals_scalar(chain, 40, random_cols(random), random);
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

TEST(Chain, RefusesRowsLongerThanTheStatisticsHold) {
  Chain chain;
  chain.stages.push_back({StageOp::kLayerNorm});
  ChainOperands operands;
  operands.rows = 1;
  operands.cols = kLayerNormMaxLength + 1;
  EXPECT_THROW(apply_chain(chain, operands), std::invalid_argument);
}

Stage stage(StageOp op, std::array<std::int64_t, kStageImmediates> imm = {}) {
  Stage result;
  result.op = op;
  result.imm = imm;
  return result;
}

TEST(ChainFacts, CountParameterWordsPerColumn) {
  Chain chain;
  chain.stages = {stage(StageOp::kBias), stage(StageOp::kRequantise), stage(StageOp::kLayerNorm)};
  EXPECT_EQ(parameter_words(chain), 3U);
  chain.stages[1].per_channel = true;
  EXPECT_EQ(parameter_words(chain), 5U);
}

TEST(ChainFacts, KnowWhoTouchesTheRowStatistics) {
  const Chain deferred{{stage(StageOp::kSoftmax, {0})}, DType::kU8};
  const Chain normalised{{stage(StageOp::kSoftmax, {1})}, DType::kU8};
  const Chain divide{{stage(StageOp::kDivideRowSum)}, DType::kS8};
  EXPECT_TRUE(writes_row_statistics(deferred));
  EXPECT_FALSE(writes_row_statistics(normalised));
  EXPECT_TRUE(reads_row_statistics(divide));
  EXPECT_FALSE(reads_row_statistics(deferred));
  EXPECT_TRUE(is_row_wise(normalised));
  EXPECT_FALSE(is_row_wise(divide));
}

struct BadChain {
  const char* name;
  Chain chain;
  const char* expected;
};

Chain one(StageOp op, std::array<std::int64_t, kStageImmediates> imm) {
  return {{stage(op, imm)}, DType::kS8};
}

Chain with(Chain chain, void (*change)(Stage& stage)) {
  change(chain.stages[0]);
  return chain;
}

class RefusesChain : public testing::TestWithParam<BadChain> {};

TEST_P(RefusesChain, AndNamesThePlace) {
  try {
    check_chain(GetParam().chain, 4);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().expected), std::string::npos)
        << error.what();
  }
}

constexpr std::int64_t k31 = std::int64_t{1} << 31;

INSTANTIATE_TEST_SUITE_P(
    Chain, RefusesChain,
    testing::Values(
        BadChain{"Opcode", one(static_cast<StageOp>(9), {}), "stage 0: opcode 9"},
        BadChain{"OutputType", {{}, static_cast<DType>(5)}, "output type 5"},
        BadChain{"Length", {std::vector<Stage>(5), DType::kS8}, "5 stages, expected at most 4"},
        BadChain{"Multiplier", one(StageOp::kRequantise, {k31, 0, 0, 0}), "multiplier 2147483648"},
        BadChain{"LowMultiplier", one(StageOp::kRequantise, {-k31, 0, 0, 0}), "multiplier -2147"},
        BadChain{"Shift", one(StageOp::kRequantise, {1, 64, 0, 0}), "shift 64, expected 0 to 63"},
        BadChain{"NegativeShift", one(StageOp::kRequantise, {1, -1, 0, 0}), "shift -1"},
        BadChain{"Lo", one(StageOp::kClamp, {-k31 - 1, 0}), "lo -2147483649"},
        BadChain{"HiBelowLo", one(StageOp::kClamp, {5, 4}), "hi 4, expected 5 to"},
        BadChain{"UnusedImmediate", one(StageOp::kBias, {0, 7}), "immediate 1 is 7"},
        BadChain{"GeluClip", one(StageOp::kGelu, {1, 0, 0, 1, 0, 0, 0}), "b 1"},
        BadChain{"GeluConstant", one(StageOp::kGelu, {0, k31 * 1024, 0, 1, 0, 0, 0}), "c 2199"},
        BadChain{"GeluProduct", one(StageOp::kGelu, {0, k31, 0, k31 - 1, 0, 0, 0}), "63 bits"},
        BadChain{"SoftmaxMode", one(StageOp::kSoftmax, {3, 1, 0, 8, 1, 0, 8}), "mode 3"},
        BadChain{"SoftmaxSign", one(StageOp::kSoftmax, {0, -1, 0, 8, 1, 0, 8}), "multiplier -1"},
        BadChain{"SoftmaxFraction", one(StageOp::kSoftmax, {0, 1, 0, 15, 1, 0, 8}), "frac_bits 15"},
        BadChain{"SoftmaxBits", one(StageOp::kSoftmax, {0, 1, 0, 8, 1, 0, 17}), "out_bits 17"},
        BadChain{"SoftmaxNoBits", one(StageOp::kSoftmax, {0, 1, 0, 8, 1, 0, 0}), "out_bits 0"},
        BadChain{"NormFraction", one(StageOp::kLayerNorm, {31, 0, 0, 0}), "fraction_bits 31"},
        BadChain{"NormShift", one(StageOp::kLayerNorm, {15, 63, 0, 0}), "shift 63"},
        BadChain{"Rounding",
                 with(one(StageOp::kRequantise, {}),
                      [](Stage& s) { s.rounding = static_cast<Rounding>(3); }),
                 "rounding 3"},
        BadChain{"NoRounding",
                 with(one(StageOp::kRelu, {}), [](Stage& s) { s.rounding = Rounding::kFloor; }),
                 "rounding given"},
        BadChain{"NoChannels",
                 with(one(StageOp::kRelu, {}), [](Stage& s) { s.per_channel = true; }),
                 "per_channel given"},
        BadChain{
            "TensorType",
            with(one(StageOp::kAddTensor, {}), [](Stage& s) { s.tensor = static_cast<DType>(5); }),
            "tensor type 5"},
        BadChain{
            "TwoRowWise",
            {{stage(StageOp::kLayerNorm, {15, 0}), stage(StageOp::kSoftmax, {1, 1, 0, 8, 1, 0, 8})},
             DType::kS8},
            "2 row-wise"},
        BadChain{"TwoTensors",
                 {{stage(StageOp::kAddTensor), stage(StageOp::kAddTensor)}, DType::kS8},
                 "2 add_tensor"},
        BadChain{"OwnStatistics",
                 {{stage(StageOp::kSoftmax, {0, 1, 0, 8, 1, 0, 8}), stage(StageOp::kDivideRowSum)},
                  DType::kS8},
                 "divide_row_sum"}),
    [](const testing::TestParamInfo<BadChain>& test) { return test.param.name; });

TEST(ChainCycles, OfElementwiseStagesArePipelined) {
  const Chain chain{{stage(StageOp::kBias), stage(StageOp::kRequantise), stage(StageOp::kRelu)},
                    DType::kS8};
  const ChainCycles cycles = chain_cycles(chain, 10, 40, 16);
  EXPECT_EQ(cycles.fill, 1U + 5U + 1U);
  EXPECT_EQ(cycles.per_row, 3U);
  EXPECT_EQ(cycles.reads, 30U);
  EXPECT_EQ(cycles.total(10), 37U);
  EXPECT_EQ(chain_cycles(chain, 10, 48, 16).per_row, 3U);
  EXPECT_EQ(chain_cycles(chain, 10, 49, 16).per_row, 4U);
}

TEST(ChainCycles, OfSoftmaxReadTheRowThreeTimesOrDeferredTwice) {
  // All heads of 12 x 512 x 512 scores: the published 0.59 million cycles per layer.
  const std::uint32_t latency = stage_info(StageOp::kSoftmax).latency;
  const Chain normalised{{stage(StageOp::kSoftmax, {1})}, DType::kU8};
  const ChainCycles three = chain_cycles(normalised, 12 * 512, 512, 16);
  EXPECT_EQ(three.reads, 3U * 12U * 512U * 512U / 16U);
  EXPECT_EQ(three.total(12 * 512) - three.fill, three.reads);
  EXPECT_EQ(three.fill, latency + 6U * 32U);  // the first row's output is in the third interval
  const Chain deferred{{stage(StageOp::kSoftmax, {0})}, DType::kU8};
  const ChainCycles two = chain_cycles(deferred, 12 * 512, 512, 16);
  EXPECT_EQ(two.reads, 2U * 12U * 512U * 512U / 16U);
  EXPECT_EQ(two.fill, latency);
}

TEST(ChainCycles, OfShortRowsAreBoundByTheSerialUnits) {
  // One vector a row, and the last length that the division, or root and reciprocal, bind.
  const std::uint64_t softmax = stage_info(StageOp::kSoftmax).latency;
  const Chain normalised{{stage(StageOp::kSoftmax, {2})}, DType::kU8};
  EXPECT_EQ(chain_cycles(normalised, 1, 16, 16).total(1), 2U * 17U + 3U + softmax);
  EXPECT_EQ(chain_cycles(normalised, 9, 5 * 16, 16).per_row, 17U);
  EXPECT_EQ(chain_cycles(normalised, 9, 6 * 16, 16).per_row, 3U * 6U);

  const std::uint64_t layer_norm = stage_info(StageOp::kLayerNorm).latency;
  const Chain norm{{stage(StageOp::kLayerNorm)}, DType::kS8};
  EXPECT_EQ(chain_cycles(norm, 1, 16, 16).total(1), 2U * 37U + 3U + layer_norm);
  EXPECT_EQ(chain_cycles(norm, 4, 16, 16).total(4), 5U * 37U + 3U + layer_norm);
  EXPECT_EQ(chain_cycles(norm, 9, 17 * 16, 16).per_row, 17U + 36U);
  EXPECT_EQ(chain_cycles(norm, 9, 18 * 16, 16).per_row, 3U * 18U);
  EXPECT_EQ(chain_cycles(norm, 4, 768, 16).total(4), 6U * 3U * 48U + layer_norm);

  const std::uint64_t division = stage_info(StageOp::kDivideRowSum).latency;
  const Chain divide{{stage(StageOp::kDivideRowSum)}, DType::kS16};
  EXPECT_EQ(chain_cycles(divide, 4, 64, 16).total(4), 4U * 13U + 4U + division);
  EXPECT_EQ(chain_cycles(divide, 4, 320, 16).total(4), 13U + 4U * 20U + division);
}

TEST(ChainCycles, ShowADivisionOnlyInFrontOfTheRowWiseStage) {
  const Stage divide = stage(StageOp::kDivideRowSum);
  const Stage norm = stage(StageOp::kLayerNorm);
  const std::uint64_t alone = chain_cycles({{norm}, DType::kS8}, 4, 256, 16).total(4);
  const std::uint64_t latency = stage_info(StageOp::kDivideRowSum).latency;
  EXPECT_EQ(chain_cycles({{norm, divide}, DType::kS8}, 4, 256, 16).total(4), alone + latency);
  EXPECT_EQ(chain_cycles({{divide, norm}, DType::kS8}, 4, 256, 16).total(4), alone + latency + 13U);
}

TEST(ChainCycles, OfNothingAreZero) {
  const Chain chain{{stage(StageOp::kLayerNorm)}, DType::kS8};
  EXPECT_EQ(chain_cycles(chain, 0, 16, 16).total(0), 0U);
  EXPECT_EQ(chain_cycles(chain, 4, 0, 16).total(4), 0U);
}

TEST(ChainCycles, NeverFallWhenTheTileGrows) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const Chain chain = test::random_chain(random, 8);
    const auto rows = static_cast<std::uint64_t>(pick(random, 1, 100));
    const auto cols = static_cast<std::uint64_t>(pick(random, 1, 500));
    const std::uint64_t total = chain_cycles(chain, rows, cols, 16).total(rows);
    EXPECT_LE(total, chain_cycles(chain, rows + 1, cols, 16).total(rows + 1));
    EXPECT_LE(total, chain_cycles(chain, rows, cols + 1, 16).total(rows));
    EXPECT_GE(total, chain_cycles(chain, rows, cols, 32).total(rows));
    EXPECT_GE(total * 16, rows * cols);
  }
}

}  // namespace
}  // namespace systole::hw
