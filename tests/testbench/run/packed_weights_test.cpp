#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/core/bank_words.h"
#include "hw/description/machine_text.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program.h"
#include "support/network/encoder_run.h"
#include "support/tlm/systemc_test.h"

/// Weights in groups that the load unit expands, on machines of any shape.
namespace systole::testbench {
namespace {

constexpr std::array<hw::WeightFormat, 3> kGroupFormats{
    hw::WeightFormat::kGroups, hw::WeightFormat::kMxInt8, hw::WeightFormat::kMxFp4};

/// Every weight of a product in groups of that format.
model::Graph with_groups(model::Graph graph, hw::WeightFormat format) {
  for (const model::Node& node : graph.nodes) {
    if (node.product() == nullptr) continue;
    model::Tensor& b = graph.tensors[node.product()->b.tensor];
    if (b.kind != model::Tensor::Kind::kConstant || b.grouped()) continue;
    b.format = format;
    for (std::size_t k = 0; k < b.rows; k += hw::kGroupWeights) {
      for (std::size_t n = 0; n < b.cols; ++n) {
        std::vector<std::int8_t> weights(hw::kGroupWeights);
        for (std::size_t i = 0; i < weights.size(); ++i) {
          weights[i] = static_cast<std::int8_t>(b.data[(k + i) * b.cols + n]);
        }
        b.groups.edit().push_back(hw::round_to_group(format, weights.data()));
        for (std::size_t i = 0; i < weights.size(); ++i) {
          b.data.edit()[(k + i) * b.cols + n] = static_cast<std::uint8_t>(weights[i]);
        }
      }
    }
  }
  return graph;
}

std::uint64_t replayed_cycles(const mapper::Mapping& mapping) {
  std::uint64_t sum = 0;
  for (const mapper::Tiling& tiling : mapping.tilings) sum += tiling.cycles;
  return sum;
}

class PackedWeightsTest : public test::SystemCTest {};

TEST_F(PackedWeightsTest, GiveTheSameValuesOnAnyMachineInTheCyclesThatAreExpected) {
  std::vector<test::Workload> workloads;
  for (const hw::WeightFormat format : kGroupFormats) {
    workloads.push_back(test::encoder_workload({1, 64, 2, 160}, 23, 1));
    workloads.back().graph = with_groups(std::move(workloads.back().graph), format);
  }
  test::Random random(11);
  double sum = 0;
  int packed = 0, plain = 0;
  while (packed < 24) {
    hw::Machine machine = test::random_machine(random);
    const std::size_t format = static_cast<std::size_t>(packed) % workloads.size();
    test::Workload& workload = workloads[format];
    machine.dma.expander_lanes = 1U << random() % 7;
    mapper::Mapping mapping;
    try {
      mapping = mapper::map_graph(workload.graph, machine);
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    std::uint64_t weights = 0;
    for (const hw::Command& command : mapping.program.commands) {
      const auto* const load = command.as<hw::cmd::Load>();
      if (load == nullptr || !load->packed()) continue;
      EXPECT_EQ(load->format, kGroupFormats[format]);
      weights += std::uint64_t{load->m} * load->n;
      EXPECT_EQ(load->m % hw::kGroupWeights, 0U);
    }
    const bool gemmini = machine.mapper.strategy == hw::MappingStrategy::kGemmini;
    EXPECT_EQ(weights == 0, gemmini);
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << "\n" << hw::to_toml(machine);
    EXPECT_GE(static_cast<double>(result.cycles.front()), result.bounds.front())
        << hw::to_toml(machine);
    SimulationOptions timing;
    timing.functional = false;
    EXPECT_EQ(workload.simulate(mapping, machine, timing).cycles, result.cycles);
    if (gemmini) continue;
    ++packed;
    EXPECT_GE(weights, 64U * (4 * 64 + 2 * 160));
    // What the expander takes at least.
    const std::uint64_t width =
        std::min<std::uint64_t>(machine.dma.expander_lanes, hw::scratchpad_word_bytes(machine));
    EXPECT_GE(result.cycles.front(), weights / width);
    const double off =
        static_cast<double>(replayed_cycles(mapping)) / static_cast<double>(result.cycles.front()) -
        1.0;
    // What a cache and the walks of a TLB do is only estimated.
    if (machine.tlb.entries != 0 || machine.l2.kib != 0) continue;
    EXPECT_LT(std::abs(off), 0.3) << hw::to_toml(machine);
    sum += std::abs(off);
    ++plain;
  }
  EXPECT_GT(plain, 5);
  EXPECT_LT(sum / plain, 0.08);
}

// Fewer bytes from memory, and no more cycles as long as the expander is as wide as the bus.
TEST_F(PackedWeightsTest, SaveBytesAndOnANarrowBusCycles) {
  test::Workload workload = test::encoder_workload({1, 128, 2, 512}, 4, 1);
  const model::Graph plain = workload.graph;
  workload.graph = with_groups(plain, hw::WeightFormat::kGroups);
  const auto cycles = [&](std::uint32_t lanes) {
    hw::Machine machine;
    machine.bus.width_bytes = 4;
    machine.dma.expander_lanes = lanes;
    return static_cast<double>(
        workload.cycles(mapper::map_graph(workload.graph, machine), machine));
  };
  double before = cycles(1);
  for (const std::uint32_t lanes : {2U, 4U, 8U, 16U}) {
    const double now = cycles(lanes);
    EXPECT_LT(now, 1.02 * before) << lanes;
    before = now;
  }
  EXPECT_EQ(cycles(32), before) << "a word of the scratchpad is 16 bytes";
  const double eight = cycles(0);
  EXPECT_LT(before, 0.7 * eight);
  workload.graph = with_groups(plain, hw::WeightFormat::kMxFp4);
  EXPECT_LT(cycles(16), before) << "no minima";
  workload.graph = with_groups(plain, hw::WeightFormat::kMxInt8);
  EXPECT_GT(cycles(16), eight) << "eight bits and the scales";
  EXPECT_EQ(cycles(0), eight);
}

}  // namespace
}  // namespace systole::testbench
