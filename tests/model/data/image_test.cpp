#include "model/data/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace systole::model {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

using Values = std::vector<std::int32_t>;

/// 8 x 8 pixels that take every value of 0..16.
Image pattern() {
  Image image{1, 8, 8, Values(64)};
  for (std::size_t i = 0; i < 64; ++i) image.values[i] = static_cast<std::int32_t>(i * 7 % 17);
  return image;
}

Values row(const Image& image, std::size_t y) {
  const auto begin = image.values.begin() + static_cast<std::ptrdiff_t>(y * image.width);
  return {begin, begin + static_cast<std::ptrdiff_t>(image.width)};
}

/// A polynomial over all values, so that a change of any value or of the order shows.
std::int64_t fingerprint(const Values& values) {
  return std::accumulate(
      values.begin(), values.end(), std::int64_t{0},
      [](std::int64_t hash, std::int32_t value) { return (hash * 31 + value) % 1'000'003; });
}

// The expected numbers of this file were computed with numpy from the definition in whole arrays:
// for up = 2, slices of the edge-padded picture weighted 9, 3, 3, 1.

TEST(Preprocess, SameSizeTimesEightCutAt127) {
  const Image image = preprocess(pattern(), 1, kDigitLevels);
  EXPECT_EQ(image.height, 8U);
  EXPECT_EQ(image.width, 8U);
  EXPECT_THAT(row(image, 0), ElementsAre(0, 56, 112, 32, 88, 8, 64, 120));
  EXPECT_THAT(row(image, 1), ElementsAre(40, 96, 16, 72, 127, 48, 104, 24));
  EXPECT_EQ(fingerprint(image.values), 661456);
}

TEST(Preprocess, DoubledByBilinearInterpolation) {
  const Image image = preprocess(pattern(), 2, kDigitLevels);
  EXPECT_EQ(image.height, 16U);
  EXPECT_EQ(image.width, 16U);
  EXPECT_THAT(row(image, 0),
              ElementsAre(0, 14, 42, 70, 98, 92, 52, 46, 74, 68, 28, 22, 50, 78, 106, 120));
  EXPECT_THAT(row(image, 7),
              ElementsAre(96, 85, 62, 56, 67, 61, 38, 40, 68, 88, 99, 93, 70, 64, 75, 80));
  EXPECT_THAT(row(image, 15),
              ElementsAre(8, 22, 50, 78, 106, 100, 60, 54, 82, 76, 36, 30, 58, 86, 114, 127));
  EXPECT_EQ(fingerprint(image.values), 475312);
}

TEST(Preprocess, DoubledPictureKeepsEdgesAndSides) {
  EXPECT_THAT(preprocess({1, 1, 1, {16}}, 2, kDigitLevels).values, ElementsAre(127, 127, 127, 127));
  EXPECT_THAT(preprocess({1, 1, 1, {1}}, 2, kDigitLevels).values, ElementsAre(8, 8, 8, 8));
  const Image wide = preprocess({1, 1, 3, {0, 16, 0}}, 2, kDigitLevels);
  EXPECT_EQ(wide.height, 2U);
  EXPECT_EQ(wide.width, 6U);
  EXPECT_THAT(row(wide, 0), ElementsAre(0, 32, 96, 96, 32, 0));
  EXPECT_EQ(row(wide, 1), row(wide, 0));
  EXPECT_THAT(preprocess({1, 2, 2, {1, 0, 0, 0}}, 2, kDigitLevels).values,
              ElementsAre(8, 6, 2, 0, 6, 5, 2, 0, 2, 2, 1, 0, 0, 0, 0, 0))
      << "sums 16, 12, 4, 0 / 9, 3 / 1, halved with ties up";
}

TEST(Preprocess, BytesKeepAllTheirLevels) {
  Image bytes{1, 1, 256, Values(256)};
  std::iota(bytes.values.begin(), bytes.values.end(), 0);
  Values codes(256);
  std::iota(codes.begin(), codes.end(), -128);
  EXPECT_EQ(preprocess(bytes, 1, kByteLevels).values, codes);
  EXPECT_THAT(preprocess({1, 2, 2, {1, 0, 0, 0}}, 2, kByteLevels).values,
              ElementsAre(-127, -127, -128, -128, -127, -127, -128, -128, -128, -128, -128, -128,
                          -128, -128, -128, -128))
      << "sums 16, 12, 4, 0 / 9, 3 / 1 of 16";
}

TEST(Preprocess, ChannelsAreNotMixed) {
  const Image colour = preprocess({3, 1, 1, {0, 7, 16}}, 2, kDigitLevels);
  EXPECT_EQ(colour.channels, 3U);
  EXPECT_THAT(colour.values, ElementsAre(0, 0, 0, 0, 56, 56, 56, 56, 127, 127, 127, 127));
}

TEST(Preprocess, OtherLevelsAreRefused) {
  for (const std::uint32_t levels : {0U, 16U, 255U}) {
    EXPECT_THROW(preprocess(pattern(), 1, levels), std::invalid_argument) << levels;
  }
}

TEST(Preprocess, OtherScalesAreRefused) {
  for (const int up : {-1, 0, 3})
    EXPECT_THROW(preprocess(pattern(), up, kDigitLevels), std::invalid_argument);
}

TEST(Patchify, PatchesAreRowMajorInsideAndOutside) {
  Image image{1, 4, 6, Values(24)};
  std::iota(image.values.begin(), image.values.end(), 0);
  EXPECT_THAT(patchify(image, 2), ElementsAreArray({0,  1,  6,  7,  2,  3,  8,  9,   //
                                                    4,  5,  10, 11, 12, 13, 18, 19,  //
                                                    14, 15, 20, 21, 16, 17, 22, 23}));
  EXPECT_EQ(patchify(image, 1), image.values);
}

TEST(Patchify, PatchesHoldTheirChannelsOneAfterTheOther) {
  EXPECT_THAT(patchify({2, 2, 4, {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17}}, 2),
              ElementsAreArray({0, 1, 4, 5, 10, 11, 14, 15, 2, 3, 6, 7, 12, 13, 16, 17}));
}

TEST(Patchify, AgreesWithTheReference) {
  const Values patches = patchify(preprocess(pattern(), 2, kDigitLevels), 4);
  ASSERT_EQ(patches.size(), 256U);
  EXPECT_THAT(Values(patches.begin() + 80, patches.begin() + 96),
              ElementsAre(41, 60, 88, 91, 52, 72, 83, 77, 72, 75, 52, 46, 67, 61, 38, 40));
}

TEST(Patchify, PatchMustDivideTheSides) {
  const Image image{1, 4, 6, Values(24)};
  for (const std::size_t patch : {0U, 3U, 4U, 6U, 8U}) {
    EXPECT_THROW(patchify(image, patch), std::invalid_argument) << patch;
  }
}

}  // namespace
}  // namespace systole::model
