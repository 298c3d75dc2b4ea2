#include "hw/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/hw/program/complaint.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kDramBytes = 1 << 20;

/// A legal program: load both operands, multiply, add a bias and a tensor, store.
Program small_program() {
  Program program;
  Stage bias;
  bias.operand = Operand::kChannel;
  Stage add;
  add.operand = Operand::kTensor;
  Stage softmax;
  softmax.op = StageOp::kSoftmax;
  softmax.imm = {0, 1, 0, 8, 1, 0, 8};
  program.chains = {{{bias, add}, DType::kS16}, {{softmax}, DType::kU8}};
  Operator op;
  op.name = "matmul";
  op.tensor = "result";
  op.type = DType::kS16;
  op.address = 0x8000;
  op.pitch = 64;
  op.rows = 32;
  op.cols = 32;
  program.operators = {op};

  Command load;
  load.opcode = Opcode::kLoad;
  load.dram = 0x1000;
  load.dram_pitch = 64;
  load.m = 32;
  load.n = 64;
  load.a_pitch = 64;
  Command seed;
  seed.opcode = Opcode::kLoadAccumulator;
  seed.type = DType::kS32;
  seed.dram = 0x4000;
  seed.m = 32;
  seed.n = 32;
  seed.c_pitch = 32;
  Command matmul;
  matmul.opcode = Opcode::kMatmul;
  matmul.accumulate = true;
  matmul.m = 32;
  matmul.n = 32;
  matmul.k = 64;
  matmul.a_pitch = 64;
  matmul.b = 0x2000;
  matmul.b_pitch = 32;
  matmul.c_pitch = 32;
  Command store;
  store.opcode = Opcode::kStore;
  store.m = 32;
  store.n = 32;
  store.c_pitch = 32;
  store.dram = 0x8000;
  store.dram_pitch = 64;
  store.parameters = 0x3000;
  store.tensor = 0x9000;
  store.tensor_pitch = 64;
  Command move = store;
  move.opcode = Opcode::kMove;
  move.chain = 1;
  move.dram = 0;
  move.dram_pitch = 0;
  move.b = 0x4000;
  move.b_pitch = 32;
  move.statistics = 8;
  program.commands = {load, seed, matmul, store, move, Command{}};
  return program;
}

const Range* find(const std::vector<Range>& ranges, Space space, bool write) {
  const auto it = std::find_if(ranges.begin(), ranges.end(), [&](const Range& range) {
    return range.space == space && range.write == write;
  });
  return it == ranges.end() ? nullptr : &*it;
}

void expect_range(const Command& command, const Program& program, Space space, bool write,
                  std::uint64_t begin, std::uint64_t end) {
  const std::vector<Range> ranges = ranges_of(command, program);
  const Range* range = find(ranges, space, write);
  ASSERT_NE(range, nullptr);
  EXPECT_EQ(range->begin, begin);
  EXPECT_EQ(range->end, end);
}

TEST(Ranges, OfALoadReachToTheLastByteOfTheLastRow) {
  const Program program = small_program();
  Command load = program.commands[0];
  load.dram_pitch = 100;
  load.n = 60;
  expect_range(load, program, Space::kDram, false, 0x1000, 0x1000 + 31 * 100 + 60);
  expect_range(load, program, Space::kScratchpad, true, 0, 31 * 64 + 60);
}

TEST(Ranges, OfAnAccumulatorLoadWidenOnlyOnChip) {
  const Program program = small_program();
  Command load = program.commands[1];
  load.type = DType::kS16;
  expect_range(load, program, Space::kDram, false, 0x4000, 0x4000 + 64);
  expect_range(load, program, Space::kAccumulator, true, 0, 31 * 32 + 32);
}

TEST(Ranges, OfAMatmulSwapWithATransposedOperand) {
  const Program program = small_program();
  Command matmul = program.commands[2];
  matmul.a = 0x10000;
  std::vector<Range> ranges = ranges_of(matmul, program);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[1].end, 0x2000U + 63 * 32 + 32);
  matmul.b_transposed = true;
  matmul.b_pitch = 64;
  ranges = ranges_of(matmul, program);
  EXPECT_EQ(ranges[1].end, 0x2000U + 31 * 64 + 64);
}

TEST(Ranges, OfAStoreFollowItsChain) {
  const Program program = small_program();
  const Command& store = program.commands[3];
  expect_range(store, program, Space::kScratchpad, false, 0x3000, 0x3000 + 32 * 4);
  expect_range(store, program, Space::kDram, false, 0x9000, 0x9000 + 32 * 64);
  expect_range(store, program, Space::kDram, true, 0x8000, 0x8000 + 32 * 64);
  EXPECT_EQ(find(ranges_of(store, program), Space::kStatistics, false), nullptr);
  expect_range(program.commands[4], program, Space::kStatistics, true, 8, 40);
  expect_range(program.commands[4], program, Space::kScratchpad, true, 0x4000, 0x4000 + 32 * 32);
}

TEST(Ranges, ThatWouldPassTheAddressSpaceSaturate) {
  const Program program = small_program();
  Command load = program.commands[0];
  load.dram = std::numeric_limits<std::uint64_t>::max() - 10;
  expect_range(load, program, Space::kDram, false, load.dram,
               std::numeric_limits<std::uint64_t>::max());
}

TEST(Ranges, ConflictOnlyIfTheyOverlapAndOneWrites) {
  const Range read{Space::kDram, 10, 20, false};
  EXPECT_FALSE(conflict(read, {Space::kDram, 15, 16, false}));
  EXPECT_TRUE(conflict(read, {Space::kDram, 19, 30, true}));
  EXPECT_FALSE(conflict(read, {Space::kDram, 20, 30, true}));
  EXPECT_FALSE(conflict(read, {Space::kScratchpad, 15, 16, true}));
}

TEST(Program, UnitsTakeTheCommandsOfTheirMemory) {
  EXPECT_EQ(unit_of(Opcode::kLoad), Unit::kLoad);
  EXPECT_EQ(unit_of(Opcode::kLoadAccumulator), Unit::kLoad);
  EXPECT_EQ(unit_of(Opcode::kMatmul), Unit::kCompute);
  EXPECT_EQ(unit_of(Opcode::kStore), Unit::kStore);
  EXPECT_EQ(unit_of(Opcode::kMove), Unit::kStore);
  EXPECT_EQ(unit_of(Opcode::kHost), Unit::kHost);
}

/// The small program and a sum on the host at its end: s32 and s8 to s16.
Program host_program() {
  Program program = small_program();
  HostFunction add;
  add.op = HostOp::kAdd;
  add.out = DType::kS16;
  program.host_functions = {HostFunction{}, add};
  Command host;
  host.opcode = Opcode::kHost;
  host.chain = 1;
  host.m = 32;
  host.n = 20;
  host.dram = 0x1000;
  host.dram_pitch = 100;
  host.a = 0x4000;
  host.a_pitch = 32;
  host.tensor = 0x9000;
  host.tensor_pitch = 40;
  program.commands.insert(program.commands.end() - 1, host);
  return program;
}
constexpr std::size_t kHostCommand = 5;

Machine host_machine() {
  Machine machine;
  machine.host.operators = HostOperators::kFloat;
  return machine;
}

TEST(Ranges, OfAHostCommandAreInDram) {
  const Program program = host_program();
  const std::vector<Range> ranges = ranges_of(program.commands[kHostCommand], program);
  ASSERT_EQ(ranges.size(), 3U);
  const Range expected[] = {{Space::kDram, 0x1000, 0x1000 + 31 * 100 + 80, false},
                            {Space::kDram, 0x4000, 0x4000 + 31 * 32 + 20, false},
                            {Space::kDram, 0x9000, 0x9000 + 32 * 40, true}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranges[i].space, expected[i].space);
    EXPECT_EQ(ranges[i].begin, expected[i].begin);
    EXPECT_EQ(ranges[i].end, expected[i].end);
    EXPECT_EQ(ranges[i].write, expected[i].write);
  }
}

TEST(Program, HostCommandsNeedAHostThatComputes) {
  EXPECT_NO_THROW(check_program(host_program(), host_machine(), kDramBytes));
  EXPECT_EQ(complaint_of(host_program(), Machine()),
            "command 5 (host): the machine's host computes nothing (host.operators is \"none\")");
}

struct BadHostCommand {
  const char* name;
  std::function<void(Program&, Command&)> spoil;
  const char* message;
};

class RefusesHostCommand : public testing::TestWithParam<BadHostCommand> {};

TEST_P(RefusesHostCommand, AndNamesThePlace) {
  Program program = host_program();
  GetParam().spoil(program, program.commands[kHostCommand]);
  EXPECT_THAT(complaint_of(program, host_machine()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Program, RefusesHostCommand,
    testing::Values(
        BadHostCommand{"Function", [](Program&, Command& c) { c.chain = 2; }, "function 2 of 2"},
        BadHostCommand{"Scale", [](Program& p, Command&) { p.host_functions[1].in_scale = 0; },
                       "function 1: in_scale is 0"},
        BadHostCommand{"Columns",
                       [](Program& p, Command&) {
                         HostFunction& function = p.host_functions[1];
                         function.op = HostOp::kLayerNorm;
                         function.gamma = function.beta = {1, 2};
                       },
                       "n is 20, expected the 2 columns"},
        BadHostCommand{"Operand", [](Program&, Command& c) { c.chain = 0; },
                       "an operand is given, but softmax does not use it"},
        BadHostCommand{"Long",
                       [](Program&, Command& c) {
                         c.m = 1;
                         c.n = 65537;
                       },
                       "rows of 65537 elements"},
        BadHostCommand{"Empty", [](Program&, Command& c) { c.m = 0; }, "m is 0"},
        BadHostCommand{"Overlap", [](Program&, Command& c) { c.tensor_pitch = 39; },
                       "result_pitch 39, expected at least the 40"},
        BadHostCommand{"Outside", [](Program&, Command& c) { c.tensor = kDramBytes - 10; },
                       "writes DRAM bytes"},
        BadHostCommand{"Kept", [](Program&, Command& c) { c.k = 1; }, "kept is 1, expected 0"},
        BadHostCommand{"Field", [](Program&, Command& c) { c.c = 1; }, "c is given"}),
    [](const testing::TestParamInfo<BadHostCommand>& test) { return test.param.name; });

TEST(Program, ThatIsLegalPasses) {
  EXPECT_NO_THROW(check_program(small_program(), Machine{}, kDramBytes));
}

TEST(Program, MayBroadcastOneRowToAll) {
  Program program = small_program();
  program.commands[0].dram_pitch = 0;
  EXPECT_NO_THROW(check_program(program, Machine{}, kDramBytes));
}

struct BadProgram {
  const char* name;
  std::function<void(Program& program)> change;
  const char* expected;
};

class RefusesProgram : public testing::TestWithParam<BadProgram> {};

TEST_P(RefusesProgram, AndNamesThePlace) {
  Program program = small_program();
  GetParam().change(program);
  EXPECT_THAT(complaint_of(program, Machine{}), testing::HasSubstr(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Program, RefusesProgram,
    testing::Values(
        BadProgram{"Empty", [](Program& p) { p.commands.clear(); }, "no commands"},
        BadProgram{"NoEnd", [](Program& p) { p.commands.pop_back(); },
                   "command 4 (move): the last command is not end"},
        BadProgram{"EarlyEnd", [](Program& p) { p.commands.insert(p.commands.begin(), Command{}); },
                   "command 0 (end): end, but"},
        BadProgram{"Opcode", [](Program& p) { p.commands[1].opcode = static_cast<Opcode>(9); },
                   "command 1 (?): opcode 9"},
        BadProgram{"Unused", [](Program& p) { p.commands[0].c = 1; },
                   "command 0 (load): c is given"},
        BadProgram{"UnusedAtEnd", [](Program& p) { p.commands[5].m = 1; },
                   "command 5 (end): m is given"},
        BadProgram{"Operator", [](Program& p) { p.commands[2].op = 1; }, "operator 1 of 1"},
        BadProgram{"NoRows", [](Program& p) { p.commands[0].m = 0; }, "m is 0"},
        BadProgram{"NoColumns", [](Program& p) { p.commands[3].n = 0; }, "n is 0"},
        BadProgram{"NoDepth", [](Program& p) { p.commands[2].k = 0; }, "k is 0"},
        BadProgram{"Chain", [](Program& p) { p.commands[3].chain = 2; }, "chain 2 of 2"},
        BadProgram{"Type", [](Program& p) { p.commands[1].type = static_cast<DType>(5); },
                   "element type 5"},
        BadProgram{"ChainStage", [](Program& p) { p.chains[1].stages[0].imm[6] = 40; },
                   "chain 1: stage 0 (softmax): out_bits 40"},
        BadProgram{"ChainLength", [](Program& p) { p.chains[0].stages.resize(9); },
                   "chain 0: 9 stages"},
        BadProgram{"DramRead", [](Program& p) { p.commands[0].dram = kDramBytes - 100; },
                   "reads DRAM bytes"},
        BadProgram{
            "DramWrap",
            [](Program& p) { p.commands[0].dram = std::numeric_limits<std::uint64_t>::max(); },
            "reads DRAM bytes"},
        BadProgram{"DramWrite", [](Program& p) { p.commands[3].dram_pitch = 0x7fffffff; },
                   "writes DRAM bytes"},
        BadProgram{"Tensor", [](Program& p) { p.commands[3].tensor = kDramBytes; },
                   "reads DRAM bytes"},
        BadProgram{"Scratchpad", [](Program& p) { p.commands[0].a = 262000; },
                   "writes scratchpad bytes"},
        BadProgram{"Parameters", [](Program& p) { p.commands[3].parameters = 262100; },
                   "reads scratchpad bytes"},
        BadProgram{"UnalignedParameters", [](Program& p) { p.commands[3].parameters = 0x3002; },
                   "command 3 (store): parameters at 12290, expected a multiple of 4"},
        BadProgram{"Accumulator", [](Program& p) { p.commands[2].c = 16000; },
                   "writes accumulator elements 16000 to 17024 of 16384"},
        BadProgram{"KeptWithoutSoftmax", [](Program& p) { p.commands[3].k = 1; },
                   "kept is 1, expected 0 without a softmax or a causal mask"},
        BadProgram{"KeptBeyondTheRow", [](Program& p) { p.commands[4].k = p.commands[4].n + 1; },
                   "expected 0 to"},
        BadProgram{"Statistics", [](Program& p) { p.commands[4].statistics = 1000; },
                   "writes row statistics 1000 to 1032 of 1024"},
        BadProgram{"Overlap", [](Program& p) { p.commands[3].dram_pitch = 63; },
                   "dram_pitch 63, expected at least the 64"},
        BadProgram{"OverlapLoad", [](Program& p) { p.commands[0].a_pitch = 63; }, "a_pitch 63"},
        BadProgram{"OverlapMatmul", [](Program& p) { p.commands[2].c_pitch = 0; }, "c_pitch 0"},
        BadProgram{"OverlapMove", [](Program& p) { p.commands[4].b_pitch = 31; }, "b_pitch 31"},
        BadProgram{"LongRow",
                   [](Program& p) {
                     p.commands[4].m = 1;
                     p.commands[4].n = 65537;
                   },
                   "row of 65537 elements"},
        BadProgram{"SameName", [](Program& p) { p.operators.push_back(p.operators[0]); },
                   "operator 1: its name"},
        BadProgram{"Place",
                   [](Program& p) { p.operators[0].place = static_cast<Operator::Place>(3); },
                   "operator 0: place 3"},
        BadProgram{"ResultType", [](Program& p) { p.operators[0].type = static_cast<DType>(9); },
                   "operator 0: type 9"},
        BadProgram{"Result",
                   [](Program& p) {
                     p.operators[0].rows = p.operators[0].cols = p.operators[0].pitch = 0xffffffff;
                   },
                   "operator 0: result at 32768 exceeds"}),
    [](const testing::TestParamInfo<BadProgram>& test) { return test.param.name; });

}  // namespace
}  // namespace systole::hw
