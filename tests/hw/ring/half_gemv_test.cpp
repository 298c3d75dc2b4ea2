#include "hw/ring/half_gemv.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/ring/half_kernels.h"
#include "hw/ring/half_vector.h"
#include "tests/support/half_gemv_case.h"
#include "tests/support/half_oracle.h"
#include "tests/support/highway_target.h"

namespace systole::hw {
namespace {

using systole::test::HalfGemvCase;
using systole::test::HalfPattern;

/// Bits of y, in [rows][columns].
std::vector<std::uint16_t> bits_of(HalfGemvCase& test, HalfKernel kernel) {
  test.y.assign(test.y.size(), Half{0x5a5a});
  half_gemv(test.args(), kernel);
  std::vector<std::uint16_t> bits;
  for (const Half y : test.y) bits.push_back(y.bits);
  return bits;
}

/// From the definition, by sums and products of integers.
std::vector<std::uint16_t> expected_bits(HalfGemvCase& test) {
  const HalfGemv args = test.args();
  std::vector<std::uint16_t> bits(test.y.size(), 0x5a5a);
  for (std::size_t row = 0; row < args.rows; ++row) {
    for (std::size_t slice = 0; slice < args.slices; ++slice) {
      for (std::size_t lane = 0; lane < args.lanes; ++lane) {
        Half sum = args.bias == nullptr ? kHalfZero : args.bias[slice * args.lanes + lane];
        for (std::size_t k = 0; k < args.k_tiles; ++k) {
          const std::size_t tile = slice * args.slice_stride + k * args.k_stride;
          std::vector<Half> level;
          for (std::size_t i = 0; i < args.depth; ++i) {
            level.push_back(
                systole::test::oracle_mul(args.x[row * args.x_pitch + k * args.depth + i],
                                          args.tiles[(tile * args.lanes + lane) * args.depth + i]));
          }
          while (level.size() > 1) {
            for (std::size_t i = 0; i < level.size() / 2; ++i) {
              level[i] = systole::test::oracle_add(level[i], level[i + level.size() / 2]);
            }
            level.resize(level.size() / 2);
          }
          sum = systole::test::oracle_add(sum, level[0]);
        }
        bits[row * args.y_pitch + slice * args.lanes + lane] = sum.bits;
      }
    }
  }
  return bits;
}

TEST(HalfGemv, AddsAsTheTreeDoes) {
  std::mt19937_64 random(31);
  for (const HalfPattern pattern : systole::test::kHalfPatterns) {
    for (const std::size_t depth : {2, 4, 64, 128}) {
      for (const std::size_t lanes : {1, 16}) {
        HalfGemvCase test({2, 3, 2, depth, lanes}, pattern, random);
        const std::vector<std::uint16_t> expected = expected_bits(test);
        ASSERT_EQ(bits_of(test, HalfKernel::kPlain), expected) << depth << ' ' << lanes;
      }
    }
  }
}

void expect_bits_of_the_plain_loops(HalfKernel kernel) {
  std::mt19937_64 random(32);
  for (const HalfPattern pattern : systole::test::kHalfPatterns) {
    for (const std::size_t depth : {2, 4, 8, 16, 32, 64, 128}) {
      for (const std::size_t lanes : {3, 4, 8, 16, 48}) {
        for (const std::size_t rows : {1, 17}) {
          HalfGemvCase test({rows, 1 + random() % 5, 1 + random() % 3, depth, lanes}, pattern,
                            random);
          const std::vector<std::uint16_t> expected = bits_of(test, HalfKernel::kPlain);
          ASSERT_EQ(bits_of(test, kernel), expected)
              << depth << " x " << lanes << ", pattern " << static_cast<int>(pattern);
        }
      }
    }
  }
}

/// Each target that the host has; the emulated ones of a vector unit without halves among them.
class HalfGemvTarget : public systole::test::HighwayTarget {};

std::vector<std::int64_t> vector_targets() {
  std::vector<std::int64_t> targets;
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSSE3}) {
    if ((hwy::SupportedTargets() & HWY_TARGETS & target) != 0) targets.push_back(target);
  }
  return targets;
}

TEST_P(HalfGemvTarget, HighwayHasTheBitsOfThePlainLoops) {
  ASSERT_STREQ(half_detail::highway_target(), hwy::TargetName(GetParam()));
  expect_bits_of_the_plain_loops(HalfKernel::kHighway);
}

TEST_P(HalfGemvTarget, VectorsHaveTheBitsOfTheScalarFunctions) {
  std::mt19937_64 random(33);
  const systole::test::HalfPairs pairs = systole::test::half_corner_pairs(random, 8);
  const std::size_t n = pairs.a.size();
  std::vector<Half> y(n);
  const auto expect = [&](Half (*function)(Half, Half), bool scalar) {
    for (std::size_t i = 0; i < n; ++i) {
      const Half b = pairs.b[scalar ? 7 : i];
      ASSERT_EQ(y[i].bits, function(pairs.a[i], b).bits) << pairs.a[i].bits << ' ' << b.bits;
    }
  };
  half_vector::add(pairs.a.data(), pairs.b.data(), n, y.data());
  expect(half_add, false);
  half_vector::subtract(pairs.a.data(), pairs.b.data(), n, y.data());
  expect(half_sub, false);
  half_vector::multiply(pairs.a.data(), pairs.b.data(), n, y.data());
  expect(half_mul, false);
  half_vector::add(pairs.a.data(), pairs.b[7], n, y.data());
  expect(half_add, true);
  half_vector::subtract(pairs.a.data(), pairs.b[7], n, y.data());
  expect(half_sub, true);
  half_vector::multiply(pairs.a.data(), pairs.b[7], n, y.data());
  expect(half_mul, true);
}

TEST_P(HalfGemvTarget, VectorsOfAnyLengthLeaveTheRestAlone) {
  std::mt19937_64 random(34);
  for (std::size_t n = 0; n < 70; ++n) {
    std::vector<Half> a(n + 1);
    std::vector<Half> b(n);
    for (Half& x : a) x = systole::test::random_half(random);
    for (Half& x : b) x = systole::test::random_half(random);
    const std::vector<Half> before = a;
    half_vector::multiply(a.data(), b.data(), n, a.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], half_mul(before[i], b[i])) << n;
    ASSERT_EQ(a[n], before[n]) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Host, HalfGemvTarget, testing::ValuesIn(vector_targets()),
                         systole::test::target_name);

TEST(HalfGemv, ProcessorsHalvesHaveTheBitsOfThePlainLoops) {
  if (!half_kernel_supported(HalfKernel::kFp16)) GTEST_SKIP() << "no AVX512-FP16 here";
  expect_bits_of_the_plain_loops(HalfKernel::kFp16);
}

TEST(HalfGemv, TakesTilesInEitherOrder) {
  std::mt19937_64 random(35);
  HalfGemvCase by_slice({1, 3, 4, 64, 16}, HalfPattern::kOrdinary, random);
  const std::vector<std::uint16_t> expected = bits_of(by_slice, HalfKernel::kPlain);
  // The same tiles with those of a K tile side by side.
  std::vector<Half> tiles(by_slice.tiles.size());
  HalfGemv args = by_slice.args();
  const std::size_t size = args.depth * args.lanes;
  for (std::size_t slice = 0; slice < args.slices; ++slice) {
    for (std::size_t k = 0; k < args.k_tiles; ++k) {
      const Half* from = half_detail::tile_of(args, slice, k);
      std::copy_n(from, size, tiles.data() + (k * args.slices + slice) * size);
    }
  }
  args.tiles = tiles.data();
  args.k_stride = args.slices;
  args.slice_stride = 1;
  half_gemv(args);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(by_slice.y[i].bits, expected[i]);
}

TEST(HalfGemv, RefusesWhatItCannotCompute) {
  std::mt19937_64 random(36);
  HalfGemvCase test({2, 1, 1, 64, 16}, HalfPattern::kOrdinary, random);
  const auto refused = [&](auto change) {
    HalfGemv args = test.args();
    change(args);
    EXPECT_THROW(half_gemv(args), std::invalid_argument);
  };
  refused([](HalfGemv& args) { args.depth = 1; });
  refused([](HalfGemv& args) { args.depth = 48; });
  refused([](HalfGemv& args) { args.depth = 256; });
  refused([](HalfGemv& args) { args.lanes = 0; });
  refused([](HalfGemv& args) { args.k_tiles = 0; });
  refused([](HalfGemv& args) { args.x_pitch = 63; });
  refused([](HalfGemv& args) { args.y_pitch = 15; });
}

/// By the definition: passes through the tree until one element is left.
Half sum_by_passes(std::vector<Half> x, std::size_t width) {
  if (x.empty()) return kHalfZero;
  std::vector<Half> sums;
  x.resize((x.size() + width - 1) / width * width, kHalfZero);
  for (std::size_t i = 0; i < x.size(); i += width) sums.push_back(half_tree(&x[i], width));
  return sums.size() == 1 ? sums.front() : sum_by_passes(sums, width);
}

TEST(HalfVector, AccumulatesInPassesThroughTheTree) {
  std::mt19937_64 random(37);
  for (const std::size_t width : {2, 16, 64, 128}) {
    for (std::size_t n = 0; n < 300; n += 1 + random() % 40) {
      std::vector<Half> x(n);
      for (Half& value : x) value = systole::test::half_of(HalfPattern::kOrdinary, random);
      ASSERT_EQ(half_vector::accumulate(x.data(), n, width), sum_by_passes(x, width))
          << n << ' ' << width;
    }
  }
  const Half x{0x3c00};
  EXPECT_THROW((void)half_vector::accumulate(&x, 1, 1), std::invalid_argument);
  EXPECT_THROW((void)half_vector::accumulate(&x, 1, 48), std::invalid_argument);
  EXPECT_THROW((void)half_vector::accumulate(&x, 1, 256), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw
