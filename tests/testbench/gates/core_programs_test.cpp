/// SYSTOLE_CORE_PROGRAMS says how many programs run in the core of 4 x 4, 300 if it is not set.
#include "tests/testbench/gates/core_programs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace systole::testbench {
namespace {

std::uint64_t programs_wanted() {
  const char* const wanted = std::getenv("SYSTOLE_CORE_PROGRAMS");
  return wanted == nullptr ? 300 : std::strtoull(wanted, nullptr, 10);
}

void expect_close(const CoreSize& size, const char* name, std::uint64_t programs, double equal,
                  double share) {
  RtlOptions options;
  options.checked = true;
  const ProgramsOff off = compare_programs(options, size, programs);
  off.print(name);
  EXPECT_GE(static_cast<double>(off.equal), equal * static_cast<double>(off.programs));
  EXPECT_LE(static_cast<double>(off.off), share * static_cast<double>(off.cycles));
}

// No byte differs; what cycles differ is said in docs/core-rtl.md.
TEST(CorePrograms, LeaveTheModelsBytesAndAreNearItsCycles) {
  expect_close(kTinyCore, "4x4", programs_wanted(), 0.99, 0.0005);
}
// Its gates are built without optimisation.
TEST(CorePrograms, DoSoInACoreOfAnotherSize) {
  expect_close(kCoreSizes[1], "8x8", programs_wanted() / 12, 0.95, 0.002);
}

}  // namespace
}  // namespace systole::testbench
