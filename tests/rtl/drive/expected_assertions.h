#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

namespace systole::testbench {

/// Assertions of the RTL that a test provokes. While this exists it keeps what Verilator prints; at
/// its end each of `names` must have fired at least once, and no other assertion: both are failures
/// of the test. It prints what was not expected, so that the output of a run that passes has no
/// errors in it.
class ExpectedAssertions {
 public:
  explicit ExpectedAssertions(std::set<std::string> names);
  ExpectedAssertions(const ExpectedAssertions&) = delete;
  ExpectedAssertions& operator=(const ExpectedAssertions&) = delete;
  ~ExpectedAssertions();

 private:
  const std::set<std::string> names_;
  std::FILE* const kept_;  ///< in place of standard output
  const int output_;       ///< standard output as it was
};

/// Expects that a block holds for `cycles` cycles with the pins as they are, and that `change()`
/// makes assertion `name` fire within two more.
template <typename Dut, typename Change>
void expect_assertion(const char* name, Dut& dut, int cycles, Change change) {
  const ExpectedAssertions expected({name});
  for (int i = 0; i < cycles; ++i) dut.tick();
  EXPECT_FALSE(dut.failed()) << "what is held is legal";
  change();
  for (int i = 0; i < 2; ++i) dut.tick();
  EXPECT_TRUE(dut.failed());
}

}  // namespace systole::testbench
