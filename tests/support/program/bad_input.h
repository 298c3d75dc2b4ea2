#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "support/program/program_run.h"
#include "support/table_rows.h"
#include "support/temp_directory.h"

/// What a user can get wrong: every case must end with exit code 2, one line on standard error for
/// each error that says what and where, nothing on standard output, and no file left behind.
namespace systole::testbench {

struct BadInput {
  std::string name;
  Words arguments;
  std::vector<Words> errors;  ///< per line: texts it must contain
  Words files;                ///< columns that make or change a file
};

inline void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.name; }

/// A row of a table such as refusals.txt, which describes them.
[[nodiscard]] BadInput bad_input_of(const Words& columns);

/// `directory` has the files that the command needs besides those of the row.
void expect_refused(const BadInput& bad, const TempDirectory& directory);

/// Every row of `table`, one after the other in one directory.
void expect_rows_refused(const std::string& table,
                         const TempDirectory& directory = TempDirectory());

}  // namespace systole::testbench
