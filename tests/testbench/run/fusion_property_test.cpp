#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mapper/mapping.h"
#include "model/graph/elements.h"
#include "model/graph/reference.h"
#include "support/network/encoder_run.h"
#include "support/random/random_fusion.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/tensors.h"

/// Whatever chains are around whatever anchor, fused and unfused runs give the same bits.
namespace systole::testbench {
namespace {

using test::Anchor;
using test::Random;
using test::Workload;

constexpr int kGraphs = 760;
/// Graphs from here on have every stage before and after every anchor.
constexpr std::uint64_t kFirstGraph = 1000;

/// A machine that fuses as much as it can, with room for the graph.
hw::Machine fusing_machine(Random& random) {
  hw::Machine machine = test::random_machine(random);
  machine.mapper.fusion = hw::FusionLevel::kAll;
  if (machine.mapper.strategy == hw::MappingStrategy::kGemmini && random() % 4 == 0) {
    machine.mapper.strategy = hw::MappingStrategy::kCost;
  }
  machine.preop.lanes = test::power_of_two(random, 0, 6);
  machine.postop.tensor_operands = test::between(random, 1, 8);
  machine.postop.operand_kib = test::between(random, 1, 8);
  machine.postop.max_stages = test::between(random, 1, 8);
  machine.postop.row_statistics = 2048;
  return machine;
}

hw::Machine unfused(hw::Machine machine) {
  machine.mapper.fusion = hw::FusionLevel::kOff;
  machine.preop.lanes = 0;
  return machine;
}

Workload workload_of(std::uint64_t seed, Anchor anchor) {
  Workload workload{test::RandomFusion(seed, anchor).take(), {}};
  Random random(seed);
  const model::Tensor& x = workload.graph.tensors[input_tensor(workload.graph)];
  std::vector<std::uint8_t> bytes(x.bytes());
  const hw::IntRange range = hw::range_of(x.type);
  const unsigned narrow = static_cast<unsigned>(random() % 24);
  for (std::size_t i = 0; i < std::size_t{x.rows} * x.cols; ++i) {
    const auto value = static_cast<std::int32_t>(random()) >> narrow;
    static_cast<void>(model::store_element(bytes.data(), i, x.type, hw::saturate(value, range)));
  }
  workload.inputs.push_back(std::move(bytes));
  return workload;
}

/// Stages that ran beside another operator, by opcode and anchor.
using Counts = std::array<std::array<int, test::kAnchors>, hw::kStageOps>;
struct Fused {
  Counts in_front{}, after{};
  std::array<int, hw::kOperandKinds> operands{};
  int longest = 0;

  [[nodiscard]] int all_after(std::size_t op) const {
    return std::accumulate(after[op].begin(), after[op].end(), 0);
  }
  [[nodiscard]] int all_in_front(std::size_t op) const {
    return std::accumulate(in_front[op].begin(), in_front[op].end(), 0);
  }

  void add(const mapper::Group& group) {
    const std::size_t anchor = static_cast<std::size_t>(group.matmul() == nullptr ? Anchor::kLoad
                                                        : group.m() == 1          ? Anchor::kGemv
                                                                                  : Anchor::kGemm);
    int length = 0;
    const auto count = [&](const hw::Stage& stage, Counts& counts) {
      ++counts[static_cast<std::size_t>(stage.op)][anchor];
      ++operands[static_cast<std::size_t>(stage.operand)];
      ++length;
    };
    if (group.pre) {
      for (const hw::Stage& stage : group.pre->chain.stages) count(stage, in_front);
    }
    // Without stages before anchors the first one is what the load is for.
    bool alone = group.matmul() == nullptr && !group.pre;
    for (const hw::Stage& stage : group.chain.stages) {
      if (!std::exchange(alone, false)) count(stage, after);
    }
    longest = std::max(longest, length);
  }
};

int total(const Counts& counts) {
  int sum = 0;
  for (const auto& by_anchor : counts) {
    for (const int count : by_anchor) sum += count;
  }
  return sum;
}

class FusionPropertyTest : public test::SystemCTest {
 protected:
  void expect_the_same_bits(std::uint64_t seed, Anchor anchor) {
    const Workload workload = workload_of(seed, anchor);
    Random random(seed);
    for (;;) {
      const hw::Machine fused = fusing_machine(random);
      const hw::Machine apart = unfused(fused);
      mapper::Mapping together, one_by_one;
      try {
        together = mapper::map_graph(workload.graph, fused);
        one_by_one = mapper::map_graph(workload.graph, apart);
      } catch (const hw::InputError&) {
        ++too_small_;
        continue;
      }
      SCOPED_TRACE("graph " + std::to_string(seed));
      for (const mapper::Group& group : together.groups) fused_.add(group);
      count_hazards(together, fused);
      expect_reference(workload, one_by_one, apart, false);
      expect_reference(workload, together, fused, seed % 10 == 0);
      return;
    }
  }

  void count_hazards(const mapper::Mapping& mapping, const hw::Machine& machine) {
    for (const mapper::FusionDecision& decision : mapping.decisions) {
      if (decision.why.find("may change") != std::string::npos) ++kept_in_order_;
    }
    if (machine.mapper.strategy != hw::MappingStrategy::kGemmini) return;
    for (std::size_t i = 0; i < mapping.groups.size(); ++i) {
      const mapper::Group& group = mapping.groups[i];
      const auto& stages = group.chain.stages;
      if (group.matmul() == nullptr || stages.empty() || stages.front().op != hw::StageOp::kAdd ||
          stages.front().operand != hw::Operand::kChannel) {
        continue;
      }
      const bool gone =
          mapping.program.chains[chain_of_operator(mapping.program, i)].stages.size() <
          stages.size();
      ++(gone ? preloaded_ : added_in_chains_);
    }
  }

  static std::uint16_t chain_of_operator(const hw::Program& program, std::size_t op) {
    for (const hw::Command& command : program.commands) {
      const auto* const result = command.as<hw::cmd::Result>();
      if (result != nullptr && command.op == op) return result->chain.chain;
    }
    return 0;
  }

  void expect_reference(const Workload& workload, const mapper::Mapping& mapping,
                        const hw::Machine& machine, bool without_values) {
    SimulationOptions options;
    // The check compares every result with the last that its tensor held.
    options.check = !test::writes_twice(workload.graph);
    (options.check ? checked_ : written_twice_) += 1;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.outputs.front(), expected_output(workload));
    if (options.check) {
      EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
      EXPECT_EQ(result.check.operators, mapping.program.operators.size());
    }
    if (!without_values) return;
    options.functional = false;
    options.check = false;
    EXPECT_EQ(workload.simulate(mapping, machine, options).cycles, result.cycles)
        << "values take no time";
  }

  static std::vector<std::uint8_t> expected_output(const Workload& workload) {
    model::Reference reference(workload.graph);
    const model::Tensor& in = workload.graph.tensors[input_tensor(workload.graph)];
    reference.set_input(in.name, widen(workload.inputs.front(), in.type));
    reference.run();
    return reference.bytes(output_tensor(workload.graph));
  }

  Fused fused_;
  int too_small_ = 0;
  int checked_ = 0, written_twice_ = 0;  ///< runs
  int kept_in_order_ = 0, preloaded_ = 0, added_in_chains_ = 0;
};

TEST_F(FusionPropertyTest, AnyChainAroundAnyAnchorGivesTheSameBits) {
  for (std::uint64_t seed = kFirstGraph; seed < kFirstGraph + kGraphs && !HasFailure(); ++seed) {
    expect_the_same_bits(seed, static_cast<Anchor>(seed % test::kAnchors));
  }
  for (std::uint8_t op = 0; op < hw::kStageOps; ++op) {
    const hw::StageInfo& info = hw::stage_info(static_cast<hw::StageOp>(op));
    if (hw::statistics_read(hw::default_stage(static_cast<hw::StageOp>(op))) != 0) {
      // Statistics to read are left now and then.
      EXPECT_GT(fused_.all_after(op), 0) << info.name;
      EXPECT_GT(fused_.all_in_front(op), 0) << info.name;
      continue;
    }
    for (std::size_t anchor = 0; anchor < test::kAnchors; ++anchor) {
      EXPECT_GT(fused_.after[op][anchor], 0) << info.name << " after anchor " << anchor;
      if (info.row_wise || static_cast<hw::StageOp>(op) == hw::StageOp::kTranspose) continue;
      EXPECT_GT(fused_.in_front[op][anchor], 0) << info.name << " before anchor " << anchor;
    }
  }
  for (std::uint8_t kind = 0; kind < hw::kOperandKinds; ++kind) {
    EXPECT_GT(fused_.operands[kind], 0) << hw::name_of(static_cast<hw::Operand>(kind));
  }
  EXPECT_GT(fused_.longest, 8) << "stages in front and after together";
  EXPECT_GT(checked_, kGraphs / 3);
  EXPECT_GT(written_twice_, kGraphs / 2);
  EXPECT_GT(kept_in_order_, 4) << "passes whose operands change before their readers run";
  EXPECT_GT(preloaded_, 5) << "biases that the accumulator begins with";
  EXPECT_GT(added_in_chains_, 5) << "other words that a loop unroller leaves in the chain";
  RecordProperty("in_front", total(fused_.in_front));
  RecordProperty("after", total(fused_.after));
  RecordProperty("too_small", too_small_);
}

}  // namespace
}  // namespace systole::testbench
