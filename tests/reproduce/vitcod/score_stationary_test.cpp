#include <gtest/gtest.h>

#include <stdexcept>

#include "hw/description/machine_file.h"
#include "reproduce/vitcod/vitcod.h"
#include "support/input_error.h"

namespace systole::testbench {
namespace {

/// 512 MACs: 32 rows of 16 elements; 153.6 bytes a cycle.
hw::Machine vitcod_engines() { return hw::find_machine("vitcod"); }

TEST(ScoreStationary, MovesAsManyBytesACycleAsBusAndDramCan) {
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(vitcod_engines()), 64 * 1200 / 500.0);
  hw::Machine machine = vitcod_engines();
  machine.dram.channels = 1;
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(machine), 2400 * 8 / 500.0);
  machine.bus.width_bytes = 8;
  EXPECT_DOUBLE_EQ(peak_bytes_per_cycle(machine), 8 * 1200 / 500.0);
}

TEST(ScoreStationary, ADenseHeadFillsEveryElement) {
  // 64 queries with 4 rows each for a tile of 64 keys: 256 rows, 8 passes; two tiles.
  const ScoreStationaryCycles cycles =
      score_stationary_cycles(dense_mask({1, 1, 64, 128}), 32, vitcod_engines());
  EXPECT_EQ(cycles.scores, 2 * 8 * 32);
  EXPECT_EQ(cycles.context, cycles.scores);
  EXPECT_EQ(cycles.prediction, 64 * 128 * 32 / 512);
  EXPECT_EQ(cycles.shared_macs(), 512 + 512 + 512);
  EXPECT_EQ(cycles.own_predictor(), 1024);
}

TEST(ScoreStationary, AQueryTakesARowForEveryTileInWhichItKeepsAKey) {
  model::AttentionMask mask({2, 1, 40, 70});
  for (std::size_t query = 0; query < 40; ++query) mask.keep(0, 0, query, 3);
  for (std::size_t key = 0; key < 17; ++key) mask.keep(0, 0, 5, key);
  mask.keep(0, 0, 7, 69);
  mask.keep(1, 0, 0, 0);
  // Layer 0: 41 rows in the first tile, 1 in the second; layer 1: one row.
  const ScoreStationaryCycles cycles = score_stationary_cycles(mask, 8, vitcod_engines());
  EXPECT_EQ(cycles.scores, (2 + 1 + 1) * 8);
  EXPECT_EQ(cycles.prediction, 2 * ((40 * 70 * 8 + 511) / 512));
  EXPECT_EQ(cycles.overlapped, 2 * 3 * 8 + (40 * 70 * 8 + 511) / 512);
  EXPECT_EQ(cycles.memory, 23) << "2 x 2 x (40 + 70) x 8 bytes";
}

TEST(ScoreStationary, NeedsARowOfMacs) {
  hw::Machine machine = vitcod_engines();
  machine.array.rows = 1;
  machine.array.cols = 8;
  EXPECT_NE(input_error_of([&] {
              return score_stationary_cycles(dense_mask({1, 1, 2, 2}), 8, machine);
            }).find("8 MACs, expected at least 16"),
            std::string::npos);
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
