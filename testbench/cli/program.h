#pragma once

namespace systole::testbench {

/// Parses the command line, runs the subcommand, and turns every error into lines `systole: ...` on
/// standard error. Returns the exit code (testbench/cli/common/command.h).
int run_command_line(int argc, const char* const* argv);

}  // namespace systole::testbench
