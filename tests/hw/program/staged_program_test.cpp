#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hw/program/program.h"
#include "tests/hw/postop/stage_sketch.h"
#include "tests/hw/program/complaint.h"

/// Programs with stages before an anchor, several tensor operands, side outputs, transposed
/// results: what their commands touch, and what check_program() says of them.
namespace systole::hw {
namespace {

using test::stage;
using test::with_operand;

constexpr std::uint64_t kStagedDram = 1 << 20;

Stage tensor_stage(StageOp op, DType type) {
  Stage result = with_operand(op, Operand::kTensor);
  result.tensor = type;
  return result;
}

enum StagedCommand : std::size_t { kSums, kOperand, kPreLoad, kFirst, kContinued, kTurned };

/// 32 rows each: sums that are loaded through a chain; an s16 operand that becomes s8 before it
/// reaches the scratchpad, less its row's maximum; a store with three tensor operands and a side
/// output, and one that continues it; a move of the transposed result.
Program staged_program() {
  Program program;
  Stage side = stage(StageOp::kRelu);
  side.side = Reduction::kSumSquares;
  program.chains = {
      {{stage(StageOp::kRelu)}, DType::kS32},
      {{tensor_stage(StageOp::kMul, DType::kS8), tensor_stage(StageOp::kAdd, DType::kS16),
        with_operand(StageOp::kSub, Operand::kRow)},
       DType::kS8},
      {{tensor_stage(StageOp::kMul, DType::kS8), tensor_stage(StageOp::kSub, DType::kU8),
        tensor_stage(StageOp::kRope, DType::kS16), side},
       DType::kS8},
      {{stage(StageOp::kRelu), stage(StageOp::kTranspose)}, DType::kS16}};
  program.operand_tiles = {{0x20000, 64}, {0x30000, 0}, {0x40000, 100}};
  program.operators = {{}};

  cmd::LoadAccumulator sums;
  sums.type = DType::kS16;
  sums.pre.emplace();
  sums.m = 32;
  sums.n = 20;
  sums.from.pitch = 40;
  sums.to.pitch = 20;
  cmd::Load operand = sums;
  operand.type = DType::kS8;
  operand.pre.reset();
  cmd::Load load = operand;
  load.type = DType::kS16;
  load.to.address = 0x1000;
  load.pre.emplace();
  load.pre->chain = 1;
  load.pre->tensor = {0x10000, 20};
  load.pre->statistics = 100;
  cmd::Store first;
  first.m = 32;
  first.n = 20;
  first.from.pitch = 20;
  first.to = {0x50000, 40};
  first.chain.chain = 2;
  first.chain.tensor = {0x18000, 20};
  first.chain.operands = 1;
  first.chain.statistics = 200;
  cmd::Store continued = first;
  continued.to.address += 20;
  continued.chain.continues = true;
  cmd::Move turned;
  turned.m = 32;
  turned.n = 20;
  turned.from.pitch = 20;
  turned.chain.chain = 3;
  turned.to = {0x2000, 64};
  program.commands = {{sums}, {operand}, {load}, {first}, {continued}, {turned}, {}};
  return program;
}

Machine staged_machine() {
  Machine machine;
  machine.preop.lanes = 16;
  machine.postop.tensor_operands = 3;
  return machine;
}

void expect_staged_ranges(std::size_t index, const std::vector<Range>& expected) {
  const Program program = staged_program();
  const std::vector<Range> ranges = ranges_of(program.commands[index], program);
  ASSERT_EQ(ranges.size(), expected.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].space, expected[i].space) << i;
    EXPECT_EQ(ranges[i].begin, expected[i].begin) << i;
    EXPECT_EQ(ranges[i].end, expected[i].end) << i;
    EXPECT_EQ(ranges[i].write, expected[i].write) << i;
  }
}

TEST(StagedRanges, OfALoadHaveItsOperands) {
  expect_staged_ranges(kPreLoad, {{Space::kDram, 0, 32 * 40, false},
                                  {Space::kStatistics, 100, 132, false},
                                  {Space::kDram, 0x10000, 0x10000 + 32 * 20, false},
                                  {Space::kDram, 0x20000, 0x20000 + 31 * 64 + 40, false},
                                  {Space::kScratchpad, 0x1000, 0x1000 + 32 * 20, true}});
  expect_staged_ranges(
      kSums, {{Space::kDram, 0, 32 * 40, false}, {Space::kAccumulator, 0, 32 * 20, true}});
}

TEST(StagedRanges, OfAStoreHaveAllOperandsAndWordsPerRow) {
  expect_staged_ranges(kFirst, {{Space::kAccumulator, 0, 32 * 20, false},
                                {Space::kStatistics, 200, 200 + 4 * 32, true},
                                {Space::kDram, 0x18000, 0x18000 + 32 * 20, false},
                                {Space::kDram, 0x30000, 0x30000 + 20, false},
                                {Space::kDram, 0x40000, 0x40000 + 31 * 100 + 40, false},
                                {Space::kDram, 0x50000, 0x50000 + 31 * 40 + 20, true}});
}

TEST(StagedRanges, OfATransposedResultAreItsColumns) {
  Program program = staged_program();
  const WrittenRows written = written_rows(work_of<cmd::Move>(program, kTurned), program);
  EXPECT_EQ(written.rows, 20U);
  EXPECT_EQ(written.bytes, 64U);
  expect_staged_ranges(kTurned, {{Space::kAccumulator, 0, 32 * 20, false},
                                 {Space::kScratchpad, 0x2000, 0x2000 + 20 * 64, true}});
}

TEST(StagedProgram, ChainsBelongToLoadsAndStores) {
  const Program program = staged_program();
  const auto use = [&](std::size_t i) { return chain_use(program.commands[i]); };
  EXPECT_EQ(use(kOperand), nullptr);
  EXPECT_EQ(&chain_of(*use(kPreLoad), program), &program.chains[1]);
  EXPECT_EQ(&chain_of(*use(kTurned), program), &program.chains[3]);
  EXPECT_EQ(chain_use(Command{}), nullptr);
  EXPECT_EQ(operands_of(*use(kFirst), program),
            (std::vector<DramTile>{{0x18000, 20}, {0x30000, 0}, {0x40000, 100}}));
  EXPECT_EQ(operands_of(*use(kPreLoad), program),
            (std::vector<DramTile>{{0x10000, 20}, {0x20000, 64}}));
  EXPECT_TRUE(operands_of(*use(kTurned), program).empty());
}

TEST(StagedProgram, ThatIsLegalPasses) {
  EXPECT_EQ(complaint_of(staged_program(), staged_machine()), "no error");
}

TEST(StagedProgram, NeedsStagesInFront) {
  Machine machine = staged_machine();
  machine.preop.lanes = 0;
  EXPECT_EQ(complaint_of(staged_program(), machine),
            "command 0 (load_accumulator): the machine's loads have no stages (preop.lanes is 0)");
}

TEST(StagedProgram, NeedsRoomForRowsOfItsOperands) {
  Machine machine = staged_machine();
  machine.postop.operand_kib = 1;
  Program program = staged_program();
  EXPECT_EQ(complaint_of(program, machine),
            "command 0 (load_accumulator): m is 32, expected at most 25 rows, for which the stages "
            "have room (postop.operand_kib = 1)");
  program.commands.erase(program.commands.begin(), program.commands.begin() + 3);
  EXPECT_EQ(complaint_of(program, machine),
            "command 0 (store): postop.operand_kib is 1, expected room for 16 rows of its tensor "
            "operands, 1280 bytes");
}

struct BadStaged {
  const char* name;
  std::size_t command;
  std::function<void(Program& program, Command& command)> spoil;
  const char* message;
};

class RefusesStaged : public testing::TestWithParam<BadStaged> {};

TEST_P(RefusesStaged, AndNamesThePlace) {
  Program program = staged_program();
  GetParam().spoil(program, program.commands[GetParam().command]);
  const std::string what = complaint_of(program, staged_machine());
  EXPECT_EQ(what.find("command " + std::to_string(GetParam().command) + " ("), 0U) << what;
  EXPECT_NE(what.find(GetParam().message), std::string::npos) << what;
}

constexpr const char* kOneByte = "type is s16, expected elements of one byte: it has no stages";

INSTANTIATE_TEST_SUITE_P(
    Loads, RefusesStaged,
    testing::Values(
        BadStaged{"Chain", kPreLoad,
                  [](Program&, Command& c) { c.as<cmd::Load>()->pre->chain = 4; }, "chain 4 of 4"},
        BadStaged{"UnalignedParameters", kPreLoad,
                  [](Program& p, Command& c) {
                    p.chains[1].stages.back().operand = Operand::kChannel;
                    c.as<cmd::Load>()->pre->parameters = 0x1001;
                  },
                  "parameters at 4097, expected a multiple of 4"},
        BadStaged{"WideWithoutStages", kOperand,
                  [](Program&, Command& c) { c.as<cmd::Load>()->type = DType::kS16; }, kOneByte},
        BadStaged{
            "RowWise", kPreLoad,
            [](Program& p, Command&) { p.chains[1].stages = {stage(StageOp::kLayerNorm, {15})}; },
            "its chain works on whole rows"},
        BadStaged{"Side", kPreLoad,
                  [](Program& p, Command&) {
                    p.chains[1].stages = {stage(StageOp::kRelu)};
                    p.chains[1].stages[0].side = Reduction::kRowMax;
                  },
                  "its chain writes row statistics"},
        BadStaged{"Transposes", kPreLoad,
                  [](Program&, Command& c) { c.as<cmd::Load>()->pre->chain = 3; },
                  "its chain transposes"},
        BadStaged{"WideOperand", kPreLoad,
                  [](Program& p, Command&) { p.chains[1].out = DType::kS16; },
                  "its chain gives s16, expected elements of one byte"},
        BadStaged{"NarrowSums", kSums, [](Program& p, Command&) { p.chains[0].out = DType::kS8; },
                  "its chain gives s8, expected s32"},
        BadStaged{"NoSuchTile", kPreLoad,
                  [](Program&, Command& c) { c.as<cmd::Load>()->pre->operands = 3; },
                  "operands is 3, expected 1 from there on, of 3"},
        BadStaged{"KeptWithoutMask", kPreLoad,
                  [](Program&, Command& c) { c.as<cmd::Load>()->pre->valid_cols = 1; },
                  "kept is 1, expected 0 without a softmax or a causal mask"},
        BadStaged{"TileOutside", kPreLoad,
                  [](Program& p, Command&) { p.operand_tiles[0].address = kStagedDram; },
                  "reads DRAM bytes"},
        BadStaged{"StatisticsOutside", kPreLoad,
                  [](Program&, Command& c) { c.as<cmd::Load>()->pre->statistics = 1000; },
                  "reads row statistics 1000 to 1032 of 1024"}),
    [](const testing::TestParamInfo<BadStaged>& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Stores, RefusesStaged,
    testing::Values(
        BadStaged{"NoSuchTile", kFirst,
                  [](Program&, Command& c) { c.as<cmd::Result>()->chain.operands = 2; },
                  "operands is 2, expected 2 from there on, of 3"},
        BadStaged{"TileIndex", kFirst,
                  [](Program&, Command& c) { c.as<cmd::Result>()->chain.operands = 0xffffffff; },
                  "operands is 4294967295, expected 2 from there on, of 3"},
        BadStaged{"TilesOfNoOperand", kTurned,
                  [](Program&, Command& c) { c.as<cmd::Result>()->chain.operands = 1; },
                  "operands is 1, expected 0: its chain has no more than one tensor operand"},
        BadStaged{"Odd", kFirst, [](Program&, Command& c) { c.as<cmd::Result>()->n = 19; },
                  "n is 19, expected pairs of columns for rope"},
        BadStaged{"Continues", kTurned,
                  [](Program&, Command& c) { c.as<cmd::Result>()->chain.continues = true; },
                  "continues, but has no side output"},
        BadStaged{"StatisticsOutside", kFirst,
                  [](Program&, Command& c) { c.as<cmd::Result>()->chain.statistics = 900; },
                  "writes row statistics 900 to 1028 of 1024"},
        BadStaged{"LongOperand", kFirst,
                  [](Program& p, Command& c) {
                    p.chains[2].stages = {tensor_stage(StageOp::kMul, DType::kS32)};
                    c.as<cmd::Result>()->chain.operands = 0;
                    c.as<cmd::Result>()->m = 1;
                    c.as<cmd::Result>()->n = 1025;
                  },
                  "postop.operand_kib is 64, expected room for 16 rows of its tensor operands, "
                  "65600 bytes"},
        BadStaged{"OverlappingColumns", kTurned,
                  [](Program&, Command& c) { c.as<cmd::Move>()->to.pitch = 63; },
                  "b_pitch 63, expected at least the 64 of a written row"},
        BadStaged{"CausalBeyondTheRow", kTurned,
                  [](Program& p, Command& c) {
                    p.chains[3].stages[0] = stage(StageOp::kMask);
                    c.as<cmd::Result>()->chain.valid_cols = 21;
                  },
                  "kept is 21, expected 0 to 20"}),
    [](const testing::TestParamInfo<BadStaged>& test) { return test.param.name; });

TEST(StagedProgram, MayKeepColumnsForACausalMask) {
  Program program = staged_program();
  program.chains[3].stages[0] = stage(StageOp::kMask);
  work_of<cmd::Move>(program, kTurned).chain.valid_cols = 20;
  EXPECT_EQ(complaint_of(program, staged_machine()), "no error");
}

}  // namespace
}  // namespace systole::hw
