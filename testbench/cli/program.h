#pragma once

namespace systole::testbench {

/// The program: parses the command line, runs the subcommand, and turns every error into lines
/// `systole: ...` on standard error. Returns the exit code (testbench/cli/command.h).
[[nodiscard]] int run_program(int argc, const char* const* argv);

}  // namespace systole::testbench
