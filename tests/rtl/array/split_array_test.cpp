// rtl/array/systole_split_array.sv against hw/kernel/gemm.h, bit by bit, and hw/array/array.h,
// every cycle, with int8 and with int4 weights.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vsplit_array_4_checked.h"
#include "base/error.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/array_command.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/array/product_case.h"
#include "tests/rtl/drive/unit_test.h"

namespace systole::testbench {
namespace {

hw::Machine::Array split_array_of(std::uint32_t dim, hw::ArrayOverlap overlap) {
  hw::Machine::Array array;
  array.rows = array.cols = dim;
  array.overlap = overlap;
  array.split = hw::ArraySplit::kWeights;
  return array;
}

class SplitArray : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static std::uint32_t dim() { return GetParam(); }
  static RtlOptions checked() { return {true, {}, 7}; }
};

TEST_P(SplitArray, MultipliesRandomMatricesExactly) {
  Random random(21);
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    const auto rtl = make_split_array(dim(), overlap, checked());
    for (std::uint64_t sums = 0; sums < 20'000;) {
      Product product(1 + random() % 40, 1 + random() % 40, 1 + random() % (5 * dim()), random,
                      random() % 4 != 0);
      const std::vector<std::int32_t> expected = product.expected();
      product.args.c = product.c.data();
      (void)rtl->matmul(product.args, random() % 2 != 0,
                        random() % 4 == 0 ? random_pressure(random) : BackPressure{});
      ASSERT_EQ(product.c, expected) << text_of(product.args);
      sums += product.args.m * product.args.n;
    }
    EXPECT_FALSE(rtl->failed());
  }
}

// Every byte of weights by the activations at the ends of their range.
TEST_P(SplitArray, MultipliesEveryByteOfWeightsExactly) {
  constexpr int kEnds[] = {-128, -1, 0, 127};
  Random random(22);
  const auto rtl = make_split_array(dim(), hw::ArrayOverlap::kFull, checked());
  for (int byte = 0; byte < 256; ++byte) {
    for (const bool int4 : {false, true}) {
      Product product(4, dim(), 2 * dim() + 1, random, int4);
      std::memset(product.b.data(), byte, product.b.size());
      for (auto& value : product.a) value = static_cast<std::int8_t>(kEnds[random() % 4]);
      const std::vector<std::int32_t> expected = product.expected();
      product.args.c = product.c.data();
      (void)rtl->matmul(product.args, false);
      ASSERT_EQ(product.c, expected) << byte << ": " << text_of(product.args);
    }
  }
  EXPECT_FALSE(rtl->failed());
}

TEST_P(SplitArray, TakesTheCyclesOfTheContract) {
  Random random(23);
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    const auto rtl = make_split_array(dim(), overlap, checked());
    for (int i = 0; i < 300; ++i) {
      hw::GemmArgs args;
      args.m = 1 + random() % (2 * dim());
      args.n = 1 + random() % (2 * dim());
      args.k = 1 + random() % (5 * dim());
      args.b_int4 = random() % 3 != 0;
      const bool preloaded = random() % 2 != 0;
      const BackPressure pressure = i % 3 == 0 ? random_pressure(random) : BackPressure{};
      expect_contract(hw::array_cycles(split_array_of(dim(), overlap), args.m, args.n,
                                       hw::array_steps(args.k, args.b_int4), preloaded),
                      rtl->matmul(args, preloaded, pressure));
      if (HasFailure()) FAIL() << text_of(args);
    }
    EXPECT_FALSE(rtl->failed());
  }
}

TEST_P(SplitArray, FastBuildInAnEngineIsComparedAndCounted) {
  Random random(24);
  RtlReport report;
  const auto engine = make_array_engine(split_array_of(dim(), hw::ArrayOverlap::kFull), {}, report);
  for (int i = 0; i < 40; ++i) {
    Product product(1 + random() % 60, 1 + random() % 40, 1 + random() % 90, random, i % 2 != 0);
    const std::vector<std::int32_t> expected = product.expected();
    product.args.c = product.c.data();
    (void)engine->matmul(product.args, false);
    EXPECT_EQ(product.c, expected) << text_of(product.args);
  }
  EXPECT_EQ(report["systolic_array"].operations, 40U);
  EXPECT_EQ(report["systolic_array"].mismatches, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SplitArray, ::testing::Values(4, 16),
                         [](const auto& tested) { return std::to_string(tested.param); });

/// A fold of four rows of weights: bytes, which are pairs or not, and rows of eight activations.
struct WidthFold {
  bool int4;
  std::array<std::array<std::int8_t, 4>, 4> weights;
  std::vector<std::array<std::int8_t, 8>> acts;

  [[nodiscard]] std::int32_t sum(std::size_t row, std::size_t col) const {
    std::int32_t sum = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      const int byte = static_cast<std::uint8_t>(weights[r][col]);
      const int low = byte % 16 < 8 ? byte % 16 : byte % 16 - 16;
      const int high = byte / 16 < 8 ? byte / 16 : byte / 16 - 16;
      sum += int4 ? acts[row][r] * low + acts[row][4 + r] * high : acts[row][r] * weights[r][col];
    }
    return sum;
  }
};

/// Sends folds of random widths, one right after the other, and compares every sum. `stalls`: beats
/// come late and sums are refused.
void send_folds_of_both_widths(std::uint64_t seed, bool stalls) {
  Random random(seed);
  VerilatedDut<Vsplit_array_4_checked> dut({true, {}, 3});
  dut->overlap_i = 2;
  dut->a_unsigned_i = 0;
  idle_inputs(*dut);
  std::vector<WidthFold> folds(200);
  for (WidthFold& fold : folds) {
    fold.int4 = random() % 2 != 0;
    for (auto& row : fold.weights) {
      for (auto& weight : row) weight = static_cast<std::int8_t>(random());
    }
    fold.acts.resize(4 + random() % 3);
    for (auto& row : fold.acts) {
      for (auto& act : row) act = static_cast<std::int8_t>(random());
    }
  }
  FoldPosition weight, act, result;
  bool weight_offered = false, act_offered = false;
  std::uint64_t first = 0, last = 0, rows = 0;
  for (std::uint64_t cycle = 0; result.fold < folds.size(); ++cycle) {
    ASSERT_LT(cycle, 20'000U);
    const auto comes = [&] { return !stalls || random() % 3 != 0; };
    dut->weight_pending_i = weight.fold < folds.size();
    dut->act_pending_i = act.fold < folds.size();
    weight_offered = dut->weight_pending_i && (weight_offered || comes());
    act_offered = dut->act_pending_i && (act_offered || comes());
    dut->weight_valid_i = weight_offered;
    dut->act_valid_i = act_offered;
    dut->result_ready_i = comes();
    if (weight_offered) {
      std::memcpy(&dut->weight_i, folds[weight.fold].weights[3 - weight.beat].data(), 4);
    }
    if (act_offered) {
      const WidthFold& fold = folds[act.fold];
      std::memcpy(&dut->act_i, fold.acts[act.beat].data(), 8);
      dut->act_last_i = act.beat + 1 == fold.acts.size();
      dut->b_int4_i = fold.int4;
    }
    dut.settle();
    if (dut->result_valid_o && dut->result_ready_i) {
      const WidthFold& fold = folds[result.fold];
      for (std::size_t c = 0; c < 4; ++c) {
        ASSERT_EQ(static_cast<std::int32_t>(dut->result_o[c]), fold.sum(result.beat, c));
      }
      result.step(fold.acts.size());
    }
    if (weight_offered && dut->weight_ready_o) {
      weight.step(4);
      weight_offered = false;
    }
    if (act_offered && dut->act_ready_o) {
      if (rows++ == 0) first = cycle;
      last = cycle;
      act.step(folds[act.fold].acts.size());
      act_offered = false;
    }
    dut.tick();
  }
  EXPECT_EQ(last - first + 1 == rows, !stalls) << "bubbles between folds";
  EXPECT_FALSE(dut.failed());
}

// The width goes along with the rows.
TEST(SplitArrayWidths, ChangeFromFoldToFoldWithoutABubble) { send_folds_of_both_widths(25, false); }
TEST(SplitArrayWidths, ChangeWhileTheArrayStalls) { send_folds_of_both_widths(26, true); }

TEST(SplitArrayBuilds, AreNamedIfOneIsMissing) {
  EXPECT_THROW((void)make_split_array(8, hw::ArrayOverlap::kFull), hw::InputError);
  RtlReport report;
  hw::Machine::Array array = split_array_of(4, hw::ArrayOverlap::kFull);
  array.dataflow = hw::Dataflow::kOutputStationary;
  EXPECT_THROW((void)make_array_engine(array, {}, report), hw::InputError);
  const auto whole = make_systolic_array(4, hw::ArrayOverlap::kFull);
  Random random(26);
  Product product(3, 5, 7, random, true);
  EXPECT_THROW((void)whole->matmul(product.args, false), std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
