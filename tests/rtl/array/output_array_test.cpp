// rtl/array/systole_output_array.sv against hw/kernel/gemm.h, bit by bit, and hw/array/array.h,
// every cycle.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "Voutput_array_4x4_checked.h"
#include "base/error.h"
#include "hw/array/array.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/array/product_case.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

struct ArraySize {
  std::uint32_t rows, cols;
};

hw::Machine::Array output_array(ArraySize size, hw::ArrayOverlap overlap) {
  hw::Machine::Array array;
  array.rows = size.rows;
  array.cols = size.cols;
  array.dataflow = hw::Dataflow::kOutputStationary;
  array.overlap = overlap;
  return array;
}

class OutputArray : public ::testing::TestWithParam<ArraySize> {
 protected:
  static std::unique_ptr<SystolicArrayRtl> make(hw::ArrayOverlap overlap) {
    return make_output_array(GetParam().rows, GetParam().cols, overlap, {true, {}, 7});
  }
  /// Up to three tiles and a bit, around multiples of the tile more often.
  static std::size_t size(Random& random, std::size_t tile) {
    if (random() % 2 != 0) return 1 + random() % (3 * tile);
    return tile * (1 + random() % 3) + random() % 3 - 1;
  }
  static Product product(Random& random) {
    const std::size_t k = random() % 3 == 0 ? 1 + random() % 8 : 1 + random() % 90;
    return {size(random, GetParam().rows), size(random, GetParam().cols), k, random};
  }
};

// Values and cycles, each command as it follows the one before.
TEST_P(OutputArray, MultipliesRandomMatricesInTheCyclesOfTheContract) {
  Random random(11);
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    const auto rtl = make(overlap);
    const hw::Machine::Array array = output_array(GetParam(), overlap);
    std::uint64_t stalled = 0;
    const int count = GetParam().rows > 16 ? 60 : 1200;
    for (int i = 0; i < count; ++i) {
      Product test = product(random);
      const std::vector<std::int32_t> expected = test.expected();
      test.args.c = test.c.data();
      const bool slow = i % 3 == 0;
      const auto run = rtl->matmul(test.args, random() % 2 != 0,
                                   slow ? random_pressure(random) : BackPressure{});
      ASSERT_EQ(test.c, expected) << text_of(test.args);
      expect_contract(hw::array_cycles(array, test.args.m, test.args.n, test.args.k, false), run);
      if (!slow) EXPECT_EQ(run.stalled, 0U);
      stalled += run.stalled;
      if (HasFailure()) FAIL() << text_of(test.args) << ", overlap " << static_cast<int>(overlap);
    }
    EXPECT_GT(stalled, 10U * static_cast<unsigned>(count)) << "the back-pressure had no effect";
    EXPECT_FALSE(rtl->failed());
  }
}

TEST_P(OutputArray, MultipliesTheExtremesExactly) {
  Random random(13);
  const auto rtl = make(hw::ArrayOverlap::kFull);
  for (const bool a_unsigned : {false, true}) {
    for (const int weight : {-128, -1, 0, 127}) {
      for (const int activation : {-128, -1, 0, 127}) {
        Product test(GetParam().rows + 1, GetParam().cols + 1, 70, random);
        test.args.a_unsigned = a_unsigned;
        std::memset(test.a.data(), activation, test.a.size());
        std::memset(test.b.data(), weight, test.b.size());
        const std::vector<std::int32_t> expected = test.expected();
        test.args.c = test.c.data();
        (void)rtl->matmul(test.args, false);
        ASSERT_EQ(test.c, expected) << weight << " x " << activation;
      }
    }
  }
  EXPECT_FALSE(rtl->failed());
}

TEST_P(OutputArray, LeavesAProductWithoutFoldsAlone) {
  Random random(14);
  const auto rtl = make(hw::ArrayOverlap::kFull);
  for (int i = 0; i < 20; ++i) {
    Product test(i % 3, i % 4, i % 3 == 0 || i % 4 == 0 ? 5 : 0, random);
    const std::vector<std::int32_t> expected = test.expected();
    test.args.c = test.c.data();
    EXPECT_EQ(rtl->matmul(test.args, false).cycles, 0U);
    EXPECT_EQ(test.c, expected) << text_of(test.args);
  }
}

TEST_P(OutputArray, InAnEngineIsComparedAndCounted) {
  Random random(17);
  RtlReport report;
  const auto engine =
      make_array_engine(output_array(GetParam(), hw::ArrayOverlap::kPreload), {}, report);
  for (int i = 0; i < 20; ++i) {
    Product test = product(random);
    const std::vector<std::int32_t> expected = test.expected();
    const hw::ArrayCycles timed = engine->matmul(test.args, false);  // no C: cycles alone
    test.args.c = test.c.data();
    const hw::ArrayCycles cycles = engine->matmul(test.args, false);
    EXPECT_EQ(test.c, expected);
    EXPECT_EQ(timed.interval, cycles.interval);
    EXPECT_EQ(timed.latency, cycles.latency);
  }
  EXPECT_EQ(report["systolic_array"].operations, 40U);
  EXPECT_EQ(report["systolic_array"].mismatches, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, OutputArray,
                         ::testing::Values(ArraySize{3, 5}, ArraySize{4, 4}, ArraySize{64, 8}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.rows) + "x" +
                                  std::to_string(tested.param.cols);
                         });

TEST(OutputArrayBuilds, AreNamedIfOneIsMissing) {
  RtlReport report;
  try {
    (void)make_array_engine(output_array({8, 8}, hw::ArrayOverlap::kFull), {}, report);
    FAIL();
  } catch (const hw::InputError& error) {
    EXPECT_STREQ(error.what(),
                 "systolic_array RTL: output-stationary, 8 x 8, expected 3 x 5, 4 x 4 or 64 x 8");
  }
}

class OutputArrayProtocol : public ::testing::Test {
 protected:
  OutputArrayProtocol() : dut({true, {}, 3}) {
    dut->overlap_i = 2;
    dut->a_unsigned_i = 0;
    dut->valid_i = dut->pending_i = dut->last_i = 0;
    dut->result_ready_i = 1;
  }

  VerilatedDut<Voutput_array_4x4_checked> dut;
};

TEST_F(OutputArrayProtocol, AssertsThatOperandsAreHeld) {
  dut->result_ready_i = 0;
  dut->valid_i = 1;
  dut->last_i = 1;
  for (int i = 0; i < 20; ++i) dut.tick();  // two folds, and the first one's sums are refused
  expect_assertion("OperandsHeld_A", dut, 2, [this] { dut->weight_i = 0x01020304; });
}

TEST_F(OutputArrayProtocol, AssertsThatTheOverlapIsKnown) {
  expect_assertion("OverlapKnown_A", dut, 0, [this] { dut->overlap_i = 3; });
}

// Without `pending` the array does not wait for beats, and sums of a fold with gaps are the same.
TEST_F(OutputArrayProtocol, GoesOnWithoutBeatsIfNothingIsPending) {
  int results = 0;
  for (int cycle = 0; cycle < 40; ++cycle) {
    dut->valid_i = cycle % 3 == 0 && cycle < 12;
    dut->act_i = 0x04030201;
    dut->weight_i = 0x01010101;
    dut->last_i = cycle == 9;
    dut.settle();
    EXPECT_FALSE(dut->stalled_o);
    if (dut->result_valid_o) {
      EXPECT_EQ(cycle, 10 + 4 + 3 + results) << "2 R + C + T - 2 with a T of 10";
      EXPECT_EQ(dut->result_o[3], 4U * static_cast<unsigned>(4 - results));
      ++results;
    }
    dut.tick();
  }
  EXPECT_EQ(results, 4);
  EXPECT_FALSE(dut.failed());
}

// The consumer takes a row once, also if the array stalls for its inputs meanwhile.
TEST_F(OutputArrayProtocol, HandsOutARowOnceWhileItWaitsForInputs) {
  dut->valid_i = 1;
  dut->last_i = 1;
  dut.tick();
  dut->valid_i = 0;
  for (int i = 0; i < 7; ++i) dut.tick();  // to the cycle of the first row
  dut->pending_i = 1;
  int results = 0;
  for (int cycle = 0; cycle < 10; ++cycle) {
    dut.settle();
    EXPECT_TRUE(dut->stalled_o);
    results += dut->result_valid_o;
    dut.tick();
  }
  EXPECT_EQ(results, 1);
  EXPECT_FALSE(dut.failed());
}

}  // namespace
}  // namespace systole::testbench
