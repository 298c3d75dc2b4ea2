/// Where the auto-encoder's link pays: ViTCoD's models on buses of three widths.

#include <gtest/gtest.h>

#include <stdexcept>

#include "hw/description/machine_file.h"
#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {
namespace {

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
