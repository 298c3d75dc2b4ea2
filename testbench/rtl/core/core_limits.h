#pragma once

#include <string>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

/// What the Verilated core (core_rtl.h) can run.
namespace systole::testbench {

/// The first key of the machine that has another value in the gates, which are those of preset
/// "tiny", and what they have: "array.rows: found 8, expected 4, ...". Empty: it is their machine.
[[nodiscard]] std::string core_machine_problem(const hw::Machine& machine);

/// The first command at which the gates would stop, and why: "command 12, store: stage 2, exp:
/// ...". Empty: they run the program, which must pass check_program() on their machine.
[[nodiscard]] std::string core_program_problem(const hw::Program& program);

}  // namespace systole::testbench
