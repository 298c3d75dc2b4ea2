#include "hw/number/isqrt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/hw/number/golden_table.h"

namespace systole::hw {
namespace {

/// root^2 <= n < (root + 1)^2, by products alone.
bool is_root(std::uint64_t n, std::uint64_t root) {
  return root * root <= n && n - root * root <= 2 * root;
}

TEST(IntSqrt, IsExactForEveryInputOf20Bits) {
  for (std::uint64_t n = 0; n <= std::uint64_t{1} << 20; ++n) {
    ASSERT_TRUE(is_root(n, int_sqrt(n).root)) << n;
  }
}

TEST(IntSqrt, NeedsAtMostSixPassesAroundEverySquareOf32Bits) {
  unsigned most = 0;
  for (std::uint64_t k = 1; k < std::uint64_t{1} << 16; ++k) {
    for (const std::uint64_t n : {k * k - 1, k * k, k * k + 1, k * k + 2 * k}) {
      const IntSqrt result = int_sqrt(n);
      ASSERT_TRUE(is_root(n, result.root)) << n;
      most = std::max(most, result.passes);
    }
  }
  EXPECT_EQ(most, kMaxIntSqrtPasses48Bit);
  EXPECT_LT(int_sqrt(16785407).passes, kMaxIntSqrtPasses48Bit);
  EXPECT_EQ(int_sqrt(16785408).passes, kMaxIntSqrtPasses48Bit);
}

TEST(IntSqrt, StaysBelowTheDocumentedPassesOverAllWidths) {
  std::mt19937_64 random(7);
  unsigned most = 0;
  unsigned most_48_bit = 0;
  const auto check = [&most, &most_48_bit](std::uint64_t n) {
    const IntSqrt result = int_sqrt(n);
    ASSERT_TRUE(is_root(n, result.root)) << n;
    unsigned& counter = bit_length(n) <= 48 ? most_48_bit : most;
    counter = std::max(counter, result.passes);
  };
  for (unsigned bits = 1; bits <= 64; ++bits) {
    const std::uint64_t lowest = std::uint64_t{1} << (bits - 1);
    check(lowest);
    check(lowest - 1 + lowest);
    for (int i = 0; i < 3000; ++i) check(lowest | (random() & (lowest - 1)));
  }
  for (unsigned bits = 2; bits <= 32; ++bits) {
    const std::uint64_t base = std::uint64_t{1} << (bits - 1);
    // The start is worst, twice the root, just above a power of four.
    for (std::uint64_t k = base; k < base + 2000 && k < 2 * base; ++k) {
      check(k * k - 1);
      check(k * k);
      check(k * k + 2 * k);
    }
  }
  check(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(most, kMaxIntSqrtPasses);
  EXPECT_EQ(most_48_bit, kMaxIntSqrtPasses48Bit);
}

TEST(IntSqrt, MatchesTheReferenceTable) {
  for (const auto& entry : golden_cases("datapath/isqrt.json")) {
    EXPECT_EQ(int_sqrt(entry[0]).root, entry[1]) << entry[0];
  }
}

TEST(IntSqrt, CountsNoPassForZeroAndTwoForOne) {
  EXPECT_EQ(int_sqrt(0).root, 0U);
  EXPECT_EQ(int_sqrt(0).passes, 0U);
  EXPECT_EQ(int_sqrt(1).root, 1U);
  EXPECT_EQ(int_sqrt(1).passes, 2U);
}

}  // namespace
}  // namespace systole::hw
