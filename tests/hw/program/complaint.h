#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hw/program/program.h"
#include "support/input_error.h"

namespace systole::hw {

/// What check_program() says of a program on a machine with this much DRAM; "no error" if it is
/// legal.
inline std::string complaint_of(const Program& program, const Machine& machine,
                                std::uint64_t dram_bytes = 1 << 20) {
  return input_error_of([&] { check_program(program, machine, dram_bytes); });
}

/// The work of a command, which must be a T.
template <typename T>
T& work_of(Program& program, std::size_t command) {
  return *program.commands.at(command).as<T>();
}

}  // namespace systole::hw
