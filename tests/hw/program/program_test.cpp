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

  cmd::Load load;
  load.from = {0x1000, 64};
  load.m = 32;
  load.n = 64;
  load.to.pitch = 64;
  cmd::LoadAccumulator seed;
  seed.type = DType::kS32;
  seed.from.address = 0x4000;
  seed.m = 32;
  seed.n = 32;
  seed.to.pitch = 32;
  cmd::Matmul matmul;
  matmul.accumulate = true;
  matmul.m = 32;
  matmul.n = 32;
  matmul.k = 64;
  matmul.a.pitch = 64;
  matmul.b = {0x2000, 32};
  matmul.c.pitch = 32;
  cmd::Store store;
  store.m = 32;
  store.n = 32;
  store.from.pitch = 32;
  store.to = {0x8000, 64};
  store.chain.parameters = 0x3000;
  store.chain.tensor = {0x9000, 64};
  cmd::Move move;
  static_cast<cmd::Result&>(move) = store;
  move.chain.chain = 1;
  move.chain.statistics = 8;
  move.to = {0x4000, 32};
  program.commands = {{load}, {seed}, {matmul}, {store}, {move}, {}};
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
  Program program = small_program();
  work_of<cmd::Load>(program, 0).from.pitch = 100;
  work_of<cmd::Load>(program, 0).n = 60;
  const Command& load = program.commands[0];
  expect_range(load, program, Space::kDram, false, 0x1000, 0x1000 + 31 * 100 + 60);
  expect_range(load, program, Space::kScratchpad, true, 0, 31 * 64 + 60);
}

TEST(Ranges, OfAnAccumulatorLoadWidenOnlyOnChip) {
  Program program = small_program();
  work_of<cmd::LoadAccumulator>(program, 1).type = DType::kS16;
  const Command& load = program.commands[1];
  expect_range(load, program, Space::kDram, false, 0x4000, 0x4000 + 64);
  expect_range(load, program, Space::kAccumulator, true, 0, 31 * 32 + 32);
}

TEST(Ranges, OfAMatmulSwapWithATransposedOperand) {
  Program program = small_program();
  auto& matmul = work_of<cmd::Matmul>(program, 2);
  matmul.a.address = 0x10000;
  std::vector<Range> ranges = ranges_of(program.commands[2], program);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[1].end, 0x2000U + 63 * 32 + 32);
  matmul.b_transposed = true;
  matmul.b.pitch = 64;
  ranges = ranges_of(program.commands[2], program);
  EXPECT_EQ(ranges[1].end, 0x2000U + 31 * 64 + 64);
}

TEST(Ranges, OfAMatmulByInt4WeightsHaveHalfOfTheDepth) {
  Program program = small_program();
  auto& matmul = work_of<cmd::Matmul>(program, 2);
  matmul.b_int4 = true;
  matmul.k = 63;
  std::vector<Range> ranges = ranges_of(program.commands[2], program);
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].end - ranges[0].begin, (matmul.m - 1) * matmul.a.pitch + 63U);
  EXPECT_EQ(ranges[1].end, 0x2000U + 31 * 32 + 32);
  matmul.b_transposed = true;
  ranges = ranges_of(program.commands[2], program);
  EXPECT_EQ(ranges[1].end, 0x2000U + 31 * 32 + 32);
}

TEST(Ranges, OfInt4ActivationsAndResultsHaveHalfOfTheBytes) {
  Program program = small_program();
  auto& matmul = work_of<cmd::Matmul>(program, 2);
  matmul.a_int4 = matmul.b_int4 = true;
  matmul.k = 63;
  std::vector<Range> ranges = ranges_of(program.commands[2], program);
  EXPECT_EQ(ranges[0].end - ranges[0].begin, (matmul.m - 1) * matmul.a.pitch + 32U);
  auto& store = work_of<cmd::Store>(program, 3);
  program.chains[store.chain.chain].out = DType::kS8;
  const std::uint64_t whole = written_rows(store, program).bytes;
  store.int4 = true;
  EXPECT_EQ(written_rows(store, program).bytes, (whole + 1) / 2);
  EXPECT_EQ(written_rows(store, program).rows, store.m);
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
  Program program = small_program();
  const std::uint64_t begin = std::numeric_limits<std::uint64_t>::max() - 10;
  work_of<cmd::Load>(program, 0).from.address = begin;
  expect_range(program.commands[0], program, Space::kDram, false, begin,
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
  cmd::HostCall call;
  call.function = 1;
  call.m = 32;
  call.n = 20;
  call.in = {0x1000, 100};
  call.operand = {0x4000, 32};
  call.out = {0x9000, 40};
  program.commands.insert(program.commands.end() - 1, {call});
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
  std::function<void(Program&, cmd::HostCall&)> spoil;
  const char* message;
};

class RefusesHostCommand : public testing::TestWithParam<BadHostCommand> {};

TEST_P(RefusesHostCommand, AndNamesThePlace) {
  Program program = host_program();
  GetParam().spoil(program, work_of<cmd::HostCall>(program, kHostCommand));
  EXPECT_THAT(complaint_of(program, host_machine()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Program, RefusesHostCommand,
    testing::Values(
        BadHostCommand{"Function", [](Program&, cmd::HostCall& c) { c.function = 2; },
                       "function 2 of 2"},
        BadHostCommand{"Scale",
                       [](Program& p, cmd::HostCall&) { p.host_functions[1].in_scale = 0; },
                       "function 1: in_scale is 0"},
        BadHostCommand{"Columns",
                       [](Program& p, cmd::HostCall&) {
                         HostFunction& function = p.host_functions[1];
                         function.op = HostOp::kLayerNorm;
                         function.gamma = function.beta = {1, 2};
                       },
                       "n is 20, expected the 2 columns"},
        BadHostCommand{"Operand", [](Program&, cmd::HostCall& c) { c.function = 0; },
                       "an operand is given, but softmax does not use it"},
        BadHostCommand{"Long",
                       [](Program&, cmd::HostCall& c) {
                         c.m = 1;
                         c.n = 65537;
                       },
                       "rows of 65537 elements"},
        BadHostCommand{"Empty", [](Program&, cmd::HostCall& c) { c.m = 0; }, "m is 0"},
        BadHostCommand{"Overlap", [](Program&, cmd::HostCall& c) { c.out.pitch = 39; },
                       "result_pitch 39, expected at least the 40"},
        BadHostCommand{"Outside",
                       [](Program&, cmd::HostCall& c) { c.out.address = kDramBytes - 10; },
                       "writes DRAM bytes"},
        BadHostCommand{"Kept", [](Program&, cmd::HostCall& c) { c.valid_cols = 1; },
                       "kept is 1, expected 0"},
        BadHostCommand{"FarOperand",
                       [](Program&, cmd::HostCall& c) { c.operand.address = 1ULL << 32; },
                       "operand at 4294967296, expected below 4 GiB"}),
    [](const testing::TestParamInfo<BadHostCommand>& test) { return test.param.name; });

TEST(Program, ThatIsLegalPasses) {
  EXPECT_NO_THROW(check_program(small_program(), Machine{}, kDramBytes));
}

TEST(Program, AResultMayEndWhereMemoryEnds) {
  Program program = small_program();
  Operator& op = program.operators[0];
  const std::uint64_t extent = 31 * 64 + 32 * 2;  // of 32 rows at a pitch of 64 bytes
  op.address = kDramBytes - extent;
  EXPECT_NO_THROW(check_program(program, Machine{}, kDramBytes));
  ++op.address;
  EXPECT_THROW(check_program(program, Machine{}, kDramBytes), InputError);
}

TEST(Program, MayBroadcastOneRowToAll) {
  Program program = small_program();
  work_of<cmd::Load>(program, 0).from.pitch = 0;
  EXPECT_NO_THROW(check_program(program, Machine{}, kDramBytes));
}

TEST(Program, Int4ActivationsAndResultsAreOfArraysThatMultiplyThem) {
  Program program = small_program();
  auto& matmul = work_of<cmd::Matmul>(program, 2);
  matmul.a_int4 = true;
  Machine machine;
  machine.array.split = ArraySplit::kWeights;
  EXPECT_THAT(complaint_of(program, machine),
              testing::HasSubstr("int4 activations, but array.split is not \"both\""));
  machine.array.split = ArraySplit::kBoth;
  EXPECT_THAT(complaint_of(program, machine), testing::HasSubstr("expected int4 weights, too"));
  matmul.b_int4 = true;
  EXPECT_EQ(complaint_of(program, machine), "no error");
  matmul.a_unsigned = true;
  EXPECT_THAT(complaint_of(program, machine), testing::HasSubstr("expected signed ones"));
  matmul.a_unsigned = false;
  auto& store = work_of<cmd::Store>(program, 3);
  store.int4 = true;
  program.chains[store.chain.chain].out = DType::kS8;
  EXPECT_EQ(complaint_of(program, machine), "no error");
  program.chains[store.chain.chain].out = DType::kS16;
  EXPECT_THAT(complaint_of(program, machine), testing::HasSubstr("expected s8, row by row"));
  program.chains[store.chain.chain].out = DType::kS8;
  machine.array.split = ArraySplit::kWeights;
  matmul.a_int4 = false;
  EXPECT_THAT(complaint_of(program, machine), testing::HasSubstr("int4 results, but array.split"));
}

TEST(Program, Int4WeightsAreOfArraysWhoseMultipliersSplit) {
  Program program = small_program();
  auto& matmul = work_of<cmd::Matmul>(program, 2);
  matmul.b_int4 = true;
  EXPECT_THAT(complaint_of(program, Machine{}),
              testing::HasSubstr("int4 weights, but array.split is \"none\""));
  Machine machine;
  machine.array.split = ArraySplit::kWeights;
  EXPECT_EQ(complaint_of(program, machine), "no error");
  matmul.b_transposed = true;  // rows of 32 pairs
  EXPECT_EQ(complaint_of(program, machine), "no error");
  matmul.b.pitch = 31;
  EXPECT_THAT(complaint_of(program, machine),
              testing::HasSubstr("b_pitch 31, expected at least the 32 of a row"));
}

TEST(Program, PackedWeightsAreGroupsThatAnExpanderTakes) {
  Machine machine;
  machine.dma.expander_lanes = 4;
  Program program = small_program();
  auto& load = work_of<cmd::Load>(program, 0);
  load.format = WeightFormat::kGroups;
  load.m = 96;
  load.n = 10;
  load.from = {4096, 200};
  load.to = {0, 16};
  EXPECT_EQ(complaint_of(program, machine), "no error");
  // Three runs of 2 * 10 + 32 * 5 bytes.
  EXPECT_EQ(read_rows(load).rows, 3U);
  EXPECT_EQ(read_rows(load).bytes, 180U);
  const std::vector<Range> ranges = ranges_of(program.commands[0], program);
  EXPECT_EQ(ranges[0].begin, 4096U);
  EXPECT_EQ(ranges[0].end, 4096U + 2 * 200 + 180);
  EXPECT_EQ(ranges[1].end, 95U * 16 + 10);

  // Of MX: 10 + 32 * 10 and 10 + 32 * 5 bytes.
  for (const auto& [format, bytes] :
       {std::pair(WeightFormat::kMxInt8, 330U), std::pair(WeightFormat::kMxFp4, 170U)}) {
    load.format = format;
    load.from.pitch = 330;
    EXPECT_EQ(complaint_of(program, machine), "no error");
    EXPECT_EQ(read_rows(load).bytes, bytes);
    EXPECT_EQ(ranges_of(program.commands[0], program)[0].end, 4096U + 2 * 330 + bytes);
  }
  load.format = WeightFormat::kGroups;

  const auto refuses = [&](const std::function<void(cmd::Load&)>& change, const char* what) {
    Program changed = program;
    change(work_of<cmd::Load>(changed, 0));
    EXPECT_THAT(complaint_of(changed, machine), testing::HasSubstr(what));
  };
  refuses([](cmd::Load& l) { l.m = 97; },
          "command 0 (load): m is 97, expected a multiple of 32 rows of packed weights");
  refuses([](cmd::Load& l) { l.type = DType::kU8; }, "type is u8, expected s8 of packed weights");
  refuses([](cmd::Load& l) { l.pre.emplace(); }, "packed weights and stages or a window");
  refuses([](cmd::Load& l) { l.from.address = kDramBytes - 500; }, "reads DRAM bytes");
  machine.dma.expander_lanes = 0;
  refuses([](cmd::Load&) {}, "the machine's loads expand no weights (dma.expander_lanes is 0)");
  Program sums = program;
  cmd::LoadAccumulator widened;
  static_cast<cmd::Load&>(widened) = work_of<cmd::Load>(program, 0);
  sums.commands[0].work = widened;
  EXPECT_THAT(complaint_of(sums, machine), testing::HasSubstr("packed weights, expected them in"));
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
        BadProgram{"Operator", [](Program& p) { p.commands[2].op = 1; }, "operator 1 of 1"},
        BadProgram{"NoRows", [](Program& p) { work_of<cmd::Load>(p, 0).m = 0; }, "m is 0"},
        BadProgram{"NoColumns", [](Program& p) { work_of<cmd::Store>(p, 3).n = 0; }, "n is 0"},
        BadProgram{"NoDepth", [](Program& p) { work_of<cmd::Matmul>(p, 2).k = 0; }, "k is 0"},
        BadProgram{"Chain", [](Program& p) { work_of<cmd::Store>(p, 3).chain.chain = 2; },
                   "chain 2 of 2"},
        BadProgram{"ChainStage", [](Program& p) { p.chains[1].stages[0].imm[6] = 40; },
                   "chain 1: stage 0 (softmax): out_bits 40"},
        BadProgram{"ChainLength", [](Program& p) { p.chains[0].stages.resize(9); },
                   "chain 0: 9 stages"},
        BadProgram{"DramRead",
                   [](Program& p) { work_of<cmd::Load>(p, 0).from.address = kDramBytes - 100; },
                   "reads DRAM bytes"},
        BadProgram{"DramWrap",
                   [](Program& p) {
                     work_of<cmd::Load>(p, 0).from.address =
                         std::numeric_limits<std::uint64_t>::max();
                   },
                   "reads DRAM bytes"},
        BadProgram{"DramWrite", [](Program& p) { work_of<cmd::Store>(p, 3).to.pitch = 0x7fffffff; },
                   "writes DRAM bytes"},
        BadProgram{"Tensor",
                   [](Program& p) { work_of<cmd::Store>(p, 3).chain.tensor.address = kDramBytes; },
                   "reads DRAM bytes"},
        BadProgram{"Scratchpad", [](Program& p) { work_of<cmd::Load>(p, 0).to.address = 262000; },
                   "writes scratchpad bytes"},
        BadProgram{"Parameters",
                   [](Program& p) { work_of<cmd::Store>(p, 3).chain.parameters = 262100; },
                   "reads scratchpad bytes"},
        BadProgram{"UnalignedParameters",
                   [](Program& p) { work_of<cmd::Store>(p, 3).chain.parameters = 0x3002; },
                   "command 3 (store): parameters at 12290, expected a multiple of 4"},
        BadProgram{"Accumulator", [](Program& p) { work_of<cmd::Matmul>(p, 2).c.address = 16000; },
                   "writes accumulator elements 16000 to 17024 of 16384"},
        BadProgram{"KeptWithoutSoftmax",
                   [](Program& p) { work_of<cmd::Store>(p, 3).chain.valid_cols = 1; },
                   "kept is 1, expected 0 without a softmax or a causal mask"},
        BadProgram{"KeptBeyondTheRow",
                   [](Program& p) {
                     work_of<cmd::Move>(p, 4).chain.valid_cols = work_of<cmd::Move>(p, 4).n + 1;
                   },
                   "expected 0 to"},
        BadProgram{"Statistics",
                   [](Program& p) { work_of<cmd::Move>(p, 4).chain.statistics = 1000; },
                   "writes row statistics 1000 to 1032 of 1024"},
        BadProgram{"Overlap", [](Program& p) { work_of<cmd::Store>(p, 3).to.pitch = 63; },
                   "dram_pitch 63, expected at least the 64"},
        BadProgram{"OverlapLoad", [](Program& p) { work_of<cmd::Load>(p, 0).to.pitch = 63; },
                   "a_pitch 63"},
        BadProgram{"OverlapMatmul", [](Program& p) { work_of<cmd::Matmul>(p, 2).c.pitch = 0; },
                   "c_pitch 0"},
        // One row too: an engine of the array takes no other.
        BadProgram{"OverlapOneRow",
                   [](Program& p) {
                     work_of<cmd::Matmul>(p, 2).m = 1;
                     work_of<cmd::Matmul>(p, 2).c.pitch = 31;
                   },
                   "c_pitch 31, expected at least the 32 of a row"},
        BadProgram{"OverlapA", [](Program& p) { work_of<cmd::Matmul>(p, 2).a.pitch = 63; },
                   "a_pitch 63, expected at least the 64 of a row"},
        BadProgram{"OverlapB", [](Program& p) { work_of<cmd::Matmul>(p, 2).b.pitch = 31; },
                   "b_pitch 31, expected at least the 32 of a row"},
        BadProgram{"OverlapTurnedB",
                   [](Program& p) {
                     work_of<cmd::Matmul>(p, 2).b_transposed = true;
                     work_of<cmd::Matmul>(p, 2).b.pitch = 63;
                   },
                   "b_pitch 63, expected at least the 64 of a row"},
        BadProgram{"OverlapMove", [](Program& p) { work_of<cmd::Move>(p, 4).to.pitch = 31; },
                   "b_pitch 31"},
        BadProgram{"LongRow",
                   [](Program& p) {
                     work_of<cmd::Move>(p, 4).m = 1;
                     work_of<cmd::Move>(p, 4).n = 65537;
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
