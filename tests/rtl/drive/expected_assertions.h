#pragma once

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

}  // namespace systole::testbench
