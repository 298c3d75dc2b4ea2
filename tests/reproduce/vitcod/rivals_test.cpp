#include "reproduce/vitcod/rivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "reproduce/vitcod/host_attention.h"
#include "reproduce/vitcod/vitcod.h"
#include "support/input_error.h"

namespace systole::testbench {
namespace {

/// 512 MACs: 32 rows of 16 elements; 153.6 bytes a cycle.
hw::Machine vitcod_engines() { return hw::find_machine("vitcod"); }

TEST(Rivals, MoveAsManyBytesACycleAsBusAndDramCan) {
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(vitcod_engines()), 64 * 1200 / 500.0);
  hw::Machine machine = vitcod_engines();
  machine.dram.channels = 1;
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(machine), 2400 * 8 / 500.0);
  machine.bus.width_bytes = 8;
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(machine), 8 * 1200 / 500.0);
}

TEST(Rivals, HaveTheMachinesMacsAndMemory) {
  const hw::Machine machine = vitcod_engines();
  const Sanger sanger = equal_sanger(machine);
  EXPECT_EQ(sanger.array.macs(), 512U);
  EXPECT_EQ(sanger.array.rows, 32U);
  EXPECT_FALSE(sanger.array.own_predictor);
  EXPECT_DOUBLE_EQ(sanger.stream.bytes_per_cycle, 153.6);
  const Spatten spatten = equal_spatten(machine, 64);
  EXPECT_EQ(spatten.array.key_macs + spatten.array.value_macs, 512U);
  EXPECT_DOUBLE_EQ(spatten.stream.bytes_per_cycle, 153.6);
  EXPECT_DOUBLE_EQ(spatten.clock_mhz, 500);
}

TEST(Rivals, NeedMacs) {
  hw::Machine machine = vitcod_engines();
  machine.array.rows = 1;
  machine.array.cols = 8;
  EXPECT_NE(input_error_of([&] {
              static_cast<void>(equal_sanger(machine));
            }).find("8 MACs, expected at least 16"),
            std::string::npos);
  EXPECT_NE(input_error_of([&] {
              static_cast<void>(equal_spatten(machine, 64));
            }).find("8 MACs, expected at least 128"),
            std::string::npos);
}

/// A query of 40 keeps key 3, one of them 17 keys, one a key of the second tile: 41 rows of the
/// array in the first tile and one in the second.
TEST(Rivals, SangerRunsTheHeadsOfAMask) {
  model::AttentionMask mask({2, 1, 40, 70});
  for (std::size_t query = 0; query < 40; ++query) mask.keep(0, 0, query, 3);
  for (std::size_t key = 0; key < 17; ++key) mask.keep(0, 0, 5, key);
  mask.keep(0, 0, 7, 69);
  mask.keep(1, 0, 0, 0);
  const hw::dynamic::SangerCycles run = sanger_cycles(mask, 8, equal_sanger(vitcod_engines()));
  EXPECT_EQ(run.passes, 2U + 1 + 1);
  EXPECT_EQ(run.prediction, 2U * ((40 * 70 * 8 + 511) / 512));
  EXPECT_EQ(run.memory, 23U) << "2 x 2 x (40 + 70) x 8 bytes";
  EXPECT_EQ(run.kept, mask.kept_count());
}

TEST(Rivals, SchedulesPruneTheShareThatIsAskedFor) {
  const hw::dynamic::AttentionProbabilities network{
      12, 3, 197, std::vector<double>(12 * 3 * 197 * 197, 1.0 / 197), {}};
  EXPECT_NEAR(values_alone(network, 0.9).values, 0.1, 1e-12);
  for (const double sparsity : {0.5, 0.8, 0.9}) {
    const hw::dynamic::SpattenSchedule schedule = tokens_alone(network, sparsity);
    EXPECT_EQ(schedule.tokens.front(), 197U);
    double cells = 0.0;
    for (const std::size_t tokens : schedule.tokens) cells += static_cast<double>(tokens * tokens);
    EXPECT_NEAR(cells / (12 * 197 * 197), 1.0 - sparsity, 0.01);
  }
  EXPECT_EQ(tokens_alone(network, 0.95).tokens.back(), 1U)
      << "the first layer has 8 % of the cells";
}

TEST(Rivals, AMasksRowsAreAttendedToAlike) {
  model::AttentionMask mask({1, 1, 2, 2});
  mask.keep(0, 0, 0, 1);
  mask.keep(0, 0, 1, 0);
  mask.keep(0, 0, 1, 1);
  EXPECT_EQ(uniform_attention(mask).attention, (std::vector<double>{0, 1, 0.5, 0.5}));
}

TEST(Rivals, PredictedMasksPruneWhatIsAskedForAndDifferByPicture) {
  const PredictedMasks predicted = predicted_masks(0.9, 3);
  ASSERT_EQ(predicted.masks.size(), 3U);
  double sparsity = 0.0;
  for (const model::AttentionMask& mask : predicted.masks) {
    sparsity += mask.sparsity() / 3;
    EXPECT_FALSE(mask.first_empty_row());
  }
  EXPECT_NEAR(sparsity, 0.9, 0.005);
  std::size_t different = 0;
  for (std::size_t cell = 0; cell < predicted.masks[0].shape().cells(); ++cell) {
    different += predicted.masks[0].kept(cell) != predicted.masks[1].kept(cell) ? 1 : 0;
  }
  EXPECT_GT(different, 1000U);
}

/// What this computer is timed at is attention: both ways give what a plain product in double
/// precision gives of the same mask.
TEST(HostAttention, ComputesTheSameByBothWays) {
  model::AttentionMask mask({1, 2, 23, 31});
  std::mt19937 random(4);
  for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) {
    if (random() % 3 == 0 || cell % 31 == 5) mask.keep(cell);
  }
  for (const std::size_t head : {0U, 1U}) {
    const HostOutputs outputs = host_outputs(mask, 0, head, 12);
    ASSERT_EQ(outputs.dense.size(), 23U * 12);
    float largest = 0.0F;
    for (std::size_t i = 0; i < outputs.dense.size(); ++i) {
      EXPECT_NEAR(outputs.dense[i], outputs.kept[i], 1e-5F);
      largest = std::max(largest, std::fabs(outputs.dense[i]));
    }
    EXPECT_GT(largest, 0.1F);
  }
  const HostAttention times = measure_host_attention(mask, 12);
  EXPECT_GT(times.dense, 0.0);
  EXPECT_GT(times.kept, 0.0);
  EXPECT_LT(times.dense, 1.0);
  EXPECT_FALSE(cpu_name().empty());
}

TEST(LineMapping, CountsADiagonalByHand) {
  // 128 keys with a cell each, on 64 lines: two scores of 8 cycles, or 128 with a key at a time.
  model::AttentionMask mask({1, 1, 128, 128});
  for (std::size_t i = 0; i < 128; ++i) mask.keep(0, 0, i, i);
  const LineMappingCycles cycles = line_mapping_cycles(mask, 64, vitcod_engines().attention);
  EXPECT_DOUBLE_EQ(cycles.ideal, 128 * 64 / 512.0);
  for (const std::uint64_t per_line :
       {cycles.packed, cycles.per_line, cycles.best, cycles.unordered}) {
    EXPECT_EQ(per_line, 2U * 8);
  }
  EXPECT_EQ(cycles.broadcast, 128U * 8);
  EXPECT_EQ(cycles.unordered_broadcast, 128U * 8);
}

TEST(LineMapping, ReorderingTakesALongColumnFromItsLine) {
  model::AttentionMask mask({1, 1, 128, 128});
  for (std::size_t i = 0; i < 128; ++i) {
    mask.keep(0, 0, i, i);
    mask.keep(0, 0, i, 9);
  }
  const LineMappingCycles cycles = line_mapping_cycles(mask, 64, vitcod_engines().attention);
  EXPECT_EQ(cycles.unordered, 128U * 8);
  EXPECT_EQ(cycles.per_line, 4U * 8) << "32 lines each: 128 queries, and 127 columns of a cell";
  EXPECT_EQ(cycles.packed, 4U * 8);
  EXPECT_LE(cycles.best, cycles.per_line);
}

// Where the auto-encoder's link pays: ViTCoD's models on buses of three widths.

constexpr double kWithin = 0.05;
constexpr AutoEncoder kTiny{3, 2}, kSmall{6, 3}, kBase{12, 6};

hw::Machine vitcod() { return hw::find_machine("vitcod"); }

void expect_near(double measured, double expected) {
  EXPECT_NEAR(measured, expected, kWithin * expected);
}

TEST(DecoderBreakEven, IsAtALatentHeadsProductsForEveryByte) {
  expect_near(decoder_break_even(vitcod(), kTiny, 38.4).decoder_macs, 2 * 38.4);
  expect_near(decoder_break_even(vitcod(), kTiny, 153.6).decoder_macs, 307);
  expect_near(decoder_break_even(vitcod(), kSmall, 76.8).decoder_macs, 3 * 76.8);
  expect_near(decoder_break_even(vitcod(), kBase, 153.6).decoder_macs, 922);
}

TEST(ArrayBreakEven, IsWhereTheArrayDecodesAsFastAsBytesAreSaved) {
  expect_near(array_break_even(vitcod(), kTiny).bytes_per_cycle, 85.3);
  expect_near(array_break_even(vitcod(), kBase).bytes_per_cycle, 42.7);
}

TEST(BreakEven, SaysWhatItPredictsAndForWhat) {
  const BreakEven decoder = decoder_break_even(vitcod(), kSmall, 38.4);
  EXPECT_EQ(decoder.auto_encoder.heads, 6U);
  EXPECT_EQ(decoder.auto_encoder.latent_heads, 3U);
  EXPECT_DOUBLE_EQ(decoder.bytes_per_cycle, 38.4);
  EXPECT_DOUBLE_EQ(decoder.predicted, 115.2);
  const BreakEven array = array_break_even(vitcod(), kSmall);
  EXPECT_DOUBLE_EQ(array.decoder_macs, 512);
  EXPECT_DOUBLE_EQ(array.predicted, 512 * 3.0 / 18);
}

TEST(BreakEven, IsNowhereWithoutCompression) {
  EXPECT_THROW((void)decoder_break_even(vitcod(), {3, 3}, 76.8), std::invalid_argument);
  EXPECT_THROW((void)array_break_even(vitcod(), {3, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
