#include "tests/rtl/drive/expected_assertions.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "Vi_sqrt_64_checked.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

/// A number that waits and is withdrawn: `InputHeld_A` fires.
void withdraw_a_number() {
  VerilatedDut<Vi_sqrt_64_checked> dut(RtlOptions{true, "", 3});
  dut->ready_i = 1;
  dut->radicand_i = 1;
  dut->valid_i = 1;
  for (int i = 0; i < 10; ++i) dut.tick();
  dut->valid_i = 0;
  for (int i = 0; i < 2; ++i) dut.tick();
}

void run_expecting(std::set<std::string> names, void (*test)()) {
  const ExpectedAssertions expected(std::move(names));
  test();
}

std::string last_output;  ///< what the last run printed

/// The messages of failures within `run_expecting`.
std::string failures_of(const std::set<std::string>& names, void (*test)()) {
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    testing::internal::CaptureStdout();
    run_expecting(names, test);
    last_output = testing::internal::GetCapturedStdout();
  }
  std::string messages;
  for (int i = 0; i < failures.size(); ++i) {
    messages += std::string(failures.GetTestPartResult(i).message()) + "\n";
  }
  return messages;
}

TEST(ExpectedAssertions, AreTakenWithoutAWord) {
  EXPECT_EQ(failures_of({"InputHeld_A"}, withdraw_a_number), "");
  EXPECT_EQ(last_output, "");
  EXPECT_EQ(failures_of({}, [] { std::puts("text of a test"); }), "");
  EXPECT_EQ(last_output, "text of a test\n");
}

TEST(ExpectedAssertions, HaveToFire) {
  EXPECT_EQ(failures_of({"InputHeld_A", "OutputHeld_A"}, withdraw_a_number),
            "Failed\nassertion OutputHeld_A did not fire\n");
  EXPECT_EQ(failures_of({"InputHeld_A"}, [] {}), "Failed\nassertion InputHeld_A did not fire\n");
}

TEST(ExpectedAssertions, LeaveOthersVisible) {
  EXPECT_EQ(failures_of({}, withdraw_a_number), "Failed\nunexpected assertion InputHeld_A\n");
  EXPECT_NE(last_output.find("%Error: "), std::string::npos) << last_output;
  EXPECT_NE(last_output.find("InputHeld_A"), std::string::npos) << last_output;
}

}  // namespace
}  // namespace systole::testbench
