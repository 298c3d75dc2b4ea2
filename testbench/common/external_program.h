#pragma once

#include <string>
#include <string_view>

namespace systole::testbench {

/// What a program printed on standard output, and how it ended.
struct ProgramOutput {
  static constexpr int kNotFound = 127;  ///< as the shell has it
  static constexpr int kEndedBySignal = -1;

  int exit_code = 0;
  std::string output;
};

/// Runs the program `name`, found in PATH, on `input` as its standard input. Its standard error is
/// dropped. It ends with this process. Throws std::runtime_error if the system refuses.
[[nodiscard]] ProgramOutput run_external_program(const std::string& name, std::string_view input);

}  // namespace systole::testbench
