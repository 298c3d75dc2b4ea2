#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/ring/router_case.h"
#include "tests/support/half_gemv_case.h"

namespace systole::testbench {
namespace {

using hw::half_vector::Operation;

TEST(HalfEngines, ProductsRunLaneByLane) {
  std::mt19937_64 random(71);
  RtlReport report;
  hw::MatrixUnit unit;
  unit.partial_sums = 4;
  const auto engine = make_matrix_lane_engine(unit, {true, false, false}, {}, report);
  test::HalfGemvCase test({2, 2, 5, 64, 16}, test::HalfPattern::kOrdinary, random);
  hw::half_gemv(test.args());
  const std::vector<hw::Half> expected = test.y;
  test.y.assign(test.y.size(), hw::kHalfZero);
  engine->gemv(test.args());
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 5 * 16; ++column) {
      const std::size_t i = row * test.y_pitch() + column;
      ASSERT_EQ(test.y[i], expected[i]);
    }
  }
  const RtlCounts& counts = report.at("mpu_tree");
  EXPECT_EQ(counts.operations, 2 * 16U);
  EXPECT_EQ(counts.cycles, 2 * 16 * (11 + 4 + 11 + 1 + 83U));
  EXPECT_EQ(counts.mismatches, 0U);
}

TEST(HalfEngines, EachBlockDoesItsOwnOperations) {
  std::mt19937_64 random(72);
  std::vector<hw::Half> a(40);
  std::vector<hw::Half> b(40);
  for (hw::Half& x : a) x = test::random_half(random);
  for (hw::Half& x : b) x = test::random_half(random);
  for (const bool mul : {false, true}) {
    for (const bool add : {false, true}) {
      RtlReport report;
      const auto engine = make_half_vector_engine({false, mul, add}, {}, report);
      for (const Operation operation :
           {Operation::kAdd, Operation::kSubtract, Operation::kMultiply}) {
        std::vector<hw::Half> expected(40);
        std::vector<hw::Half> y(40);
        hw::half_vector::apply(operation, {a.data(), b.data(), true, 40, expected.data()});
        engine->apply(operation, {a.data(), b.data(), true, 40, y.data()});
        EXPECT_EQ(y, expected);
      }
      EXPECT_EQ(report.size(), (mul ? 1U : 0U) + (add ? 1U : 0U));
      EXPECT_EQ(report["fp16_mul"].operations, mul ? 1U : 0U);
      EXPECT_EQ(report["fp16_mul"].cycles, mul ? 3 + 6U : 0U);
      EXPECT_EQ(report["fp16_add"].operations, add ? 2U : 0U);
      EXPECT_EQ(report["fp16_add"].cycles, add ? 2 * (3 + 11U) : 0U);
      EXPECT_EQ(total_mismatches(report), 0U);
    }
  }
}

TEST(HalfEngines, ModelsAreNotCounted) {
  std::mt19937_64 random(73);
  RtlReport report;
  hw::MatrixUnit unit;
  unit.depth = 32;  // of which there is no RTL
  test::HalfGemvCase test({1, 2, 5, 32, 16}, test::HalfPattern::kOrdinary, random);
  make_matrix_lane_engine(unit, {}, {}, report)->gemv(test.args());
  EXPECT_TRUE(report.empty());
  EXPECT_THROW((void)make_matrix_lane_engine(unit, {true, false, false}, {}, report),
               hw::InputError);
}

TEST(RouterEngine, ModelAndRtlAgree) {
  std::mt19937_64 random(95);
  RtlReport report;
  const auto rtl = make_router_engine(true, 4, {}, report);
  const auto model = make_router_engine(false, 4, {}, report);
  std::uint64_t cycles = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::vector<hw::Half> values = random_part(1 + random() % 1000, random);
    const std::uint32_t hops = 1 + i % 3;
    const hw::RoutedPacket expected = model->route(values, i, hops, i % 2 == 0);
    const hw::RoutedPacket routed = rtl->route(values, i, hops, i % 2 == 0);
    EXPECT_EQ(routed.delivered, expected.delivered);
    EXPECT_EQ(routed.forwarded, expected.forwarded);
    EXPECT_EQ(routed.hops, expected.hops);
    EXPECT_EQ(routed.cycles, expected.cycles);
    cycles += expected.cycles;
  }
  EXPECT_EQ(report.at("ring_router").operations, 20U);
  EXPECT_EQ(report.at("ring_router").cycles, cycles);
  EXPECT_EQ(total_mismatches(report), 0U);
}

TEST(RouterEngine, CyclesOfAPacket) {
  RtlReport report;
  const auto model = make_router_engine(false, 4, {}, report);
  // The first flit in cycle 0, the last one in cycle 2, the first after the router in cycle 6.
  EXPECT_EQ(model->route(std::vector<hw::Half>(65), 0, 1, true).cycles, 7U);
  EXPECT_EQ(model->route(std::vector<hw::Half>(65), 0, 2, true).cycles, 9U);
  EXPECT_TRUE(report.empty());
}

TEST(RouterEngine, RtlRefusesWhatItIsNotBuiltFor) {
  RtlReport report;
  EXPECT_NO_THROW((void)make_router_engine(false, 5, {}, report));
  EXPECT_THROW((void)make_router_engine(true, 5, {}, report), hw::InputError);
  const auto rtl = make_router_engine(true, 4, {}, report);
  EXPECT_THROW((void)rtl->route(std::vector<hw::Half>(8193), 0, 1, true), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
