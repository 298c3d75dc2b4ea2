#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/postop/postop.h"
#include "tests/hw/postop/stage_sketch.h"

namespace systole::hw {
namespace {

using test::stage;
using test::with_operand;

TEST(ChainFacts, CountParameterWordsPerColumn) {
  Chain chain;
  chain.stages = {with_operand(StageOp::kAdd, Operand::kChannel), stage(StageOp::kRequantise),
                  stage(StageOp::kLayerNorm)};
  EXPECT_EQ(parameter_words(chain), 3U);
  chain.stages[1].operand = Operand::kChannel;
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

constexpr ChainLimits kLimits{4, 2, {true, true, true, true, true, true, true}};

/// What check_chain() says of a chain, or nothing.
std::string complaint(const Chain& chain, const ChainLimits& limits) {
  try {
    check_chain(chain, limits);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

class RefusesChain : public testing::TestWithParam<BadChain> {};

TEST_P(RefusesChain, AndNamesThePlace) {
  const std::string found = complaint(GetParam().chain, kLimits);
  EXPECT_NE(found.find(GetParam().expected), std::string::npos) << found;
}

constexpr std::int64_t k31 = std::int64_t{1} << 31;

std::string name_of_test(const testing::TestParamInfo<BadChain>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Immediates, RefusesChain,
    testing::Values(
        BadChain{"Multiplier", one(StageOp::kRequantise, {k31, 0, 0, 0}), "multiplier 2147483648"},
        BadChain{"LowMultiplier", one(StageOp::kRequantise, {-k31, 0, 0, 0}), "multiplier -2147"},
        BadChain{"Shift", one(StageOp::kRequantise, {1, 64, 0, 0}), "shift 64, expected 0 to 63"},
        BadChain{"NegativeShift", one(StageOp::kRequantise, {1, -1, 0, 0}), "shift -1"},
        BadChain{"AddMultiplier", one(StageOp::kAdd, {k31, 0, 0, 0}), "multiplier 2147483648"},
        BadChain{"SubHi", one(StageOp::kSub, {1, 0, 3, 2}), "hi 2, expected 3 to"},
        BadChain{"AddValue", one(StageOp::kAdd, {0, 0, 0, 0, k31}), "value 2147483648"},
        BadChain{"OtherValue",
                 with(one(StageOp::kAdd, {0, 0, 0, 0, 3}),
                      [](Stage& s) { s.operand = Operand::kChannel; }),
                 "value 3, expected 0: its operand is another"},
        BadChain{"MulValue", one(StageOp::kMul, {0, 0, 0, -k31 - 1}), "value -2147483649"},
        BadChain{"MulShift", one(StageOp::kMul, {64, 0, 0, 0}), "shift 64, expected 0 to 63"},
        BadChain{"DivideShift", one(StageOp::kDivide, {32, 0, 0, 1}), "shift 32, expected 0 to 31"},
        BadChain{"DivideHi", one(StageOp::kDivide, {0, 1, 0, 1}), "hi 0, expected 1 to"},
        BadChain{"DivideZero", one(StageOp::kDivide, {0, 0, 0, 0}),
                 "expected a divisor that is not"},
        BadChain{"MulLo", one(StageOp::kMul, {0, k31, k31, 0}), "lo 2147483648"},
        BadChain{"MaskFill", one(StageOp::kMask, {k31}), "fill 2147483648"},
        BadChain{"Lo", one(StageOp::kClamp, {-k31 - 1, 0}), "lo -2147483649"},
        BadChain{"HiBelowLo", one(StageOp::kClamp, {5, 4}), "hi 4, expected 5 to"},
        BadChain{"Unused", one(StageOp::kRelu, {0, 7}), "immediate 1 is 7"},
        BadChain{"ExpSign", one(StageOp::kExp, {-1, 0, 8}), "multiplier -1"},
        BadChain{"ExpFraction", one(StageOp::kExp, {1, 0, 15}), "frac_bits 15"},
        BadChain{"SiluSign", one(StageOp::kSilu, {-1, 0, 8, 1, 0, 0, 0}), "multiplier -1"},
        BadChain{"SiluFraction", one(StageOp::kSilu, {1, 0, 0, 1, 0, 0, 0}), "frac_bits 0"},
        BadChain{"SiluOutput", one(StageOp::kSilu, {1, 0, 8, 1, 64, 0, 0}), "out_shift 64"},
        BadChain{"SiluHi", one(StageOp::kSilu, {1, 0, 8, 1, 0, 1, 0}), "hi 0, expected 1 to"},
        BadChain{"TanhSign", one(StageOp::kTanh, {-1, 0, 8, 1, 0, 0, 0}), "multiplier -1"},
        BadChain{"TanhFraction", one(StageOp::kTanh, {1, 0, 15, 1, 0, 0, 0}), "frac_bits 15"},
        BadChain{"TanhHi", one(StageOp::kTanh, {1, 0, 8, 1, 0, 1, 0}), "hi 0, expected 1 to"},
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
        BadChain{"NoLength", one(StageOp::kLayerNormApply, {15, 0, 0, 0, 0}), "length 0"},
        BadChain{"Length", one(StageOp::kLayerNormApply, {15, 0, 0, 0, 65537}), "length 65537"},
        BadChain{"ApplyFraction", one(StageOp::kLayerNormApply, {0, 0, 0, 0, 1}),
                 "fraction_bits 0"},
        BadChain{"RmsFraction", one(StageOp::kRmsNormApply, {31, 0, 0, 0}), "fraction_bits 31"},
        BadChain{"RopeShift", one(StageOp::kRope, {64, 0, 0}), "shift 64"},
        BadChain{"RopeHi", one(StageOp::kRope, {0, 1, 0}), "hi 0, expected 1 to"}),
    name_of_test);

Stage softmax_stage() { return stage(StageOp::kSoftmax, {0, 1, 0, 8, 1, 0, 8}); }

Stage with_side(Stage of, Reduction side) {
  of.side = side;
  return of;
}

INSTANTIATE_TEST_SUITE_P(
    Stages, RefusesChain,
    testing::Values(
        BadChain{"Opcode",
                 {{Stage{static_cast<StageOp>(kStageOps)}}, DType::kS8},
                 "stage 0: opcode 20, expected 0 to 19"},
        BadChain{"Rounding",
                 with(one(StageOp::kRequantise, {}),
                      [](Stage& s) { s.rounding = static_cast<Rounding>(3); }),
                 "rounding 3"},
        BadChain{"NoRounding",
                 with(one(StageOp::kRelu, {}), [](Stage& s) { s.rounding = Rounding::kFloor; }),
                 "rounding given"},
        BadChain{"Operand",
                 with(one(StageOp::kAdd, {}),
                      [](Stage& s) { s.operand = static_cast<Operand>(kOperandKinds); }),
                 "operand 5, expected 0 to 4"},
        BadChain{"NoOperand",
                 with(one(StageOp::kRelu, {}), [](Stage& s) { s.operand = Operand::kChannel; }),
                 "stage 0 (relu): operand channel, expected immediate"},
        BadChain{
            "NormWithoutChannels",
            with(one(StageOp::kLayerNorm, {15}), [](Stage& s) { s.operand = Operand::kImmediate; }),
            "operand immediate, expected channel"},
        BadChain{"SavedMask",
                 with(one(StageOp::kMask, {}), [](Stage& s) { s.operand = Operand::kSaved; }),
                 "operand saved, expected immediate, channel, row, tensor"},
        BadChain{"RotationByRows",
                 with(one(StageOp::kRope, {}), [](Stage& s) { s.operand = Operand::kRow; }),
                 "operand row, expected tensor"},
        BadChain{"TensorType",
                 with(one(StageOp::kAdd, {}),
                      [](Stage& s) {
                        s.operand = Operand::kTensor;
                        s.tensor = static_cast<DType>(5);
                      }),
                 "tensor type 5"},
        BadChain{"Side",
                 with(one(StageOp::kAdd, {}),
                      [](Stage& s) { s.side = static_cast<Reduction>(kReductions); }),
                 "side output 5, expected 0 to 4"},
        BadChain{"SideOfASoftmax",
                 {{with_side(softmax_stage(), Reduction::kRowMax)}, DType::kU8},
                 "side output given, but it leaves its own row sum"}),
    name_of_test);

INSTANTIATE_TEST_SUITE_P(
    Together, RefusesChain,
    testing::Values(
        BadChain{"OutputType", {{}, static_cast<DType>(5)}, "output type 5"},
        BadChain{"Length", {std::vector<Stage>(5), DType::kS8}, "5 stages, expected at most 4"},
        BadChain{
            "TwoRowWise",
            {{stage(StageOp::kLayerNorm, {15, 0}), stage(StageOp::kSoftmax, {1, 1, 0, 8, 1, 0, 8})},
             DType::kS8},
            "2 row-wise"},
        BadChain{"ThreeTensors",
                 {std::vector<Stage>(3, with_operand(StageOp::kMul, Operand::kTensor)), DType::kS8},
                 "3 tensor operands, expected at most 2"},
        BadChain{"TwoSides",
                 {std::vector<Stage>(2, with_side(stage(StageOp::kRelu), Reduction::kRowSum)),
                  DType::kS8},
                 "2 side outputs"},
        BadChain{
            "SideAndRowSum",
            {{softmax_stage(), with_side(stage(StageOp::kRelu), Reduction::kRowMax)}, DType::kU8},
            "2 side outputs"},
        BadChain{"OwnRowSum",
                 {{softmax_stage(), stage(StageOp::kDivideRowSum)}, DType::kS8},
                 "one stage writes the row statistics and another reads them"},
        BadChain{"OwnSide",
                 {{with_operand(StageOp::kSub, Operand::kRow),
                   with_side(stage(StageOp::kRelu), Reduction::kRowSum)},
                  DType::kS8},
                 "one stage writes the row statistics and another reads them"},
        BadChain{"TwoWidths",
                 {{stage(StageOp::kDivideRowSum), stage(StageOp::kRmsNormApply, {15})}, DType::kS8},
                 "stages read row statistics of 1 and 4 words"},
        BadChain{"TransposeFirst",
                 {{stage(StageOp::kTranspose), stage(StageOp::kRelu)}, DType::kS8},
                 "stage 0 (transpose): expected it to be the last"}),
    name_of_test);

TEST(ChainCheck, AcceptsWhatIsAtTheLimits) {
  const Stage tensor = with_operand(StageOp::kSub, Operand::kTensor);
  const Stage last = with_side(stage(StageOp::kTranspose), Reduction::kSumSquares);
  EXPECT_EQ(
      complaint({{tensor, stage(StageOp::kLayerNorm, {15}), tensor, last}, DType::kS8}, kLimits),
      "");
}

TEST(ChainCheck, RefusesStagesWithoutAUnit) {
  const std::pair<StageOp, const char*> stages[] = {{StageOp::kGelu, "postop.gelu"},
                                                    {StageOp::kSoftmax, "postop.exponential"},
                                                    {StageOp::kDivideRowSum, "postop.exponential"},
                                                    {StageOp::kExp, "postop.exponential"},
                                                    {StageOp::kSilu, "postop.exponential"},
                                                    {StageOp::kTanh, "postop.exponential"},
                                                    {StageOp::kLayerNorm, "postop.norm"},
                                                    {StageOp::kLayerNormApply, "postop.norm"},
                                                    {StageOp::kRmsNormApply, "postop.norm"},
                                                    {StageOp::kRope, "postop.rope"},
                                                    {StageOp::kTranspose, "postop.transposer"},
                                                    {StageOp::kDivide, "postop.divider"}};
  for (const auto& [op, key] : stages) {
    Machine machine;
    machine.postop.gelu = machine.postop.exponential = machine.postop.norm = machine.postop.rope =
        machine.postop.transposer = machine.postop.divider = 1;
    for (const auto& [path, value] : {std::pair("postop.gelu", &machine.postop.gelu),
                                      std::pair("postop.exponential", &machine.postop.exponential),
                                      std::pair("postop.norm", &machine.postop.norm),
                                      std::pair("postop.rope", &machine.postop.rope),
                                      std::pair("postop.transposer", &machine.postop.transposer),
                                      std::pair("postop.divider", &machine.postop.divider)}) {
      if (std::string(path) == key) *value = 0;
    }
    const Chain chain{{stage(op)}, DType::kS8};
    EXPECT_EQ(complaint(chain, chain_limits(machine)),
              "stage 0 (" + std::string(stage_info(op).name) +
                  "): the machine has no unit for it (" + key + " is 0)");
    const bool usual = complaint(chain, chain_limits(Machine{})).find("unit") == std::string::npos;
    EXPECT_EQ(usual, op != StageOp::kDivide) << "a divider is extra";
  }
}

TEST(ChainCheck, TakesTheLimitsOfTheMachine) {
  Machine machine;
  machine.postop.max_stages = 3;
  machine.postop.tensor_operands = 1;
  const Stage tensor = with_operand(StageOp::kAdd, Operand::kTensor);
  EXPECT_EQ(complaint({{tensor, tensor}, DType::kS8}, chain_limits(machine)),
            "2 tensor operands, expected at most 1");
  EXPECT_EQ(complaint({std::vector<Stage>(4), DType::kS8}, chain_limits(machine)),
            "4 stages, expected at most 3");
}

TEST(PreChainCheck, RefusesWhatNeedsRowsOrLeavesThem) {
  const auto refused = [](const Stage& last) {
    try {
      check_pre_chain({{stage(StageOp::kRelu), last}, DType::kS8});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(stage(StageOp::kLayerNorm)), "works on whole rows");
  EXPECT_EQ(refused(with_side(stage(StageOp::kRelu), Reduction::kRowMax)), "writes row statistics");
  EXPECT_EQ(refused(stage(StageOp::kTranspose)), "transposes");
  EXPECT_EQ(refused(stage(StageOp::kLayerNormApply)), "");
}

}  // namespace
}  // namespace systole::hw
