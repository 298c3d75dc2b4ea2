#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/program/bad_input.h"
#include "support/program/command_rows.h"

namespace systole::testbench {
namespace {

/// The file of a column `file NAME: CONTENTS`.
Prepare file_of(const std::string& column) {
  const std::size_t colon = column.find(':');
  std::string contents = column.substr(std::min(colon + 2, column.size()));
  for (std::size_t at = 0; (at = contents.find("\\n", at)) != std::string::npos;) {
    contents.replace(at, 2, "\n");
  }
  return file(column.substr(5, colon - 5), contents);
}

/// What refusals.txt lists.
std::vector<BadInput> refusals() {
  std::vector<BadInput> all;
  for (const Words& columns : rows_of("tests/testbench/cli/refusals.txt")) {
    BadInput& bad = all.emplace_back();
    bad.name = columns.at(0);
    bad.errors.resize(1);
    bad.arguments = words_of(columns.at(1));
    for (std::size_t i = 2; i < columns.size(); ++i) {
      if (columns[i].rfind("file ", 0) == 0) {
        bad.prepare = file_of(columns[i]);
      } else {
        bad.errors[0].push_back(columns[i]);
      }
    }
    if (bad.errors[0].empty()) throw std::runtime_error("refusals.txt: " + bad.name + ": no text");
  }
  return all;
}

class BadUsageTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadUsageTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Refusals, BadUsageTest, testing::ValuesIn(refusals()), bad_input_name);

TEST(BadOutput, FullStandardOutputIsAnError) {
  const ProgramRun result = run_systole({"machine"}, ".", {}, "/dev/full");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "systole: standard output: cannot be written\n");
}

}  // namespace
}  // namespace systole::testbench
