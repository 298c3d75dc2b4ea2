#pragma once

#include <cstdint>
#include <vector>

#include "hw/program/program.h"

/// Commands as they are in memory (hw/program/command_fields.h): kCommandBytes each.
namespace systole::hw {

/// Addresses that have four bytes must be below 4 GiB: check_program() refuses others.
[[nodiscard]] std::vector<std::uint8_t> encode_commands(const std::vector<Command>& commands);
/// The same at the end of `bytes`.
void append_commands(const std::vector<Command>& commands, std::vector<std::uint8_t>& bytes);

/// Reads kCommandBytes bytes. Throws InputError (what is wrong, without a place) for bytes that
/// encode_commands() does not write; what the values refer to is not checked.
[[nodiscard]] Command decode_command(const std::uint8_t* bytes);

}  // namespace systole::hw
