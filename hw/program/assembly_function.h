#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hw/host/host_function.h"
#include "hw/program/assembly_lexer.h"

/// The lines of a program's assembly that stand for functions of the host (hw/program/assembly.h).
namespace systole::hw {

/// With its line feed. Numbers read back bit by bit.
[[nodiscard]] std::string function_line(std::size_t index, const HostFunction& function);

/// Inverse; the first two tokens have been checked. Throws InputError without a place.
[[nodiscard]] HostFunction parse_function(const std::vector<AssemblyToken>& tokens);

}  // namespace systole::hw
