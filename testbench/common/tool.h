#pragma once

#include <functional>
#include <string>
#include <vector>

namespace systole::testbench {

/// Runs a program of the system, found like a shell finds it, with `input` as its standard input.
/// Its standard output and error are this process's; `environment` ("KEY=VALUE") is added. Its exit
/// code. Calls `meanwhile`, if there is one, ten times a second. Throws InputError that names the
/// program if it cannot be started or if a signal ends it.
int run_tool(const std::vector<std::string>& command, const std::string& input,
             const std::vector<std::string>& environment = {},
             const std::function<void()>& meanwhile = {});

/// The value of an environment variable, or `otherwise` if it is not set or empty.
std::string environment_or(const char* variable, const char* otherwise);
/// The Python that the program's Python parts run with: SYSTOLE_PYTHON, else python3.
std::string python_interpreter();

}  // namespace systole::testbench
