#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/weight_groups.h"
#include "model/format/safetensors.h"
#include "support/paths.h"

/// Weights of MX against those that NumPy and ml_dtypes make (script/train/make_mx_goldens.py).
namespace systole::model {
namespace {

constexpr std::size_t kMxScales = 255;

class MxWeights : public testing::TestWithParam<hw::WeightFormat> {
 protected:
  [[nodiscard]] std::string key(const char* what) const {
    return std::string(what) + "." + std::string(name_of(GetParam()));
  }

  Safetensors golden_ = Safetensors::open(source_path("tests/golden/mx_weights.safetensors"));
};

TEST_P(MxWeights, AreTheElementsTimesTheScaleRoundedToInt8) {
  const auto expected = golden_.copy<std::int8_t>(key("expanded"));
  const std::size_t codes = expected.size() / kMxScales;
  ASSERT_EQ(codes, std::size_t{1} << hw::code_bits(GetParam()));
  for (std::size_t scale = 0; scale < kMxScales; ++scale) {
    for (std::size_t code = 0; code < codes; ++code) {
      const hw::WeightGroup group{static_cast<std::uint8_t>(scale), 0};
      ASSERT_EQ(hw::expanded_weight(GetParam(), static_cast<int>(code), group),
                expected[scale * codes + code])
          << code << " at " << scale;
    }
  }
}

/// All codes at all scales pass through memory, in tiles of any width.
TEST_P(MxWeights, ComeBackFromMemory) {
  const auto expected = golden_.copy<std::int8_t>(key("expanded"));
  const std::size_t codes = expected.size() / kMxScales, rows = hw::kGroupWeights;
  for (const std::size_t cols : {std::size_t{1}, std::size_t{5}, kMxScales}) {
    const std::size_t pitch = cols + 3;
    for (std::size_t first = 0; first < codes; first += rows) {
      std::vector<hw::WeightGroup> groups(cols);
      std::vector<std::uint8_t> weights(rows * pitch, 0xaa);
      for (std::size_t c = 0; c < cols; ++c) {
        groups[c].scale = static_cast<std::uint8_t>((c * 51 + 120) % kMxScales);
        for (std::size_t row = 0; row < rows; ++row) {
          weights[row * pitch + c] =
              static_cast<std::uint8_t>(expected[groups[c].scale * codes + (first + row) % codes]);
        }
      }
      std::vector<std::uint8_t> packed(hw::packed_group_bytes(GetParam(), cols));
      ASSERT_EQ(packed.size(), cols + rows * (codes == 256 ? cols : (cols + 1) / 2));
      hw::pack_group(GetParam(), weights.data(), pitch, groups.data(), cols, packed.data());
      for (std::size_t c = 0; c < cols; ++c) EXPECT_EQ(packed[c], groups[c].scale);
      std::vector<std::uint8_t> again(weights.size(), 0xaa);
      hw::expand_group(GetParam(), packed.data(), cols, again.data(), pitch);
      EXPECT_EQ(again, weights) << "nothing between the rows is written";
    }
  }
}

// The specification's scale, or the next one where that comes closer; never further off.
TEST_P(MxWeights, RoundBlocksAsTheSpecificationOrBetter) {
  constexpr std::size_t kSize = hw::kGroupWeights;
  const auto blocks = golden_.copy<double>("blocks");
  const auto scales = golden_.copy<std::uint8_t>(key("scales"));
  const auto values = golden_.copy<double>(key("values"));
  std::size_t same = 0, exact = 0;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double* const block = &blocks[i * kSize];
    std::array<std::int8_t, kSize> rounded;
    const hw::WeightGroup group = hw::round_to_mx_group(GetParam(), block, rounded.data());
    double error = 0, limit = 0, of_values = 0;
    for (std::size_t j = 0; j < kSize; ++j) {
      const double value = std::clamp(std::nearbyint(values[i * kSize + j]), -127.0, 127.0);
      error += std::pow(rounded[j] - block[j], 2);
      limit += std::pow(value - block[j], 2);
      of_values += std::fabs(block[j] - values[i * kSize + j]);
      if (group.scale == scales[i]) {
        ASSERT_EQ(rounded[j], value) << i << ", " << j;
      }
    }
    EXPECT_LE(error, limit) << i;
    EXPECT_TRUE(group.scale == scales[i] || group.scale == scales[i] + 1) << i;
    EXPECT_EQ(group.minimum, 0);
    same += group.scale == scales[i] ? 1 : 0;
    exact += of_values == 0 ? 1 : 0;
  }
  EXPECT_GT(same, scales.size() / 2);
  // Where the largest weight is far beyond the largest element.
  EXPECT_GE(scales.size() - same, GetParam() == hw::WeightFormat::kMxFp4 ? 10U : 0U);
  // Blocks that had the format before keep their values.
  if (GetParam() == hw::WeightFormat::kMxFp4) {
    EXPECT_GE(exact, scales.size() / 4);
  }
}

TEST(MxFp4, RoundsTiesToEvenMantissas) {
  // The middles of all neighbours, in steps of 1/16, and what makes 16 the scale.
  const std::vector<double> middles = {4, 12, 20, 28, 40, 56, 80, 96};
  const std::vector<int> expected = {0, 16, 16, 32, 32, 64, 64, 96};
  std::vector<double> block(hw::kGroupWeights, 8);
  std::copy(middles.begin(), middles.end(), block.begin());
  for (const int sign : {1, -1}) {
    for (double& weight : block) weight *= sign;
    std::array<std::int8_t, hw::kGroupWeights> rounded;
    const hw::WeightGroup group =
        hw::round_to_mx_group(hw::WeightFormat::kMxFp4, block.data(), rounded.data());
    EXPECT_EQ(group.scale, 127 + 4);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(rounded[i], sign * expected[i]);
  }
}

TEST_P(MxWeights, OfAnOutputHaveAPowerOfTwoThatLeavesNoRoom) {
  for (const double largest : {1e-9, 0.3, 0.5, 1.0, 1.99, 100.0}) {
    const double scale = hw::mx_output_scale(largest);
    EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
    EXPECT_GE(largest / scale, 64);
    EXPECT_LT(largest / scale, 128);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MxWeights,
                         testing::Values(hw::WeightFormat::kMxInt8, hw::WeightFormat::kMxFp4),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace systole::model
