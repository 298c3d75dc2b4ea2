#include "hw/function/deeploy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

/// Values by hand. All of Deeploy's own networks: tests/python/convert/test_onnx.py.
namespace systole::hw::deeploy {
namespace {

using Row = std::vector<std::int64_t>;

TEST(Deeploy, RequantisationAddsBeforeItShiftsHalfUp) {
  const IntRange range = range_of_levels(256, true);
  EXPECT_EQ(range.lo, -128);
  EXPECT_EQ(range_of_levels(256, false).hi, 255);
  EXPECT_EQ(requantise(3, 2, 0, 2, range), 2);    // 6 / 4
  EXPECT_EQ(requantise(-3, 2, 0, 2, range), -1);  // -1.5 rounds up
  EXPECT_EQ(requantise(3, 2, -1, 2, range), 1);   // 5 / 4
  EXPECT_EQ(requantise(1000, 1, 0, 0, range), 127);
}

TEST(Deeploy, NormalisationsCutOffTowardsZeroAndShiftDown) {
  Row x = {3, -4};  // mean square 12.5, + 1: 13, root 3
  const Row weight = {10, 10};
  rms_norm_row(x.data(), 2, weight.data(), 1);
  EXPECT_EQ(x, (Row{5, -7}));  // 30 / 3 = 10; -40 / 3 = -13
  x = {-1, 4, 5};              // mean 8 / 3 = 2; squares 9 + 4 + 9 = 22, 7 + 1 = 8, root 2
  const Row three = {3, 3, 3}, bias = {0, 1, 2};
  layer_norm_row(x.data(), 3, three.data(), bias.data(), 1);
  EXPECT_EQ(x, (Row{-2, 2, 3}));  // -9 / 2 = -4; 6 / 2 + 1 = 4; 9 / 2 + 2 = 6
}

TEST(Deeploy, SoftmaxIsAPolynomialHalvedForEachLnTwo) {
  Row x = {10, 7, 4};  // differences 0, -3, -6; ln 2 is 4 codes: 0, 0 and 1 halvings
  softmax_row(x.data(), 3, {1, 5, 2, 4}, 256);
  // (0 + 5)^2 + 2 = 27; (-3 + 5)^2 + 2 = 6; ((-2 + 5)^2 + 2) / 2 = 5
  EXPECT_EQ(x, (Row{27 * 255 / 38, 6 * 255 / 38, 5 * 255 / 38}));
}

TEST(Deeploy, ItaMaxHalvesForThirtyTwoCodes) {
  Row x = {100, 85, 84, 20};  // halvings 0, 0, 1 and 3
  ita_max_row(x.data(), 4, 256);
  const std::int64_t reciprocal = 256 * 255 / (256 + 256 + 128 + 32);
  EXPECT_EQ(x, (Row{reciprocal, reciprocal, reciprocal >> 1, reciprocal >> 3}));
  x = {20, 20, 100, 100};  // the sum of the first two is shifted by 3 when the maximum rises
  ita_partial_max_row(x.data(), 4, 2, 256);
  const std::int64_t partial = 256 * 127 / ((512 >> 3) + 512);
  EXPECT_EQ(x, (Row{partial >> 3, partial >> 3, partial, partial}));
  x = {-1000, -1000};  // below what the maximum begins with
  ita_partial_max_row(x.data(), 2, 2, 256);
  EXPECT_EQ(x, (Row{0, 0}));
}

TEST(Deeploy, ElementsOneByOne) {
  EXPECT_EQ(gelu(3, -5, 30), 3 * ((30 + 26) >> 1));  // (3 - 5)^2 = 4
  EXPECT_EQ(gelu(-3, -5, 30), -3 * ((30 - 26) >> 1));
  EXPECT_EQ(gelu(9, -5, 30), 9 * ((30 + 30) >> 1));
  EXPECT_EQ(gelu(0, -5, 30), 0);
  EXPECT_EQ(hardswish(4, 2, 3, 6), 4 * 2 * 6);
  EXPECT_EQ(hardswish(-2, 2, 3, 6), -2 * 2 * 1);
  EXPECT_EQ(hardswish(-9, 2, 3, 6), 0);
  EXPECT_EQ(mean(5, 2), 3);
  EXPECT_EQ(mean(-5, 2), -2);
  EXPECT_EQ(mean(-7, 4), -2);
}

}  // namespace
}  // namespace systole::hw::deeploy
