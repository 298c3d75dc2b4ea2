/// rtl/core/systole_load_path.sv against the contracts of dispatch and of reading ports together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "testbench/rtl/core/load_path_rtl.h"
#include "tests/rtl/core/load_path_case.h"

namespace systole::testbench {
namespace {

const RtlOptions kLoadPathChecks{true, "", 6};

TEST(LoadPath, RunsRandomProgramsInTheCyclesOfTheContracts) {
  const auto path = make_load_path(kLoadPathChecks);
  hw::test::Random random(23);
  RtlCounts counts;
  std::uint64_t waits = 0, full = 0, sums = 0, requests = 0;
  for (int i = 0; i < 120; ++i) {
    const RandomLoadPath test(random, 60);
    check_load_path(
        *path, test.test(), [&] { return test.answers().memory(); }, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "program " << i;
    const LoadPathRun run = model_load_path(test.test(), test.answers().memory());
    requests += run.requests.size();
    sums += run.sums_written.size();
    for (std::size_t c = 0; c < run.dispatch.size(); ++c) {
      const bool load = run.loads[c].completed != 0;
      waits += load && run.dispatch[c].started > run.dispatch[c].dispatched ? 1 : 0;
      full += load && run.dispatch[c].dispatched > test.items()[c].arrival + 1 ? 1 : 0;
    }
  }
  EXPECT_GT(counts.operations, 3'000U);
  EXPECT_GT(requests, 10'000U);
  EXPECT_GT(waits, 300U) << "loads that wait for a hazard or for the port";
  EXPECT_GT(full, 300U) << "loads that wait for their dispatch";
  EXPECT_GT(sums, 1'000U);
}

// A load that a waiting matmul reads: it may start with the cycle with which the load is complete.
TEST(LoadPath, AReaderStartsWithTheCycleInWhichTheLastByteIsWritten) {
  const auto path = make_load_path(kLoadPathChecks);
  hw::Program program;
  program.commands = {load_of(64, 16, 0), matmul_of(0, 256)};
  const std::vector<LoadPathItem> items(2, LoadPathItem{0, 5, 5, 5});
  const std::vector<std::uint8_t> bytes(1024, 7);
  const ReadAnswers answers{LoadPathRtl::kBeatBytes, 10, 10, 0, 1};
  const LoadPathRun run = path->run({program, items, bytes}, answers.memory(), nullptr);
  EXPECT_EQ(run.loads[0].started, 1U) << "it is in its station with cycle 1";
  EXPECT_EQ(run.requests.at(0).issued, 1U) << "and its first request leaves then";
  EXPECT_EQ(run.loads[0].completed, 1U + 10 + 4) << "four beats, the first after ten cycles";
  EXPECT_EQ(run.dispatch[1].started, run.loads[0].completed);
}

TEST(LoadPath, RefusesWhatItsLoadUnitDoesNot) {
  const auto path = make_load_path(kLoadPathChecks);
  hw::Program program;
  program.commands = {load_of(64, 16, 0)};
  program.commands[0].as<hw::cmd::Load>()->m = 32;
  program.commands[0].as<hw::cmd::Load>()->format = hw::WeightFormat::kGroups;
  const std::vector<LoadPathItem> items(1);
  const std::vector<std::uint8_t> bytes(1024);
  const ReadAnswers answers{LoadPathRtl::kBeatBytes, 1, 1, 0, 1};
  EXPECT_THROW((void)path->run({program, items, bytes}, answers.memory(), nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace systole::testbench
