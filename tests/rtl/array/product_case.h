#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "tests/rtl/drive/unit_test.h"

/// What the tests of the arrays have in common.
namespace systole::testbench {

using Random = std::mt19937_64;

inline constexpr hw::ArrayOverlap kOverlaps[] = {
    hw::ArrayOverlap::kNone, hw::ArrayOverlap::kPreload, hw::ArrayOverlap::kFull};

/// One product with its own operands. Pitches are longer than the rows; what lies between must
/// stay as it is.
struct Product {
  Product(std::size_t m, std::size_t n, std::size_t k, Random& random, hw::Int4Operands int4 = {}) {
    const std::size_t a_depth = int4.a ? hw::int4_pairs(k) : k;
    const std::size_t depth = int4.b ? hw::int4_pairs(k) : k;
    args.a_int4 = int4.a;
    args.b_int4 = int4.b;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_unsigned = random() % 2 != 0 && !int4.a;
    args.b_transposed = random() % 2 != 0;
    args.accumulate = random() % 2 != 0;
    args.lda = a_depth + random() % 3;
    args.ldb = (args.b_transposed ? depth : n) + random() % 3;
    args.ldc = n + random() % 3;
    a.resize(m * args.lda);
    b.resize((args.b_transposed ? n : depth) * args.ldb);
    c.resize(m * args.ldc);
    for (auto& value : a) value = static_cast<std::int8_t>(random());
    for (auto& value : b) value = static_cast<std::int8_t>(random());
    for (auto& value : c) value = random_word(random);
    // A pair that is not whole ends with a zero.
    for (std::size_t row = 0; int4.a && k % hw::kInt4Pair != 0 && row < m; ++row) {
      auto& last = a[row * args.lda + a_depth - 1];
      last = static_cast<std::int8_t>(last & 0xf);
    }
    args.a = a.data();
    args.b = b.data();
  }

  [[nodiscard]] std::vector<std::int32_t> expected() const {
    std::vector<std::int32_t> sums = c;
    hw::GemmArgs model = args;
    model.c = sums.data();
    hw::gemm(model, hw::GemmBackend::kReference);
    return sums;
  }

  hw::GemmArgs args;
  std::vector<std::int8_t> a, b;
  std::vector<std::int32_t> c;
};

inline std::string text_of(const hw::GemmArgs& args) {
  return std::to_string(args.m) + " x " + std::to_string(args.n) + " x " + std::to_string(args.k) +
         (args.b_int4 ? ", int4" : "") + (args.a_int4 ? " by int4" : "") +
         (args.a_unsigned ? ", unsigned" : "") + (args.b_transposed ? ", transposed" : "") +
         (args.accumulate ? ", accumulating" : "");
}

inline void expect_contract(const hw::ArrayCycles& contract, const SystolicArrayRtl::Cycles& run) {
  EXPECT_EQ(run.measured.folds, contract.folds);
  EXPECT_EQ(run.measured.interval, contract.interval);
  EXPECT_EQ(run.measured.latency, contract.latency);
  EXPECT_EQ(run.measured.stream, contract.stream);
  EXPECT_EQ(run.measured.preload, contract.preload);
  EXPECT_EQ(run.measured.drain, contract.drain);
  EXPECT_TRUE(run.meets(contract));
}

}  // namespace systole::testbench
