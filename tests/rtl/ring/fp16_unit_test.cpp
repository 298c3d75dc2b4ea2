#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "Vfp16_add_16_checked.h"
#include "Vfp16_mul_16_checked.h"
#include "hw/ring/half_vector.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/fp16_unit_rtl.h"
#include "tests/rtl/drive/expected_assertions.h"
#include "tests/rtl/drive/unit_test.h"
#include "tests/support/half_oracle.h"

namespace systole::testbench {
namespace {

using hw::Half;
using hw::half_vector::Operation;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class Fp16Unit : public testing::TestWithParam<Operation> {
 protected:
  /// Number of results that differ from those of the vector loops.
  std::size_t differences(Fp16UnitRtl& unit, const test::HalfPairs& pairs) {
    const std::size_t n = pairs.a.size();
    std::vector<Half> expected(n);
    std::vector<Half> actual(n);
    hw::half_vector::apply(GetParam(), {pairs.a.data(), pairs.b.data(), false, n, expected.data()});
    (void)unit.run(GetParam(), {pairs.a.data(), pairs.b.data(), false, n, actual.data()});
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += actual[i].bits != expected[i].bits ? 1 : 0;
    return count;
  }

  const std::unique_ptr<Fp16UnitRtl> unit_ =
      make_fp16_unit(block_of(GetParam()), RtlOptions{true, "", 7});
};

test::HalfPairs random_pairs(std::mt19937_64& random, std::size_t count) {
  test::HalfPairs pairs;
  pairs.a.resize(count);
  pairs.b.resize(count);
  for (std::vector<Half>* halves : {&pairs.a, &pairs.b}) {
    for (std::size_t i = 0; i + 4 <= count; i += 4) {
      const std::uint64_t bits = random();
      std::memcpy(&(*halves)[i], &bits, sizeof bits);
    }
  }
  return pairs;
}

TEST_P(Fp16Unit, MatchesIntegersInEveryCorner) {
  std::mt19937_64 random(41);
  const test::HalfPairs pairs = test::half_corner_pairs(random, 16);
  std::vector<Half> y(pairs.a.size());
  (void)unit_->run(GetParam(), {pairs.a.data(), pairs.b.data(), false, y.size(), y.data()});
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Half a = pairs.a[i];
    const Half b = pairs.b[i];
    const Half expected = GetParam() == Operation::kMultiply ? test::oracle_mul(a, b)
                          : GetParam() == Operation::kAdd    ? test::oracle_add(a, b)
                                                          : test::oracle_add(a, hw::half_negate(b));
    ASSERT_EQ(y[i].bits, expected.bits) << a.bits << ' ' << b.bits;
  }
  EXPECT_FALSE(unit_->failed());
}

TEST_P(Fp16Unit, MatchesTheReferenceOnRandomPairs) {
  std::mt19937_64 random(42);
  EXPECT_EQ(differences(*unit_, random_pairs(random, 1'000'000)), 0U);
  EXPECT_FALSE(unit_->failed());
}

TEST_P(Fp16Unit, FastBuildMatchesTheReferenceOnTenMillionPairs) {
  std::mt19937_64 random(43);
  const auto fast = make_fp16_unit(block_of(GetParam()));
  // A difference is a sum of another sign.
  const int millions = kSanitized || GetParam() == Operation::kSubtract ? 1 : 10;
  for (int i = 0; i < millions; ++i) {
    ASSERT_EQ(differences(*fast, random_pairs(random, 1'000'000)), 0U);
  }
}

TEST_P(Fp16Unit, KeepsValuesAndContractUnderBackPressure) {
  std::mt19937_64 random(44);
  const std::uint32_t depth = Fp16UnitRtl::depth(block_of(GetParam()));
  std::uint64_t stalled = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t n = 1 + random() % 100;
    std::vector<Half> a(n);
    std::vector<Half> b(n);
    for (Half& x : a) x = test::random_half(random);
    for (Half& x : b) x = test::random_half(random);
    const bool scalar = random() % 4 == 0;
    std::vector<Half> expected(n);
    hw::half_vector::apply(GetParam(), {a.data(), b.data(), scalar, n, expected.data()});
    const BackPressure pressure = i % 2 == 0 ? BackPressure{} : random_pressure(random);
    // In place.
    const RtlCycles cycles =
        unit_->run(GetParam(), {a.data(), b.data(), scalar, n, a.data()}, pressure);
    expect_contract(hw::half_vector::cycles(n, Fp16UnitRtl::kLanes, depth), cycles);
    stalled += cycles.stalled;
    ASSERT_EQ(a, expected);
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_GT(stalled, 2000U) << "the back-pressure had no effect";
  EXPECT_FALSE(unit_->failed());
}

INSTANTIATE_TEST_SUITE_P(Operations, Fp16Unit,
                         testing::Values(Operation::kMultiply, Operation::kAdd,
                                         Operation::kSubtract),
                         [](const auto& tested) {
                           return tested.param == Operation::kMultiply ? "Multiply"
                                  : tested.param == Operation::kAdd    ? "Add"
                                                                       : "Subtract";
                         });

template <typename Model>
void expect_held_beats(VerilatedDut<Model>& dut) {
  dut->mask_i = 1;
  dut->ready_i = 0;
  dut->valid_i = 1;
  expect_assertion("InputDataHeld_A", dut, 20, [&] { dut->a_i[0] = 1; });
}

TEST(Fp16UnitProtocol, AssertionFiresWhenAFactorChanges) {
  VerilatedDut<Vfp16_mul_16_checked> dut(RtlOptions{true, "", 3});
  expect_held_beats(dut);
}

TEST(Fp16UnitProtocol, AssertionFiresWhenAnAddendChanges) {
  VerilatedDut<Vfp16_add_16_checked> dut(RtlOptions{true, "", 3});
  expect_held_beats(dut);
}

}  // namespace
}  // namespace systole::testbench
