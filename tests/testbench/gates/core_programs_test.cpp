/// SYSTOLE_CORE_PROGRAMS says how many programs run in the core of 4 x 4, 300 if it is not set.
#include "tests/testbench/gates/core_programs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace systole::testbench {
namespace {

std::uint64_t programs_wanted() {
  const char* const wanted = std::getenv("SYSTOLE_CORE_PROGRAMS");
  return wanted == nullptr ? 300 : std::strtoull(wanted, nullptr, 10);
}

void expect_equal(const CoreSize& size, const char* name, std::uint64_t programs,
                  const std::vector<std::uint64_t>& found) {
  RtlOptions options;
  options.checked = true;
  const ProgramsOff off = compare_programs(options, size, programs, found);
  off.print(name);
  EXPECT_EQ(off.equal, off.programs);
  EXPECT_EQ(off.worst, 0U);
}

// No byte and no cycle differs.
TEST(CorePrograms, LeaveTheModelsBytesInItsCycles) {
  expect_equal(kTinyCore, "4x4", programs_wanted(), {363, 701, 927, 1073, 1334});
}
// Its gates are built without optimisation.
TEST(CorePrograms, DoSoInACoreOfAnotherSize) {
  expect_equal(kCoreSizes[1], "8x8", programs_wanted() / 12, {78});
}

}  // namespace
}  // namespace systole::testbench
