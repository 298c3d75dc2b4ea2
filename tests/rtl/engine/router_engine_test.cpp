#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/engine/engines.h"
#include "tests/rtl/ring/router_case.h"

namespace systole::testbench {
namespace {

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
