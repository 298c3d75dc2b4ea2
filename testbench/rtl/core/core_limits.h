#pragma once

#include <string>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "testbench/rtl/core/core_size.h"

/// What the Verilated core (core_rtl.h) can run.
namespace systole::testbench {

/// A machine with the keys of gates of that size.
[[nodiscard]] hw::Machine core_machine(const CoreSize& size);

/// The first key of the machine that has another value in gates of that size, and what they have:
/// "array.rows: found 8, expected 4, ...". Empty: it is their machine. `source`: folder of a user's
/// gates, or empty.
[[nodiscard]] std::string core_machine_problem(const hw::Machine& machine,
                                               const CoreSize& size = kTinyCore,
                                               const std::string& source = {});

/// The first command at which gates of that size would stop, and why: "command 12, store: stage 2,
/// exp: ...". Empty: they run the program, which must pass check_program() on their machine.
/// `postop`: of the machine, whose room for operands may be less than theirs.
[[nodiscard]] std::string core_program_problem(const hw::Program& program,
                                               const CoreSize& size = kTinyCore,
                                               const hw::Machine::Postop& postop = {});

}  // namespace systole::testbench
