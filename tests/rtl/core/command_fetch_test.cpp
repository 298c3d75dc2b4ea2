/// rtl/core/systole_command_fetch.sv against hw::FetchSchedule.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "testbench/rtl/core/command_fetch_rtl.h"
#include "tests/rtl/core/fetch_case.h"

namespace systole::testbench {
namespace {

const RtlOptions kFetchChecks{true, "", 8};

TEST(CommandFetch, BringsRandomProgramsInTheCyclesOfTheContract) {
  const auto fetch = make_command_fetch(kFetchChecks);
  hw::test::Random random(31);
  RtlCounts counts;
  std::uint64_t late = 0, held = 0;
  for (int i = 0; i < 300; ++i) {
    const RandomFetch test(random);
    check_command_fetch(
        *fetch, test.test(), [&] { return test.answers().memory(); }, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
    const FetchRun run = model_command_fetch(test.test(), test.answers().memory());
    for (std::size_t c = 1; c < run.arrivals.size(); ++c) {
      const bool waited = run.arrivals[c] > run.arrivals[c - 1] + test.test().waits[c - 1] + 1;
      late += waited ? 1 : 0;
      held += waited ? 0 : 1;
    }
  }
  EXPECT_GT(counts.operations, 4'000U);
  EXPECT_GT(late, 300U) << "commands that are waited for";
  EXPECT_GT(held, 1'000U);
}

TEST(CommandFetch, SaysThatItIsNoProgram) {
  const auto fetch = make_command_fetch(kFetchChecks);
  hw::test::Random random(3);
  for (const std::size_t byte : {0U, 7U, 8U, 11U}) {
    RandomFetch test(random);
    test.byte(byte) ^= 1;
    EXPECT_TRUE(fetch->run(test.test(), test.answers().memory(), nullptr).fault) << byte;
  }
  RandomFetch empty(random);
  for (std::size_t byte = 12; byte < 16; ++byte) empty.byte(byte) = 0;
  EXPECT_TRUE(fetch->run(empty.test(), empty.answers().memory(), nullptr).fault) << "no commands";
  const RandomFetch program(random);
  EXPECT_FALSE(fetch->run(program.test(), program.answers().memory(), nullptr).fault);
  EXPECT_FALSE(fetch->failed());
}

}  // namespace
}  // namespace systole::testbench
