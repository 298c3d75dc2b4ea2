#include <gtest/gtest.h>

#include <vector>

#include "support/program/bad_input.h"

namespace systole::testbench {
namespace {

/// What refusals.txt lists.
std::vector<BadInput> refusals() {
  std::vector<BadInput> all;
  for (const Words& columns : rows_of("tests/testbench/cli/refusals.txt")) {
    all.push_back(bad_input_of(columns));
  }
  return all;
}

class Refusal : public testing::TestWithParam<BadInput> {};

TEST_P(Refusal, IsOneLine) { expect_refused(GetParam(), TempDirectory()); }

INSTANTIATE_TEST_SUITE_P(Refusals, Refusal, testing::ValuesIn(refusals()),
                         [](const auto& test) { return test.param.name; });

TEST(BadOutput, FullStandardOutputIsAnError) {
  const ProgramRun result = run_systole({"machine"}, ".", {}, "/dev/full");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "systole: standard output: cannot be written\n");
}

}  // namespace
}  // namespace systole::testbench
