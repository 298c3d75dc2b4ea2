// rtl/array/systole_systolic_array.sv against hw/kernel/gemm.h, bit by bit, and hw/array/array.h,
// every cycle.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/array/product_case.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kArraySizes[] = {4, 8, 16};
hw::Machine::Array array_of(std::uint32_t dim, hw::ArrayOverlap overlap) {
  hw::Machine::Array array;
  array.rows = dim;
  array.cols = dim;
  array.dataflow = hw::Dataflow::kWeightStationary;
  array.overlap = overlap;
  return array;
}

class SystolicArray : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static std::uint32_t dim() { return GetParam(); }
  static RtlOptions checked() { return {true, {}, 7}; }

  /// Sizes up to `most`, with those around multiples of the array's more often.
  static std::size_t size(Random& random, std::size_t most) {
    if (random() % 3 != 0) return 1 + random() % most;
    const std::size_t near = dim() * (1 + random() % 3) + random() % 3 - 1;
    return std::min(near, most);
  }
};

TEST_P(SystolicArray, MultipliesRandomMatricesExactly) {
  Random random(11);
  std::uint64_t sums = 0;
  std::vector<std::unique_ptr<SystolicArrayRtl>> rtls;
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    rtls.push_back(make_systolic_array(dim(), overlap, checked()));
  }
  while (sums < 100'000) {
    for (auto& rtl : rtls) {
      Product product(size(random, 60), size(random, 50), size(random, 70), random);
      const std::vector<std::int32_t> expected = product.expected();
      product.args.c = product.c.data();
      const bool slow = random() % 4 == 0;
      (void)rtl->matmul(product.args, random() % 2 != 0,
                        slow ? random_pressure(random) : BackPressure{});
      ASSERT_EQ(product.c, expected) << text_of(product.args);
      sums += product.args.m * product.args.n;
    }
  }
  for (const auto& rtl : rtls) EXPECT_FALSE(rtl->failed());
}

TEST_P(SystolicArray, FastBuildMultipliesAMillionRandomRowsExactly) {
  Random random(12);
  const auto rtl = make_systolic_array(dim(), hw::ArrayOverlap::kFull);
  std::uint64_t rows = 0;
  while (rows < 1'000'000) {
    Product product(1 + random() % 700, size(random, 80), size(random, 80), random);
    const std::vector<std::int32_t> expected = product.expected();
    product.args.c = product.c.data();
    const hw::ArrayCycles cycles = rtl->matmul(product.args, true).measured;
    ASSERT_EQ(product.c, expected) << text_of(product.args);
    rows += cycles.stream;
  }
}

TEST_P(SystolicArray, MultipliesTheExtremesExactly) {
  constexpr int kExtremes[] = {-128, -127, -1, 0, 1, 127};
  Random random(13);
  const auto rtl = make_systolic_array(dim(), hw::ArrayOverlap::kFull, checked());
  for (const bool a_unsigned : {false, true}) {
    for (const int weight : kExtremes) {
      for (const int activation : kExtremes) {
        Product product(dim() + 1, dim() + 1, 2 * dim() + 1, random);
        product.args.a_unsigned = a_unsigned;
        std::memset(product.a.data(), activation, product.a.size());
        std::memset(product.b.data(), weight, product.b.size());
        const std::vector<std::int32_t> expected = product.expected();
        product.args.c = product.c.data();
        (void)rtl->matmul(product.args, false);
        ASSERT_EQ(product.c, expected) << weight << " x " << activation << text_of(product.args);
      }
    }
  }
  EXPECT_FALSE(rtl->failed());
}

TEST_P(SystolicArray, LeavesAProductWithoutFoldsAlone) {
  Random random(14);
  const auto rtl = make_systolic_array(dim(), hw::ArrayOverlap::kFull, checked());
  for (int i = 0; i < 20; ++i) {
    Product product(i % 3, i % 4, i % 3 == 0 || i % 4 == 0 ? 5 : 0, random);
    const std::vector<std::int32_t> expected = product.expected();
    product.args.c = product.c.data();
    EXPECT_EQ(rtl->matmul(product.args, false).cycles, 0U);
    EXPECT_EQ(product.c, expected) << text_of(product.args);
  }
}

TEST_P(SystolicArray, TakesTheCyclesOfTheContract) {
  constexpr int kShapes = 1200;
  Random random(15);
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    const auto rtl = make_systolic_array(dim(), overlap, checked());
    std::uint64_t stalled = 0;
    for (int i = 0; i < kShapes; ++i) {
      hw::GemmArgs args;
      args.m = 1 + random() % (2 * dim());
      args.n = 1 + random() % (2 * dim());
      args.k = 1 + random() % (3 * dim());
      const bool preloaded = random() % 2 != 0;
      const BackPressure pressure = i % 3 == 0 ? random_pressure(random) : BackPressure{};
      const SystolicArrayRtl::Cycles run = rtl->matmul(args, preloaded, pressure);
      expect_contract(hw::array_cycles(array_of(dim(), overlap), args.m, args.n, args.k, preloaded),
                      run);
      if (i % 3 != 0) {
        EXPECT_EQ(run.stalled, 0U);
      }
      stalled += run.stalled;
      if (HasFailure()) {
        FAIL() << text_of(args) << (preloaded ? ", preloaded" : "") << ", overlap "
               << static_cast<int>(overlap) << ", input " << pressure.input_per_mille << ", output "
               << pressure.output_per_mille << ", seed " << pressure.seed;
      }
    }
    EXPECT_GT(stalled, 10U * kShapes) << "the back-pressure had no effect";
    EXPECT_FALSE(rtl->failed());
  }
}

TEST_P(SystolicArray, FastBuildInAnEngineIsComparedAndCounted) {
  Random random(17);
  RtlReport report;
  const auto engine = make_array_engine(array_of(dim(), hw::ArrayOverlap::kFull), {}, report);
  const RtlCounts& counts = report["systolic_array"];
  for (int i = 0; i < 20; ++i) {
    Product product(size(random, 40), size(random, 40), size(random, 40), random);
    const std::vector<std::int32_t> expected = product.expected();
    const hw::ArrayCycles timed = engine->matmul(product.args, false);  // no C: cycles alone
    product.args.c = product.c.data();
    const hw::ArrayCycles cycles = engine->matmul(product.args, false);
    EXPECT_EQ(product.c, expected);
    EXPECT_EQ(timed.interval, cycles.interval);
    EXPECT_EQ(timed.latency, cycles.latency);
  }
  EXPECT_EQ(counts.operations, 40U);
  EXPECT_GT(counts.cycles, 0U);
  EXPECT_EQ(counts.mismatches, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SystolicArray, ::testing::ValuesIn(kArraySizes),
                         [](const auto& tested) { return std::to_string(tested.param); });

TEST(SystolicArrayBuilds, AreNamedIfOneIsMissing) {
  try {
    const auto rtl = make_systolic_array(32, hw::ArrayOverlap::kFull);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_STREQ(error.what(), "systolic_array RTL: 32 x 32, expected 4 x 4, 8 x 8 or 16 x 16");
  }
  RtlReport report;
  hw::Machine::Array array = array_of(16, hw::ArrayOverlap::kFull);
  array.cols = 8;
  EXPECT_THROW((void)make_array_engine(array, {}, report), hw::InputError);
}

TEST(SystolicArrayBuilds, RefuseAPitchShorterThanItsRow) {
  Random random(18);
  const auto rtl = make_systolic_array(4, hw::ArrayOverlap::kFull);
  Product product(3, 5, 7, random);
  product.args.lda = 6;
  EXPECT_THROW((void)rtl->matmul(product.args, false), std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
