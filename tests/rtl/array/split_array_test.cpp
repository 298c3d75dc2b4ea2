// rtl/array/systole_split_array.sv against hw/kernel/gemm.h, bit by bit, and hw/array/array.h,
// every cycle, with int8 and with int4 weights, and of int4 activations by these.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vsplit_array_4_checked.h"
#include "Vsplit_array_4x2_checked.h"
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

struct SplitSize {
  std::uint32_t dim;
  hw::ArraySplit split;
};

hw::Machine::Array split_array_of(const SplitSize& size, hw::ArrayOverlap overlap) {
  hw::Machine::Array array;
  array.rows = array.cols = size.dim;
  array.overlap = overlap;
  array.split = size.split;
  return array;
}

class SplitArray : public ::testing::TestWithParam<SplitSize> {
 protected:
  static std::uint32_t dim() { return GetParam().dim; }
  static bool multiplies_int4() { return GetParam().split == hw::ArraySplit::kBoth; }
  static hw::Machine::Array array(hw::ArrayOverlap overlap) {
    return split_array_of(GetParam(), overlap);
  }
  static std::unique_ptr<SystolicArrayRtl> build(hw::ArrayOverlap overlap) {
    return make_split_array(dim(), GetParam().split, overlap, {true, {}, 7});
  }
  /// Widths that the multipliers know, all as often.
  static std::vector<hw::Int4Operands> widths() {
    std::vector<hw::Int4Operands> all{{false, false}, {false, true}};
    if (multiplies_int4()) all.push_back({true, true});
    return all;
  }
  static hw::Int4Operands random_widths(Random& random) {
    const std::vector<hw::Int4Operands> all = widths();
    return all[random() % all.size()];
  }
};

TEST_P(SplitArray, MultipliesRandomMatricesExactly) {
  Random random(21);
  for (const hw::ArrayOverlap overlap : kOverlaps) {
    const auto rtl = build(overlap);
    for (std::uint64_t sums = 0; sums < 20'000;) {
      Product product(1 + random() % 40, 1 + random() % 40, 1 + random() % (9 * dim()), random,
                      random_widths(random));
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
  const auto rtl = build(hw::ArrayOverlap::kFull);
  for (int byte = 0; byte < 256; ++byte) {
    for (const hw::Int4Operands int4 : widths()) {
      // Whole pairs, as every byte is one, and most of the 65,536 pairs of bytes.
      Product product(int4.a ? 64 : 4, dim(), int4.macs() * dim() + (int4.a ? 2 : 1), random, int4);
      std::memset(product.b.data(), byte, product.b.size());
      for (auto& value : product.a) {
        value = static_cast<std::int8_t>(int4.a ? random() : kEnds[random() % 4]);
      }
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
    const auto rtl = build(overlap);
    for (int i = 0; i < 300; ++i) {
      hw::GemmArgs args;
      args.m = 1 + random() % (2 * dim());
      args.n = 1 + random() % (2 * dim());
      args.k = 1 + random() % (9 * dim());
      const hw::Int4Operands int4 = random_widths(random);
      args.a_int4 = int4.a;
      args.b_int4 = int4.b;
      const bool preloaded = random() % 2 != 0;
      const BackPressure pressure = i % 3 == 0 ? random_pressure(random) : BackPressure{};
      expect_contract(hw::array_cycles(array(overlap), args.m, args.n,
                                       hw::array_steps(args.k, int4), preloaded),
                      rtl->matmul(args, preloaded, pressure));
      if (HasFailure()) FAIL() << text_of(args);
    }
    EXPECT_FALSE(rtl->failed());
  }
}

TEST_P(SplitArray, FastBuildInAnEngineIsComparedAndCounted) {
  Random random(24);
  RtlReport report;
  const auto engine = make_array_engine(array(hw::ArrayOverlap::kFull), {}, report);
  for (int i = 0; i < 40; ++i) {
    Product product(1 + random() % 60, 1 + random() % 40, 1 + random() % 90, random,
                    random_widths(random));
    const std::vector<std::int32_t> expected = product.expected();
    product.args.c = product.c.data();
    (void)engine->matmul(product.args, false);
    EXPECT_EQ(product.c, expected) << text_of(product.args);
  }
  EXPECT_EQ(report["systolic_array"].operations, 40U);
  EXPECT_EQ(report["systolic_array"].mismatches, 0U);
}

constexpr auto kWeightsAlone = hw::ArraySplit::kWeights, kOfBoth = hw::ArraySplit::kBoth;
INSTANTIATE_TEST_SUITE_P(Sizes, SplitArray,
                         ::testing::Values(SplitSize{4, kWeightsAlone},
                                           SplitSize{16, kWeightsAlone}, SplitSize{4, kOfBoth},
                                           SplitSize{16, kOfBoth}),
                         [](const auto& tested) {
                           return std::to_string(tested.param.dim) +
                                  (tested.param.split == kOfBoth ? "Both" : "Weights");
                         });

/// A fold of four rows of weights, two bytes of each column, and rows of eight bytes of
/// activations: int8 by int8 of the first bytes, by pairs of int4, or of pairs of int4 by these.
struct WidthFold {
  unsigned macs;
  std::array<std::array<std::int8_t, 8>, 4> weights;
  std::vector<std::array<std::int8_t, 8>> acts;

  static int half(std::int8_t byte, unsigned which) {
    const int code = static_cast<std::uint8_t>(byte) / (which == 0 ? 1 : 16) % 16;
    return code < 8 ? code : code - 16;
  }
  [[nodiscard]] std::int32_t sum(std::size_t row, std::size_t col) const {
    std::int32_t sum = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      const std::int8_t w = weights[r][col], second = weights[r][4 + col];
      const std::int8_t a = acts[row][r], odd = acts[row][4 + r];
      if (macs == 1) sum += a * w;
      if (macs == 2) sum += a * half(w, 0) + odd * half(w, 1);
      for (unsigned which = 0; macs == 4 && which < 2; ++which) {
        sum += half(a, which) * half(w, which) + half(odd, which) * half(second, which);
      }
    }
    return sum;
  }
};

/// Sends folds of random widths, of the first `kWidths` of them, one right after the other, and
/// compares every sum. `stalls`: beats come late and sums are refused.
template <typename Model, unsigned kWidths>
void send_folds_of_all_widths(std::uint64_t seed, bool stalls) {
  Random random(seed);
  VerilatedDut<Model> dut({true, {}, 3});
  dut->overlap_i = 2;
  dut->a_unsigned_i = 0;
  idle_inputs(*dut);
  std::vector<WidthFold> folds(200);
  for (WidthFold& fold : folds) {
    fold.macs = 1U << random() % kWidths;
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
      std::memcpy(&dut->weight_i, folds[weight.fold].weights[3 - weight.beat].data(),
                  sizeof dut->weight_i);
    }
    if (act_offered) {
      const WidthFold& fold = folds[act.fold];
      std::memcpy(&dut->act_i, fold.acts[act.beat].data(), 8);
      dut->act_last_i = act.beat + 1 == fold.acts.size();
      dut->b_int4_i = fold.macs != 1;
      dut->a_int4_i = fold.macs == 4;
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
TEST(SplitArrayWidths, OfWeightsChangeFromFoldToFoldWithoutABubble) {
  send_folds_of_all_widths<Vsplit_array_4_checked, 2>(25, false);
}
TEST(SplitArrayWidths, OfWeightsChangeWhileTheArrayStalls) {
  send_folds_of_all_widths<Vsplit_array_4_checked, 2>(26, true);
}
TEST(SplitArrayWidths, OfBothChangeFromFoldToFoldWithoutABubble) {
  send_folds_of_all_widths<Vsplit_array_4x2_checked, 3>(27, false);
}
TEST(SplitArrayWidths, OfBothChangeWhileTheArrayStalls) {
  send_folds_of_all_widths<Vsplit_array_4x2_checked, 3>(28, true);
}

TEST(SplitArrayBuilds, AreNamedIfOneIsMissing) {
  EXPECT_THROW((void)make_split_array(8, kOfBoth, hw::ArrayOverlap::kFull), hw::InputError);
  RtlReport report;
  hw::Machine::Array array = split_array_of({4, kOfBoth}, hw::ArrayOverlap::kFull);
  array.dataflow = hw::Dataflow::kOutputStationary;
  EXPECT_THROW((void)make_array_engine(array, {}, report), hw::InputError);
  const auto whole = make_systolic_array(4, hw::ArrayOverlap::kFull);
  Random random(26);
  Product product(3, 5, 7, random, {false, true});
  EXPECT_THROW((void)whole->matmul(product.args, false), std::invalid_argument);
  Product narrow(3, 5, 7, random, {true, true});
  const auto halves = make_split_array(4, kWeightsAlone, hw::ArrayOverlap::kFull);
  EXPECT_THROW((void)halves->matmul(narrow.args, false), std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
