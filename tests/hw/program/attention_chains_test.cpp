/// Chains around the products of attention: which an attention command may name, and what stages of
/// the scores do to the values.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "hw/attention/mask_codec.h"
#include "hw/attention/sparse_attention.h"
#include "hw/program/attention_check.h"
#include "hw/program/disassembly.h"
#include "hw/program/program.h"
#include "hw/program/program_image.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/program/complaint.h"

namespace systole::hw {
namespace {

Stage stage_of(StageOp op, Operand operand = Operand::kImmediate) {
  Stage stage;
  stage.op = op;
  stage.operand = operand;
  return stage;
}

Stage deferred_softmax() {
  Stage softmax = stage_of(StageOp::kSoftmax);
  softmax.imm = {0, 1, 0, 8, 1, 0, 8};
  return softmax;
}

Stage clamp_to(std::int64_t largest) {
  Stage clamp = stage_of(StageOp::kClamp);
  clamp.imm = {-largest, largest};
  return clamp;
}

constexpr std::size_t kOutputChain = 0, kScoreChain = 1, kQueryChain = 2, kKeyChain = 3,
                      kValueChain = 4;

/// One head of 3 queries and 4 keys with stages everywhere.
Program chained_program() {
  Program program;
  const Stage relu = stage_of(StageOp::kRelu);
  const Chain operand{{relu, clamp_to(100)}, DType::kS8};
  program.chains = {
      {{stage_of(StageOp::kDivideRowSum, Operand::kRow), stage_of(StageOp::kSub, Operand::kSaved),
        clamp_to(127)},
       DType::kS8},
      {{relu, stage_of(StageOp::kAdd, Operand::kSaved), deferred_softmax()}, DType::kU8},
      operand,
      {{}, DType::kS8},
      operand};
  const HeadMask mask{3, 4, {1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0}};
  program.masks = {{0x5000, encode_mask({split(mask, {0})})}};
  program.operators = {{}};
  cmd::Attention attention;
  attention.operand_chains = true;
  attention.chain = kOutputChain;
  attention.softmax = kScoreChain;
  attention.queries = 3;
  attention.keys = 4;
  attention.k = attention.n = 16;
  attention.heads = 1;
  attention.query = {0x1000, 16};
  attention.key = {0x2000, 16};
  attention.value = {0x3000, 16};
  attention.out = {0x4000, 16};
  program.commands = {{attention}, {}};
  return program;
}

Machine chained_machine() {
  Machine machine = machine_with_engines();
  machine.preop.lanes = 8;
  return machine;
}

TEST(AttentionChains, MayStandOnScoresOutputsAndOperands) {
  const Program program = chained_program();
  EXPECT_NO_THROW(check_program(program, chained_machine(), 1 << 20));
  const std::string text = disassemble(program);
  EXPECT_NE(text.find(" operand_chains"), std::string::npos) << text;
  EXPECT_EQ(encode_program(decode_program(encode_program(program), "p", 1 << 20)),
            encode_program(program));
}

struct BadChains {
  std::string name;
  std::function<void(Program& program, Machine& machine)> change;
  std::string expected;
};
void PrintTo(const BadChains& test, std::ostream* out) { *out << test.name; }

BadChains put(const char* name, std::size_t chain, const Stage& stage, const char* expected) {
  return {name,
          [chain, stage](Program& p, Machine&) {
            std::vector<Stage>& stages = p.chains[chain].stages;
            stages.insert(stages.begin(), stage);
          },
          expected};
}

BadChains change(const char* name, std::function<void(Program& p, Machine& m)> change,
                 const char* expected) {
  return {name, std::move(change), expected};
}

Stage summing(StageOp op) {
  Stage stage = stage_of(op);
  stage.side = Reduction::kRowSum;
  return stage;
}

class RefusesChains : public testing::TestWithParam<BadChains> {};

TEST_P(RefusesChains, InOneLine) {
  Program program = chained_program();
  Machine machine = chained_machine();
  GetParam().change(program, machine);
  const std::string what = complaint_of(program, machine);
  EXPECT_EQ(what.find("command 0 (attention): " + GetParam().expected), 0U) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos);
}

constexpr const char* kBadScores = "its softmax chain has stages that the engines cannot run on";
constexpr const char* kBadOperand =
    "the chain of an operand has operands, works on whole rows, or gives another type than s8";
constexpr const char* kBadOutputs =
    "its output chain has operands, works on whole rows, or gives more than a byte";

INSTANTIATE_TEST_SUITE_P(
    AttentionChains, RefusesChains,
    testing::Values(
        put("ScoreTensor", kScoreChain, stage_of(StageOp::kAdd, Operand::kTensor), kBadScores),
        put("ScoreChannel", kScoreChain, stage_of(StageOp::kMul, Operand::kChannel), kBadScores),
        put("ScoreCausalMask", kScoreChain, stage_of(StageOp::kMask), kBadScores),
        put("ScoreRope", kScoreChain, stage_of(StageOp::kRope, Operand::kTensor), kBadScores),
        put("OperandTensor", kKeyChain, stage_of(StageOp::kAdd, Operand::kTensor), kBadOperand),
        put("OperandChannel", kQueryChain, stage_of(StageOp::kAdd, Operand::kChannel), kBadOperand),
        put("OperandRow", kValueChain, stage_of(StageOp::kSub, Operand::kRow), kBadOperand),
        put("OperandSideOutput", kQueryChain, summing(StageOp::kRelu), kBadOperand),
        put("OperandSoftmax", kValueChain, deferred_softmax(), kBadOperand),
        put("OutputTensor", kOutputChain, stage_of(StageOp::kMul, Operand::kTensor), kBadOutputs),
        put("OutputSoftmax", kOutputChain, stage_of(StageOp::kMask), kBadOutputs),
        change(
            "OperandType", [](Program& p, Machine&) { p.chains[kKeyChain].out = DType::kU8; },
            kBadOperand),
        change(
            "OutputTransposes",
            [](Program& p, Machine&) {
              p.chains[kOutputChain].stages.push_back(stage_of(StageOp::kTranspose));
            },
            kBadOutputs),
        change(
            "NoChainOfV", [](Program& p, Machine&) { p.chains.pop_back(); }, "chain 4 of 4"),
        change(
            "NoLanes", [](Program&, Machine& m) { m.preop.lanes = 0; },
            "its operands have stages, but the machine's loads have none (preop.lanes is 0)"),
        change(
            "Decoders",
            [](Program& p, Machine&) {
              const HeadMix mix{1, 1, {1}, {0}, {{1, 0}}, Rounding::kHalfUp};
              p.mixes = {mix, mix};
              p.commands[0].as<cmd::Attention>()->decoders = 0;
            },
            "its operands have stages and decoders, expected one of the two")),
    [](const testing::TestParamInfo<BadChains>& test) { return test.param.name; });

TEST(AttentionChains, ReadRowSumsOfOutputsAlone) {
  const Chain chain{{stage_of(StageOp::kSub, Operand::kRow)}, DType::kS8};
  EXPECT_TRUE(runs_on_engines(chain, true));
  EXPECT_FALSE(runs_on_engines(chain, false));
}

TEST(AttentionChains, StagesOfScoresComeBetweenProductAndMaximum) {
  const HeadMask mask{2, 3, {1, 1, 0, 1, 1, 1}};
  // Scores of query 0: 40, -90, pruned; of query 1: -20, 60, 5.
  SplitCells<std::int32_t> scores{{40, -20}, {-90, 60, 5}};
  Stage negate = stage_of(StageOp::kMul);
  negate.imm = {0, -1000, 1000, -1};
  const ScoreFunctions functions =
      score_functions({{negate, clamp_to(50), deferred_softmax()}, DType::kU8});
  EXPECT_EQ(functions.softmax.output_bits, 8U);
  apply_score_stages(functions, scores);
  EXPECT_EQ(scores.dense, (std::vector<std::int32_t>{-40, 20}));
  EXPECT_EQ(scores.sparse, (std::vector<std::int32_t>{50, -50, -5}));
  const SparseHead head = split(mask, {0});
  const AttentionCodes codes =
      softmax_kept_cells(head, sparse_rows(head), scores, make_softmax_constants(0.01));
  // The maximum of query 0 is what was its least score.
  EXPECT_LT(codes.cells.dense[0], codes.cells.sparse[0]);
  EXPECT_FALSE(score_functions({{deferred_softmax()}, DType::kU8}).stages.has_value());
}

}  // namespace
}  // namespace systole::hw
