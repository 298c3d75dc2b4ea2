/// The table in rtl/store/systole_exp_constants.sv against hw/number/int_exp.h. SYSTOLE_RTL:
/// another folder of RTL, whose mutants script/mutate_rtl tries.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>

#include "hw/number/int_exp.h"
#include "support/paths.h"

namespace systole::testbench {
namespace {

TEST(ExpConstants, AreThoseOfTheModel) {
  const char* const rtl = std::getenv("SYSTOLE_RTL");
  std::ifstream file((rtl == nullptr ? source_path("rtl") : std::string(rtl)) +
                     "/store/systole_exp_constants.sv");
  const std::regex row("4'd(\\d+):.*\\{14'd(\\d+), 30'd(\\d+), 15'd(\\d+), 29'd(\\d+)\\};");
  unsigned bits = hw::kMinExpFractionBits;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, row)) continue;
    const auto number = [&found](std::size_t i) { return std::stoll(found[i]); };
    ASSERT_EQ(number(1), bits);
    const hw::IntExpConstants constants = hw::make_int_exp_constants(bits++);
    EXPECT_EQ(number(2), constants.q_ln2);
    EXPECT_EQ(number(3), hw::int_exp_reciprocal(constants));
    EXPECT_EQ(number(4), constants.b);
    EXPECT_EQ(number(5), constants.c);
  }
  EXPECT_EQ(bits, hw::kMaxExpFractionBits + 1);
}

}  // namespace
}  // namespace systole::testbench
