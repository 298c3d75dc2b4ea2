/// Stages on the scores, on the outputs and before Q, K and V: the same bytes as the dense
/// reference, and the cycles that their latencies say.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/description/machine_text.h"
#include "mapper/mapping.h"
#include "support/network/attention_graph.h"
#include "support/network/attention_run.h"
#include "support/network/encoder_run.h"
#include "support/random/random_engines.h"
#include "support/random/random_stages.h"
#include "support/report_values.h"
#include "support/tlm/systemc_test.h"

namespace systole::testbench {
namespace {

using test::AttentionSketch;
using test::between;
using test::Random;

constexpr std::uint32_t kMostStages = 8;
constexpr unsigned kScoreBits = 20;

std::vector<hw::Stage> random_score_stages(Random& random) {
  std::vector<hw::Stage> stages;
  for (std::uint32_t left = between(random, 0, kMostStages - 1); left > 0; --left) {
    stages.push_back(test::random_stage(random, 24, {true, false}));
  }
  // Scores as large as a mask needs them to be bounded.
  if (!stages.empty()) stages.push_back(model::clamp_stage(kScoreBits));
  return stages;
}

/// Random cells, one at least in every row.
void add_random_mask(Random& random, AttentionSketch& sketch) {
  if (random() % 4 == 0) return;
  const std::uint32_t density = between(random, 1, 9);
  for (std::uint32_t row = 0; row < sketch.heads * sketch.queries; ++row) {
    const std::uint32_t kept = between(random, 0, sketch.keys - 1);
    for (std::uint32_t key = 0; key < sketch.keys; ++key) {
      sketch.keep.push_back(key == kept || random() % 10 < density ? 1 : 0);
    }
  }
  const std::int64_t largest = sketch.scores.empty() ? std::int64_t{sketch.dim} * 127 * 127
                                                     : hw::symmetric_range(kScoreBits).hi;
  sketch.mask = AttentionSketch::Mask::kAdded;
  sketch.masking = test::added_mask(largest);
  if (random() % 2 == 0) {
    sketch.mask = AttentionSketch::Mask::kSelects;
    sketch.masking = test::selecting_mask(std::numeric_limits<std::int32_t>::min());
  }
}

AttentionSketch random_sketch(Random& random) {
  AttentionSketch sketch;
  sketch.heads = between(random, 1, 3);
  sketch.queries = between(random, 1, 30);
  sketch.keys = between(random, 1, 30);
  sketch.dim = between(random, 1, 40);
  for (std::vector<hw::Stage>& stages : sketch.operands) {
    if (random() % 2 == 0) {
      stages = test::random_stages_to_s8(random, kMostStages - 1, between(random, 0, 4));
    }
  }
  sketch.scores = random_score_stages(random);
  sketch.outputs = test::random_stages_to_s8(random, kMostStages - 2, 8, {true, true});
  if (random() % 8 != 0) {
    const auto at =
        sketch.outputs.begin() + static_cast<std::ptrdiff_t>(random() % sketch.outputs.size());
    sketch.outputs.insert(at, model::divide_row_sum_stage());
  }
  add_random_mask(random, sketch);
  return sketch;
}

/// Without -128, as the quantiser's.
std::vector<std::uint8_t> random_input(Random& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(between(random, 129, 383));
  return bytes;
}

/// Writes the first rows of Q again, once the stages before it have run.
void write_queries_again(const AttentionSketch& sketch, model::Graph& graph) {
  const auto last = static_cast<std::ptrdiff_t>(sketch.operands[0].size());
  model::Node copy;
  copy.name = "again";
  copy.stage()->stage = model::clamp_stage(8);
  copy.out = graph.nodes.front().in;
  copy.out.rows = std::min(sketch.queries, sketch.keys);
  copy.in = copy.out;
  copy.in.col = 2 * copy.out.cols;
  graph.nodes.insert(graph.nodes.begin() + last, copy);
}

class AttentionStages : public test::SystemCTest {};

TEST_F(AttentionStages, GiveTheReferencesBytes) {
  constexpr std::uint64_t kCases = 240;
  std::uint64_t staged_operands = 0, with_operands = 0, values = 0;
  for (std::uint64_t seed = 0; seed < kCases && !HasFailure(); ++seed) {
    Random random(seed);
    hw::Machine machine = test::random_engines(random);
    machine.postop.max_stages = kMostStages + 1;
    machine.mapper.fusion = hw::FusionLevel::kAll;
    machine.mapper.strategy = hw::MappingStrategy::kCost;
    machine.preop.lanes = test::power_of_two(random, 0, 6);
    const AttentionSketch sketch = random_sketch(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + hw::to_toml(machine));
    test::Workload workload{test::AttentionGraph(sketch).build(), {}};
    workload.inputs.push_back(random_input(random, workload.graph.tensors[0].bytes()));
    if (seed % 8 == 0 && !sketch.operands[0].empty()) {
      write_queries_again(sketch, workload.graph);
    }
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    const auto attention =
        std::find_if(mapping.groups.begin(), mapping.groups.end(),
                     [](const mapper::Group& group) { return group.attention() != nullptr; });
    ASSERT_NE(attention, mapping.groups.end());
    EXPECT_EQ(attention->attention()->heads.size(), sketch.heads);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& chain = attention->attention()->operand_chains[i];
      if (!sketch.operands[i].empty()) ++with_operands;
      if (!chain.stages.empty()) ++staged_operands;
    }
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_GE(result.check.bytes, sketch.queries * sketch.heads * sketch.dim);
    const std::vector<std::uint8_t>& out = result.outputs.front();
    values += std::set<std::uint8_t>(out.begin(), out.end()).size();
  }
  // Stages that leave something to compare, before the engines where that pays.
  EXPECT_GT(values, 16 * kCases);
  EXPECT_GT(staged_operands, with_operands / 2);
}

/// One head, all of it in one tile, with cells enough for many rows in flight.
AttentionWorkload plain_workload(const hw::Machine& machine) {
  const model::AttentionMask mask = test::synthetic_mask({1, 1, 60, 60}, 1);
  return make_attention_workload(test::shape_of(mask, 16), test::split_by_cycles(mask, 16, machine),
                                 machine, false);
}

std::uint64_t cycles_of(const AttentionWorkload& workload, const hw::Machine& machine) {
  hw::check_program(workload.program, machine, std::uint64_t{machine.dram.mib} << 20U);
  const AttentionResult result = test::run_attention(workload, machine, false);
  // More chains take longer to fetch: that is not what is measured here.
  EXPECT_EQ(result.blocks.front().name, "command_processor");
  const std::uint64_t fetched = test::values_of(result.blocks.front()).at("stalled.fetch");
  EXPECT_GT(fetched, 0U);
  return result.cycles - fetched;
}

hw::Machine staged_machine(std::uint32_t lanes) {
  hw::Machine machine = hw::find_machine("vitcod");
  machine.preop.lanes = lanes;
  return machine;
}

hw::Stage relu() {
  hw::Stage stage;
  stage.op = hw::StageOp::kRelu;
  return stage;
}

TEST_F(AttentionStages, OfTheScoresTakeTheirLatency) {
  hw::Machine machine = staged_machine(0);
  machine.memory.model = hw::MemoryModel::kFixed;  // takes as long whatever comes before
  AttentionWorkload workload = plain_workload(machine);
  const std::uint32_t softmax = workload.program.commands[0].as<hw::cmd::Attention>()->softmax;
  hw::Chain chain = workload.program.chains[softmax];
  EXPECT_EQ(hw::score_latency(chain), 0U);
  std::vector<hw::Stage> stages = {relu(),
                                   model::gelu_stage(hw::make_gelu_constants(0.0004, 0.0005), 16),
                                   model::requantise_stage({1, 1}, 16, hw::Rounding::kHalfUp)};
  std::uint64_t latency = 0;
  for (const hw::Stage& stage : stages) latency += hw::stage_latency(stage);
  chain.stages.insert(chain.stages.begin(), stages.begin(), stages.end());
  EXPECT_EQ(hw::score_latency(chain), latency);
  workload.program.chains.push_back(chain);  // all records are as long as the longest one
  const std::uint64_t without = cycles_of(workload, machine);
  workload.program.chains[softmax] = chain;
  EXPECT_EQ(cycles_of(workload, machine), without + latency);
}

/// Adds chains for Q, K and V to a workload of one command.
void add_operand_stages(AttentionWorkload& workload, const hw::Chain& query, const hw::Chain& key,
                        const hw::Chain& value) {
  auto& command = *workload.program.commands[0].as<hw::cmd::Attention>();
  const hw::Chain softmax = workload.program.chains[command.softmax];
  command.softmax = static_cast<std::uint32_t>(workload.program.chains.size());
  command.operand_chains = true;
  for (const hw::Chain& chain : {softmax, query, key, value}) {
    workload.program.chains.push_back(chain);
  }
}

TEST_F(AttentionStages, OfOperandsTakeTheirLatency) {
  hw::Machine machine = staged_machine(16);
  machine.memory.model = hw::MemoryModel::kFixed;  // takes as long whatever comes before
  machine.bus.width_bytes = 4;                     // rows come no faster than the stages take them
  const hw::Chain none{{}, hw::DType::kS8};
  const hw::Chain stages{{relu(), model::clamp_stage(8)}, hw::DType::kS8};
  AttentionWorkload workload = plain_workload(machine);
  workload.program.chains.push_back(stages);  // all records are as long as the longest one
  const std::uint64_t without = cycles_of(workload, machine);
  AttentionWorkload empty = workload;
  add_operand_stages(empty, none, none, none);
  const std::uint64_t with_empty = cycles_of(empty, machine);
  EXPECT_NEAR(static_cast<double>(with_empty), static_cast<double>(without), 1.0);
  AttentionWorkload staged = workload;
  add_operand_stages(staged, stages, stages, none);
  const hw::ChainCycles cycles = hw::chain_cycles(stages, 1, 16, 16);
  EXPECT_EQ(cycles_of(staged, machine), with_empty + cycles.total(1));
}

TEST_F(AttentionStages, OfOperandsTakeAsManyElementsAsTheyHaveLanes) {
  const hw::Chain none{{}, hw::DType::kS8};
  const hw::Chain stages{{relu()}, hw::DType::kS8};
  for (const std::uint32_t lanes : {1U, 2U}) {
    const hw::Machine machine = staged_machine(lanes);
    AttentionWorkload workload = plain_workload(machine);
    const std::uint64_t without = cycles_of(workload, machine);
    add_operand_stages(workload, stages, none, none);
    const std::uint64_t with = cycles_of(workload, machine);
    EXPECT_GE(with, 60 * 16 / lanes);
    EXPECT_LE(with, without + 60 * 16 / lanes + 10);
  }
}

}  // namespace
}  // namespace systole::testbench
