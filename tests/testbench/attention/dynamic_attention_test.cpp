#include "testbench/attention/dynamic_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "support/input_error.h"
#include "support/network/attention_run.h"
#include "support/random/random_machine.h"

/// The presets of attention accelerators that find their mask.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;

model::AttentionMask random_mask(Random& random) {
  const std::size_t tokens = between(random, 8, 120);
  return test::synthetic_mask({between(random, 1, 4), between(random, 1, 4), tokens, tokens},
                              random());
}

TEST(DynamicAttention, PresetsAreThePublishedSizes) {
  const Sanger sanger = sanger_of(hw::find_machine("sanger"));
  EXPECT_EQ(sanger.array.macs(), 1024U);
  EXPECT_TRUE(sanger.array.own_predictor);
  EXPECT_DOUBLE_EQ(sanger.stream.bytes_per_cycle, 128);
  EXPECT_DOUBLE_EQ(sanger.stream.element_bytes, 2);
  const Spatten spatten = spatten_of(hw::find_machine("spatten"));
  EXPECT_EQ(spatten.array.key_macs + spatten.array.value_macs, 1024U);
  EXPECT_DOUBLE_EQ(spatten.stream.bytes_per_cycle, 512);
  EXPECT_DOUBLE_EQ(spatten.stream.element_bytes, 1.5);
}

/// More of anything is never slower, and no run is below what its units and its memory take.
TEST(DynamicAttention, KeysOfSangerActAsTheySay) {
  Random random(41);
  int slower = 0;  // with common phases
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    const model::AttentionMask mask = random_mask(random);
    const std::size_t dim = between(random, 4, 96);
    hw::Machine machine = hw::find_machine("sanger");
    machine.dynamic.gbyte_per_s = between(random, 1, 256);
    machine.dynamic.own_predictor = random() % 2 == 0;
    const DynamicAttention run = run_dynamic_attention(machine, mask, "mask", dim);
    const auto& cycles = std::get<hw::dynamic::SangerCycles>(run.run);
    EXPECT_EQ(cycles.kept, mask.kept_count());
    EXPECT_GE(cycles.total, cycles.memory);
    EXPECT_GE(cycles.total, cycles.scores + cycles.context);
    const double rows = static_cast<double>(mask.shape().layers * mask.shape().heads) * 4 *
                        static_cast<double>(mask.shape().keys * dim) * 2;
    EXPECT_GE(static_cast<double>(cycles.total), rows / machine.dynamic.gbyte_per_s)
        << "Q, K, V and outputs of two bytes at 1 GHz";
    const std::uint64_t total = run.cycles();
    const auto total_with = [&](const char* setting) {
      hw::Machine other = machine;
      hw::set_key(other, setting);
      return run_dynamic_attention(other, mask, "mask", dim).cycles();
    };
    EXPECT_LE(total_with("dynamic.gbyte_per_s=4000"), total);
    EXPECT_GE(total_with("dynamic.common_phases=on"), total);
    slower += total_with("dynamic.common_phases=on") > total ? 1 : 0;
    EXPECT_LE(total_with("dynamic.element_bytes=0.5"), total);
  }
  EXPECT_GT(slower, 10);
}

TEST(DynamicAttention, KeysOfSpattenActAsTheySay) {
  Random random(42);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    const model::AttentionMask mask = random_mask(random);
    const std::size_t dim = between(random, 4, 96);
    hw::Machine machine = hw::find_machine("spatten");
    machine.dynamic.gbyte_per_s = between(random, 1, 512);
    const DynamicAttention run = run_dynamic_attention(machine, mask, "mask", dim);
    const auto& cycles = std::get<hw::dynamic::SpattenCycles>(run.run);
    EXPECT_EQ(cycles.cells, mask.shape().cells()) << "all scores are computed";
    EXPECT_GE(cycles.total, std::max(cycles.memory, cycles.scores));
    const auto share = [](std::uint64_t part, std::uint64_t all) {
      return static_cast<double>(part) / static_cast<double>(all);
    };
    EXPECT_NEAR(share(cycles.value_cells, cycles.cells),
                share(mask.kept_count(), mask.shape().cells()), share(1, mask.shape().keys) + 0.01);
    const auto with = [&](const char* setting) {
      hw::Machine other = machine;
      hw::set_key(other, setting);
      return run_dynamic_attention(other, mask, "mask", dim);
    };
    EXPECT_LE(with("dynamic.gbyte_per_s=4000").cycles(), run.cycles());
    EXPECT_LE(with("dynamic.key_macs=4096").cycles(), run.cycles());
    EXPECT_GE(with("dynamic.top_k_lanes=1").cycles(), run.cycles());
    if (mask.shape().layers == 1) continue;
    const DynamicAttention tokens = with("dynamic.prunes=tokens");
    EXPECT_LT(std::get<hw::dynamic::SpattenCycles>(tokens.run).cells, cycles.cells);
  }
}

TEST(DynamicAttention, RefusesWhatItCannotRun) {
  const model::AttentionMask mask = test::synthetic_mask({1, 1, 4, 6}, 1);
  const auto error = [&](const char* machine, std::size_t dim) {
    return input_error_of([&] {
      static_cast<void>(run_dynamic_attention(hw::find_machine(machine), mask, "mask", dim));
    });
  };
  EXPECT_NE(error("spatten", 8).find("4 queries and 6 keys, expected as many of both"),
            std::string::npos);
  EXPECT_NE(error("vitcod", 8).find("dynamic.kind: found \"none\""), std::string::npos);
}

}  // namespace
}  // namespace systole::testbench
