#include "tlm/common/time.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

class ClockTest : public test::SystemCTest, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(ClockTest, EdgesDoNotDriftAndRoundUp) {
  const Clock clock(GetParam());
  const std::uint64_t second = std::uint64_t{GetParam()} * 1'000'000;  // cycles
  EXPECT_EQ(clock.edge_ps(0), 0U);
  EXPECT_EQ(clock.edge_ps(second), 1'000'000'000'000U);
  for (const std::uint64_t cycle : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
                                    std::uint64_t{7}, second - 1, second, second + 1}) {
    const std::uint64_t edge = clock.edge_ps(cycle);
    EXPECT_EQ(clock.cycle_from_ps(edge - 1), cycle) << "the next edge";
    EXPECT_EQ(clock.cycle_from_ps(edge), cycle);
    EXPECT_EQ(clock.cycle_from_ps(edge + 1), cycle + 1);
    EXPECT_EQ(to_ps(clock.edge(cycle)), edge);
    EXPECT_EQ(clock.cycle_from(from_ps(edge)), cycle);
  }
}

INSTANTIATE_TEST_SUITE_P(Mhz, ClockTest, testing::Values(1, 300, 600, 1000, 1333, 3000, 400'000));

class TimeTest : public test::SystemCTest {};

TEST_F(TimeTest, RefusesAClockThatCannotTick) {
  expect_report("/systole/time");
  EXPECT_THROW(Clock(0), sc_core::sc_report);
  EXPECT_THROW(Clock(1'000'001), sc_core::sc_report);
}

}  // namespace
}  // namespace systole::tlm_model
