#include "reproduce/study/fusion_study.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "reproduce/published.h"

namespace systole::analysis {
namespace {

// 32 x 16 results of 16 products each, by hand: 5.12 bytes a cycle, 256 MACs at 90 %.
const FusionPair kSmall{"small", 1, 32, 16, 16, 5};

TEST(FusionStudy, OfASmallPairByHand) {
  // The product: 512 + 256 bytes in, 512 out; longer than 8192 MACs. The pass: 512 x 5 bytes.
  EXPECT_DOUBLE_EQ(unfused_cycles(kSmall, 256), (1280 + 2560) / 5.12);
  EXPECT_DOUBLE_EQ(fused_cycles(kSmall, 256), 1280 / 5.12);
  FusionPair heads = kSmall;
  heads.products = 3;
  EXPECT_DOUBLE_EQ(unfused_cycles(heads, 256), 3 * unfused_cycles(kSmall, 256));
  EXPECT_DOUBLE_EQ(fused_cycles(heads, 256), 3 * fused_cycles(kSmall, 256));
}

TEST(FusionStudy, TheLongestOfArrayMemoryAndPassesCounts) {
  const FusionPair array{"deep", 1, 4096, 512, 256, 0};
  EXPECT_DOUBLE_EQ(fused_cycles(array, 256), 4096.0 * 512 * 256 / 256 / 0.90);
  EXPECT_DOUBLE_EQ(fused_cycles(array, 128), 4096.0 * 512 * 256 / 256 / 0.88);
  const FusionPair memory{"shallow", 1, 4096, 1024, 1, 0};
  const double product = (4096 + 1024 + 4096.0 * 1024) / 5.12;
  EXPECT_DOUBLE_EQ(fused_cycles(memory, 256), product);
  // Of its own it moves nothing, but passes three times; its tiles are 176 x 176.
  EXPECT_NEAR(unfused_cycles(memory, 256),
              product + (5 * 4096 + 23 * 1024) / 5.12 + 3 * 4096.0 * 1024 / 16, 1);
}

TEST(FusionStudy, WholeRowsLoadALargeOperandForEveryTile) {
  // Half of 128 KiB holds 21 rows of 768 sums: 16 of them. Of 256 KiB 32, and half as many loads.
  const FusionPair pair = projection_and_layer_norm(512);
  const double weights = 768.0 * 768 / 5.12, rest = 2 * 512 * 768 / 5.12;
  EXPECT_NEAR(fused_cycles(pair, 128), 32 * weights + rest, 1);
  EXPECT_NEAR(fused_cycles(pair, 256), 16 * weights + rest, 1);
  // Half of it holds 8 rows of 4096: so the whole holds one tile of 16.
  EXPECT_NEAR(fused_cycles(scores_and_softmax(4096), 256),
              12 * (256 * 4096.0 * 64 + 4096 * 64 + 4096.0 * 4096) / 5.12, 1);
  EXPECT_THROW((void)fused_cycles(scores_and_softmax(4096), 128), std::invalid_argument);
}

TEST(FusionStudy, EqualsThePublishedChangesInSignAndWithinEightPoints) {
  ASSERT_EQ(survey_fusion_cases().size(), 10U);
  const auto& published = testbench::PublishedPaper::load("survey").table("fusion");
  for (const FusionCase& study : survey_fusion_cases()) {
    const double change = published.value(study.text(), "change");
    EXPECT_NEAR(study.change(), change, 8) << study.text();
    EXPECT_EQ(study.change() < 0, change < 0) << study.text();
  }
}

}  // namespace
}  // namespace systole::analysis
