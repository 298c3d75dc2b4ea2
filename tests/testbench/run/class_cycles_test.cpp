#include "testbench/run/class_cycles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/graph/stages.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "testbench/network/networks.h"
#include "testbench/run/mapping_search.h"

namespace systole::testbench {
namespace {

using hw::Opcode;
using hw::StageOp;
using tlm_model::CommandTrace;

hw::Chain chain_of(std::vector<StageOp> ops) {
  hw::Chain chain;
  for (const StageOp op : ops) {
    chain.stages.push_back(hw::default_stage(op));
  }
  return chain;
}

TEST(ClassCycles, AChainHasTheClassOfItsDearestStage) {
  const hw::Stage residual =
      model::add_tensor_stage(hw::DType::kS16, {}, 16, hw::Rounding::kHalfUp);
  hw::Chain chain = chain_of({StageOp::kRequantise});
  chain.stages.insert(chain.stages.begin(), model::bias_stage());
  EXPECT_EQ(class_of(chain), TimeClass::kMatmul);
  chain.stages.push_back(residual);
  EXPECT_EQ(class_of(chain), TimeClass::kResidual);
  chain.stages.push_back(hw::default_stage(StageOp::kLayerNorm));
  EXPECT_EQ(class_of(chain), TimeClass::kLayerNorm);
  EXPECT_EQ(class_of(chain_of({StageOp::kRequantise, StageOp::kGelu})), TimeClass::kGelu);
  EXPECT_EQ(class_of(chain_of({StageOp::kRequantise, StageOp::kSoftmax})), TimeClass::kSoftmax);
}

/// Two operators: a matmul whose softmax stores, then a LayerNorm of what is in memory.
class Shares : public testing::Test {
 protected:
  Shares() {
    program_.chains = {chain_of({StageOp::kSoftmax}), chain_of({StageOp::kLayerNorm})};
    program_.operators.resize(2);
  }
  void add(Opcode opcode, std::uint32_t op, std::uint64_t started, std::uint64_t released,
           std::uint64_t completed) {
    hw::Command command;
    if (opcode == Opcode::kStore) {
      command.work.emplace<hw::cmd::Store>().chain.chain = static_cast<std::uint16_t>(op);
    }
    command.op = op;
    CommandTrace trace;
    trace.index = static_cast<std::uint32_t>(traces_.size());
    trace.unit = hw::unit_of(opcode);
    trace.opcode = opcode;
    trace.op = op;
    trace.dispatched = started;
    trace.started = started;
    trace.released = released;
    trace.completed = completed;
    program_.commands.push_back(command);
    traces_.push_back(trace);
  }

  hw::Program program_;
  std::vector<CommandTrace> traces_;
};

TEST_F(Shares, EveryCycleGoesToTheUnitsAtWorkOrToWhatIsWaitedFor) {
  add(Opcode::kLoad, 0, 10, 20, 30);                // 10 to 30: waiting for the matmul
  add(Opcode::kMatmul, 0, 30, 70, 75);              // 30 to 50: array alone
  add(Opcode::kStore, 0, 50, 100, 110);             // 50 to 70: both; 70 to 100: softmax alone
  add(Opcode::kLoadAccumulator, 1, 110, 130, 140);  // 100 to 110: end of the matmul's operator,
  add(Opcode::kStore, 1, 140, 160, 170);  // 110 to 140: waiting for it; 160 to 170: its last write
  const ClassCycles shared = share_by_class(program_, traces_);
  EXPECT_EQ(shared.of(TimeClass::kMatmul), 20 + 20 + 10 + 10);
  EXPECT_EQ(shared.of(TimeClass::kSoftmax), 10 + 30);
  EXPECT_EQ(shared.of(TimeClass::kLayerNorm), 30 + 20 + 10);
  EXPECT_EQ(shared.total(), 170 - 10);
  EXPECT_DOUBLE_EQ(shared.share(TimeClass::kSoftmax), 40.0 / 160);
}

TEST_F(Shares, ACommandThatBeginsWhereTheOneInFrontEndsIsAtWork) {
  add(Opcode::kMatmul, 0, 0, 10, 10);
  add(Opcode::kMatmul, 0, 10, 10, 10);
  add(Opcode::kMatmul, 0, 10, 20, 20);
  add(Opcode::kStore, 0, 20, 25, 25);
  add(Opcode::kStore, 0, 25, 30, 30);
  const ClassCycles shared = share_by_class(program_, traces_);
  EXPECT_EQ(shared.of(TimeClass::kMatmul), 20);
  EXPECT_EQ(shared.of(TimeClass::kSoftmax), 10);
}

TEST_F(Shares, NothingIsSharedOfAnEmptyRun) {
  EXPECT_EQ(share_by_class({}, {}).total(), 0);
  EXPECT_EQ(share_by_class({}, {}).share(TimeClass::kMatmul), 0);
}

hw::Machine searching(hw::MappingObjective objective) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.mapper.strategy = hw::MappingStrategy::kSearch;
  machine.mapper.objective = objective;
  return machine;
}

const MappingCandidate& plain(const MappingSearch& search) {
  return *std::find_if(search.candidates.begin(), search.candidates.end(), [](const auto& c) {
    return c.mapper.strategy == hw::MappingStrategy::kCost &&
           c.mapper.fusion == hw::FusionLevel::kAll;
  });
}

TEST(MappingSearch, IsNeverWorseThanCostExpectedAndSimulated) {
  for (const hw::MappingObjective objective :
       {hw::MappingObjective::kCycles, hw::MappingObjective::kEnergy, hw::MappingObjective::kEdp}) {
    const hw::Machine machine = searching(objective);
    const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 2);
    ASSERT_GE(search.candidates.size(), 3U);
    const MappingCandidate& cost = plain(search);
    EXPECT_LE(search.value(search.candidates.front().expected), search.value(cost.expected));
    ASSERT_TRUE(cost.simulated && search.chosen().simulated);
    EXPECT_LE(search.value(*search.chosen().simulated), search.value(*cost.simulated));
    // By cycles it may well find what the cost model finds, which is then the one that is shown.
    if (objective != hw::MappingObjective::kCycles) {
      EXPECT_TRUE(std::any_of(search.candidates.begin(), search.candidates.end(),
                              [](const MappingCandidate& c) { return c.tried > 1000; }));
    }
    const auto confirmed =
        std::count_if(search.candidates.begin(), search.candidates.end(),
                      [](const MappingCandidate& c) { return c.simulated.has_value(); });
    EXPECT_TRUE(confirmed == 2 || confirmed == 3);
    for (std::size_t i = 1; i < search.candidates.size(); ++i) {
      EXPECT_LE(search.value(search.candidates[i - 1].expected),
                search.value(search.candidates[i].expected));
    }
  }
}

TEST(MappingSearch, ExpectsAboutWhatIsSimulated) {
  const hw::Machine machine = searching(hw::MappingObjective::kEdp);
  const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 100);
  for (const MappingCandidate& candidate : search.candidates) {
    ASSERT_TRUE(candidate.simulated) << candidate.strategy_name();
    const double cycles = candidate.simulated->cycles / candidate.expected.cycles;
    EXPECT_GT(cycles, 0.6) << candidate.strategy_name() << " " << candidate.fusion_name();
    EXPECT_LT(cycles, 1.5) << candidate.strategy_name() << " " << candidate.fusion_name();
    const double energy = candidate.simulated->joules / candidate.expected.joules;
    EXPECT_GT(energy, 0.75) << candidate.strategy_name() << " " << candidate.fusion_name();
    EXPECT_LT(energy, 1.1) << candidate.strategy_name() << " " << candidate.fusion_name();
  }
}

TEST(MappingSearch, WithoutSimulationsTakesWhatIsExpectedToBeBest) {
  hw::Machine machine = searching(hw::MappingObjective::kCycles);
  machine.mapper.fusion = hw::FusionLevel::kNone;
  const MappingSearch search = search_mappings(load_network("vit17", machine).graph, machine, 0);
  EXPECT_EQ(search.best, 0U);
  for (const MappingCandidate& candidate : search.candidates) {
    EXPECT_FALSE(candidate.simulated);
    EXPECT_EQ(candidate.fusion_name(), "none") << "no more than the machine's";
  }
}

TEST(MappingSearch, RefusesANetworkThatDoesNotFit) {
  hw::Machine machine = searching(hw::MappingObjective::kCycles);
  machine.accumulator.kib = 1;  // half of it is less than a row for LayerNorm
  const model::Graph graph =
      model::make_seeded_encoder("wide", {1, 256, 4, 64, true}, 16, 1, {machine.datapath, true});
  EXPECT_EQ(input_error_of([&] {
              (void)search_mappings(graph, machine, 1);
            }).rfind("accumulator.kib = 1", 0),
            0U);
}

}  // namespace
}  // namespace systole::testbench
