#include "tlm/core/store_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/dma/operand_arrivals.h"
#include "hw/dma/result_rows.h"
#include "hw/dma/store_queue.h"
#include "hw/postop/postop.h"
#include "support/network/even_machine.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/set_up_alone.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::even_machine;
using test::latency_on;
using test::load_command;
using test::matmul_command;
using test::move_command;
using test::store_command;

constexpr std::uint32_t kCols = 16;  // one vector of the 16 lanes
constexpr std::uint64_t kTensor = 0;
constexpr std::uint64_t kResult = 32 * 1024;
constexpr std::uint32_t kElsewhere = 64 * 1024;  // in the scratchpad

hw::Stage stage_of(hw::StageOp op) {
  hw::Stage stage = hw::default_stage(op);
  stage.tensor = hw::DType::kS8;
  // Any that check_chain() accepts: values do not move.
  if (op == hw::StageOp::kLayerNorm) stage.imm = {15, 21, -127, 127};
  if (op == hw::StageOp::kSoftmax) stage.imm = {0, 1, 0, 8, 1, 0, 8};
  return stage;
}
/// A sum with a tensor operand.
hw::Stage residual_stage() {
  hw::Stage stage = stage_of(hw::StageOp::kAdd);
  stage.operand = hw::Operand::kTensor;
  return stage;
}
const hw::Chain kPlain{{}, hw::DType::kS8};
const hw::Chain kResidual{{residual_stage()}, hw::DType::kS8};

/// The command with a tensor operand at kTensor.
hw::Command with_tensor(hw::Command command) {
  auto& result = *command.as<hw::cmd::Result>();
  result.chain.tensor = {kTensor, result.n};
  return command;
}

std::map<std::string, std::uint64_t> report_of(const CoreRig& rig) {
  return test::values_of(rig.core.store.report(rig.core.processor.cycle()));
}

class StoreUnitTest : public test::SystemCTest {};

// Each takes the bank in every cycle. The load has it first, though the move has started before.
TEST_F(StoreUnitTest, AMoveWaitsForTheWordsOfALoadThatStartsAfterIt) {
  hw::Machine machine = even_machine(20);
  machine.scratchpad.ports = 1;
  const hw::Command move = move_command(0, 0, 64, 4 * kCols);
  std::uint64_t alone = 0;
  for (const std::uint32_t words : {0U, 16U, 64U}) {
    test::fresh_kernel();
    CoreRig rig(machine, false);
    std::vector<hw::Command> commands{move};
    if (words != 0) commands.push_back(load_command(32 * 1024, kTensor, 16 * words, 1));
    rig.run([&] { rig.execute(commands, {kPlain}); });
    const std::uint64_t taken = rig[0].completed - rig[0].started;
    if (words == 0) alone = taken;
    EXPECT_EQ(taken, alone + words);
    if (words == 0) continue;
    EXPECT_GT(rig[1].started, rig[0].started);
    EXPECT_LT(rig[1].completed, rig[0].completed - words);
  }
}

// Parameters come ahead of their command if the array leaves their bank some words.
TEST_F(StoreUnitTest, ParametersWaitForTheArrayAtTheirBank) {
  hw::Machine machine = even_machine(20);
  machine.scratchpad.ports = 1;
  const auto bank = static_cast<std::uint32_t>(machine.scratchpad.bank_bytes());
  hw::Stage scale = stage_of(hw::StageOp::kRequantise);
  scale.operand = hw::Operand::kChannel;
  const hw::Chain chain{{scale}, hw::DType::kS8};
  const std::uint32_t words = hw::parameter_words(chain) * 4 * kCols * 4 / 16;
  ASSERT_EQ(words, 32U);
  const auto set_up = [&](std::uint32_t parameters) {
    test::fresh_kernel();
    CoreRig rig(machine, false);
    // The second one reads A while the sums of the first leave the array.
    const hw::Command first = matmul_command({100, 4 * kCols, 16}, 0, bank, 0);
    const hw::Command second = matmul_command({100, 4 * kCols, 16}, 0, bank, 8192);
    hw::Command move = move_command(0, 3 * bank, 100, 4 * kCols);
    move.as<hw::cmd::Move>()->chain.parameters = parameters;
    rig.run([&] { rig.execute({first, second, move}, {chain}); });
    EXPECT_EQ(rig[2].started, rig[0].completed);
    EXPECT_GT(rig[2].dispatched, rig[0].started + 16) << "the array reads A in every cycle";
    return rig[2].completed - rig[2].started;
  };
  const std::uint64_t alone = set_up(2 * bank);
  // None in the cycle of its start either: until then the array comes first.
  EXPECT_EQ(set_up(bank - 1024), alone + words);
}

using ContractCase = std::tuple<const char*, std::vector<hw::StageOp>, std::uint32_t>;
class StoreContractTest : public StoreUnitTest,
                          public ::testing::WithParamInterface<ContractCase> {};

TEST_P(StoreContractTest, ALoneMoveTakesTheCyclesOfItsChain) {
  hw::Chain chain;
  for (const hw::StageOp op : std::get<1>(GetParam())) chain.stages.push_back(stage_of(op));
  constexpr std::uint32_t kRows = 37;
  const std::uint32_t cols = std::get<2>(GetParam());
  CoreRig rig(even_machine(20), false);
  rig.run([&] { rig.execute({move_command(0, kElsewhere, kRows, cols)}, {chain}); });
  const hw::ChainCycles cycles = hw::chain_cycles(chain, kRows, cols, 16);
  EXPECT_EQ(rig[0].started, rig[0].dispatched);
  const std::uint64_t begin =
      hw::kAccumulatorReadCycles + test::set_up_alone(hw::Machine{}, chain, cols);
  EXPECT_EQ(rig[0].released - rig[0].started, cycles.total(kRows) + begin);
  EXPECT_EQ(rig[0].completed, rig[0].released);
  const auto report = report_of(rig);
  EXPECT_EQ(report.at("busy"), kRows * cycles.per_row);
  EXPECT_EQ(report.at("stalled.fill"), cycles.fill + begin);
  EXPECT_EQ(report.at("stalled.memory"), 0U);
  EXPECT_EQ(report.at("operations"), kRows * cols * chain.stages.size());
  EXPECT_EQ(report.at("accumulator_reads"), cycles.reads);
}

INSTANTIATE_TEST_SUITE_P(
    Chains, StoreContractTest,
    ::testing::Values(ContractCase{"none", {}, 16},
                      ContractCase{"requantise", {hw::StageOp::kRequantise}, 40},
                      ContractCase{"gelu", {hw::StageOp::kAdd, hw::StageOp::kGelu}, 64},
                      ContractCase{"softmax", {hw::StageOp::kSoftmax}, 100},
                      ContractCase{
                          "layer_norm", {hw::StageOp::kLayerNorm, hw::StageOp::kRequantise}, 48}),
    [](const auto& chain) { return std::string(std::get<0>(chain.param)); });

class OperandTest : public StoreUnitTest,
                    public ::testing::WithParamInterface<std::tuple<std::uint32_t, bool, int>> {};

/// The unit has room for 64 rows of the operand. Of more it asks for 32 at a time, two times ahead.
TEST_P(OperandTest, ComesAheadAsFarAsThereIsRoom) {
  const auto& [rows, serial, controller_ns] = GetParam();
  hw::Machine machine = even_machine(controller_ns);
  machine.postop.operand_kib = 1;
  const std::uint32_t block = rows <= 64 ? rows : 32;
  hw::Chain chain = kResidual;
  if (serial) chain.stages.push_back(stage_of(hw::StageOp::kDivideRowSum));
  const std::uint64_t latency = latency_on(machine, kCols).read;
  test::fresh_kernel();
  CoreRig rig(machine, false);
  const hw::Command move = with_tensor(move_command(0, kElsewhere, rows, kCols));
  rig.run([&] { rig.execute({move}, {chain}); });

  const hw::ResultCycles cycles =
      hw::result_cycles(hw::chain_cycles(chain, rows, kCols, 16), chain, rows, kCols, 16,
                        hw::result_piece_bytes(machine, true), hw::kAccumulatorReadCycles);
  // What set_up_alone() says is what the lead does not hide of it.
  const std::uint64_t late = test::set_up_alone(machine, chain, kCols);
  hw::ResultFlow flow(hw::chain_cycles(chain, rows, kCols, 16), chain, {rows, kCols}, 16,
                      hw::kAccumulatorReadCycles, hw::ResultFlow::Inputs::kSums);
  flow.start(0, cycles.lead + late);
  hw::ResultRows results(flow, {kCols, 16, 8, hw::result_piece_bytes(machine, true)},
                         {0, kCols, rows, kCols});
  hw::OperandArrivals operands(rows, kCols, 16, machine.bus.width_bytes);
  operands.begin_rows(1, true);
  const std::vector<std::uint64_t>& done = results.left();  // cycles since the start
  std::uint64_t next_issue = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint64_t used = row / block * block;  // before the half that it is in
    const std::uint64_t issued =
        std::max(next_issue, used < 2 * block ? 0 : done.at(used - block - 1));
    next_issue = issued + 1;
    operands.arrive(0, kCols, issued + latency);
    hw::InputTimes inputs;
    inputs.not_before = issued + latency;
    operands.tell(inputs);
    while (const auto cycle = results.next(inputs)) {
      results.take(*cycle);
      if (done.size() == rows) break;
    }
  }
  std::uint64_t busy = 0, before = cycles.fill + late;
  for (const std::uint64_t left : done) {
    busy += std::min(left - before, cycles.per_row);
    before = left;
  }
  EXPECT_EQ(rig[0].released - rig[0].started, done.back());
  const auto report = report_of(rig);
  EXPECT_EQ(report.at("stalled.memory"), done.back() - cycles.fill - late - busy);
  EXPECT_EQ(report.at("operand_bytes"), rows * kCols);
  EXPECT_EQ(report.at("requests"), rows);
}

INSTANTIATE_TEST_SUITE_P(Rows, OperandTest,
                         ::testing::Combine(::testing::Values(1U, 16U, 64U, 65U, 96U, 200U),
                                            ::testing::Bool(), ::testing::Values(0, 40, 500)));

TEST_F(StoreUnitTest, HidesTheOperandOfALongRow) {
  hw::Chain chain = kResidual;
  chain.stages.push_back(stage_of(hw::StageOp::kLayerNorm));
  const std::uint64_t latency = latency_on(even_machine(100), kCols).read;
  test::fresh_kernel();
  CoreRig rig(even_machine(100), false);
  const hw::Command move = with_tensor(move_command(0, kElsewhere, 64, kCols));
  rig.run([&] { rig.execute({move}, {chain}); });
  // All rows are asked for at once, so only the first one is late.
  const hw::ChainCycles cycles = hw::chain_cycles(chain, 64, kCols, 16);
  EXPECT_LT(report_of(rig).at("stalled.memory"), latency);
  EXPECT_EQ(cycles.per_row, 37U);
}

class WriteQueueTest : public StoreUnitTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(WriteQueueTest, HoldsThePipelineWhenItIsFull) {
  constexpr std::uint32_t kRows = 40;
  hw::Machine machine = even_machine(60);
  const std::uint64_t latency = latency_on(machine, kCols).write;
  machine.dma.outstanding_writes = GetParam();
  test::fresh_kernel();
  CoreRig rig(machine, false);
  rig.run([&] { rig.execute({store_command(0, kResult, kRows, kCols)}, {kPlain}); });
  const hw::ChainCycles cycles = hw::chain_cycles(kPlain, kRows, kCols, 16);
  hw::ResultFlow flow(cycles, kPlain, {kRows, kCols}, 16, hw::kAccumulatorReadCycles,
                      hw::ResultFlow::Inputs::kSums);
  flow.start(0, test::set_up_alone(machine, kPlain, kCols));
  hw::ResultRows results(flow, {kCols, 16, 8, 16}, {kResult, kCols, kRows, kCols});
  std::vector<std::uint64_t> acknowledged;
  hw::StoreQueue queue(machine);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::uint64_t place = row < GetParam() ? 0 : acknowledged[row - GetParam()];
    const std::uint64_t issued = std::max(results.request(kCols, queue, {}).value(), place);
    results.issued(issued, kResult + std::uint64_t{row} * kCols, kCols, queue);
    acknowledged.push_back(issued + latency);
  }
  EXPECT_EQ(rig[0].completed - rig[0].started, acknowledged.back());
  const std::uint64_t last_issued = acknowledged.back() - latency;
  EXPECT_EQ(rig[0].released - rig[0].started, std::max(results.left().back(), last_issued + 1));
  EXPECT_EQ(report_of(rig).at("written_bytes"), kRows * kCols);
}

INSTANTIATE_TEST_SUITE_P(Places, WriteQueueTest, ::testing::Values(1U, 2U, 7U, 64U));

TEST_F(StoreUnitTest, YieldsAnAccumulatorBankToTheArray) {
  hw::Machine machine = even_machine(20);
  machine.scratchpad.ports = 4;
  const std::uint32_t half = machine.accumulator.kib * 1024 / 4 / 2;
  const auto conflict = [&](std::uint32_t c, std::uint32_t c_rows = 1) {
    hw::cmd::Matmul matmul =
        *matmul_command({256 / c_rows, 16, 64}, 0, 2 * kElsewhere, c, true).as<hw::cmd::Matmul>();
    matmul.c.pitch = 16 * c_rows;
    test::fresh_kernel();
    CoreRig rig(machine, false);
    rig.run([&] {
      rig.execute({hw::Command{matmul}, move_command(8192, kElsewhere, 64, kCols)}, {kPlain});
    });
    EXPECT_EQ(rig[1].started, rig[1].dispatched) << "beside the matmul";
    const std::uint64_t stalled = report_of(rig).at("stalled.bank_conflict");
    EXPECT_EQ(rig[1].released - rig[1].started,
              hw::chain_cycles(kPlain, 64, kCols, 16).total(64) + hw::kAccumulatorReadCycles +
                  test::set_up_alone(machine, kPlain, kCols) + stalled);
    return stalled;
  };
  EXPECT_EQ(half, 8192U) << "the move reads the second of two banks";
  EXPECT_EQ(conflict(0), 0U);
  EXPECT_GT(conflict(half + 2048), 0U);
  // Rows of a bank that is four memories are not in each other's way.
  machine.accumulator.memories = 4;
  EXPECT_EQ(conflict(half + 2048), 0U);
  // Those of one memory are, if the array has both of its ports in a cycle.
  const auto in_the_way = [&] {
    std::uint64_t cycles = 0;
    for (std::uint32_t rows = 2; rows < 9; ++rows) cycles += conflict(half + 2048, rows);
    return cycles;
  };
  EXPECT_GT(in_the_way(), 0U);
  machine.accumulator.ports = 3;
  EXPECT_EQ(in_the_way(), 0U) << "a port of its own";
}

TEST_F(StoreUnitTest, ReadsAWordAtLeastForEveryVectorAndAllOfTheRow) {
  constexpr std::uint64_t kRows = 24, kRowCols = 40, kWordSums = 16;
  const auto words = [](std::uint32_t lanes) {
    const std::uint64_t vectors = (kRowCols + lanes - 1) / lanes;
    return hw::chain_accumulator_words(kRows * vectors, kRowCols, lanes, 4 * kWordSums);
  };
  EXPECT_EQ(words(4), kRows * 10) << "vectors";
  EXPECT_EQ(words(16), kRows * 3);
  EXPECT_EQ(words(64), kRows * 3) << "words of a row";
}

TEST_F(StoreUnitTest, AddsEachRowOfTheOperandToItsOwnRow) {
  constexpr std::uint32_t kRows = 40;
  const hw::Machine machine = even_machine(300);
  std::vector<std::uint8_t> tensor(kRows * kCols), result(kRows * kCols);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    tensor[i] = static_cast<std::uint8_t>(i * 7 % 50);
  }
  std::uint64_t cycles[2];
  for (const bool functional : {false, true}) {
    test::fresh_kernel();
    CoreRig rig(machine, functional);
    if (functional) {
      for (std::uint32_t i = 0; i < kRows * kCols; ++i) {
        rig.core.memory.accumulators()[i] = static_cast<std::int32_t>(i % 60);
      }
    }
    rig.run([&] {
      if (functional) {
        rig.host.debug(tlm::TLM_WRITE_COMMAND, kTensor, tensor.data(), tensor.size());
      }
      rig.execute({with_tensor(store_command(0, kResult, kRows, kCols))}, {kResidual});
      if (functional) {
        rig.host.debug(tlm::TLM_READ_COMMAND, kResult, result.data(), result.size());
      }
    });
    cycles[functional] = rig[0].completed - rig[0].started;
  }
  EXPECT_EQ(cycles[0], cycles[1]) << "values take no time";
  for (std::size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], tensor[i] + i % 60) << i;
}

}  // namespace
}  // namespace systole::tlm_model
