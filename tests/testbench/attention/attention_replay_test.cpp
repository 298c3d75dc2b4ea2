#include "mapper/replay/attention_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/attention_run.h"
#include "support/random/draws.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"

/// What the mapper expects of attention engines beside the simulation, with decoders and without.
namespace systole::testbench {
namespace {

using test::between;
using test::power_of_two;
using test::Random;

mapper::AttentionGroup group_of(const AttentionWorkload& workload) {
  const AttentionShape& shape = workload.shape;
  const auto view = [](std::size_t rows, std::size_t cols) {
    return model::View{0, 0, 0, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols)};
  };
  const std::size_t stored = shape.latent_heads == 0 ? shape.heads : shape.latent_heads;
  mapper::AttentionGroup group;
  group.query = view(shape.queries, stored * shape.dim);
  group.key = view(shape.keys, stored * shape.dim);
  group.value = group.out = view(shape.keys, shape.heads * shape.value_dim());
  group.dim = shape.dim;
  group.value_dim = shape.value_dim();
  group.softmax = workload.program.chains[0];
  group.chain = workload.program.chains[1];
  group.heads = workload.layers.front();
  for (std::size_t i = 0; i < workload.program.mixes.size(); ++i) {
    mapper::HeadMixLayer decoder;
    decoder.mix = workload.program.mixes[i];
    group.decoders.push_back(decoder);
  }
  return group;
}

/// From the first request of the engines until their last outputs have been taken.
double busy_cycles(const AttentionResult& result) {
  for (const hw::BlockReport& report : result.blocks) {
    if (report.name != "attention") continue;
    return static_cast<double>(report.time->busy + report.time->stalled_total());
  }
  return 0;
}

class AttentionReplay : public test::SystemCTest {};

TEST_F(AttentionReplay, ExpectsWhatTheSimulationTakes) {
  Random random(61);
  const int draws = test::draws(80);
  double sum = 0, worst = 0;
  for (int i = 0; i < draws; ++i) {
    hw::Machine machine = hw::find_machine("vitcod");
    machine.attention.decoder_lines = random() % 4 == 0 ? 0 : power_of_two(random, 0, 6);
    machine.attention.query_kib = between(random, 1, 53);
    machine.attention.key_kib = between(random, 1, 53);
    machine.attention.value_kib = between(random, 1, 53);
    machine.accumulator.kib = 8 * between(random, 1, 14);
    machine.bus.width_bytes = power_of_two(random, 2, 6);
    machine.dram.channels = power_of_two(random, 0, 2);
    machine.dma.outstanding_reads = power_of_two(random, 2, 6);
    const std::size_t tokens = between(random, 8, 160);
    const model::AttentionMask mask =
        test::synthetic_mask({1, between(random, 2, 6), tokens, tokens}, random());
    AttentionShape shape = test::shape_of(mask, 8 * between(random, 1, 8));
    if (i % 2 == 0)
      shape.latent_heads = between(random, 1, static_cast<std::uint32_t>(shape.heads));
    const test::Layers layers = test::split_by_cycles(mask, shape.dim, machine);
    const AttentionWorkload workload = make_attention_workload(shape, layers, machine, false);
    const AttentionResult result = test::run_attention(workload, machine, false);
    const auto expected =
        static_cast<double>(mapper::replay_attention(group_of(workload), machine));
    // The replay knows when the last sums have been taken, not what their writes hold up.
    const auto engines = static_cast<double>(test::engine_cycles(result));
    const double late = std::max(0.0, engines / expected - 1);
    sum += late;
    worst = std::max(worst, late);
    EXPECT_LE(expected, 1.2 * busy_cycles(result)) << "draw " << i;
    EXPECT_LT(late, 0.25) << "draw " << i << ": expected " << expected << ", found " << engines;
  }
  EXPECT_LT(sum / draws, 0.02);
  RecordProperty("mean", std::to_string(sum / draws));
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace systole::testbench
