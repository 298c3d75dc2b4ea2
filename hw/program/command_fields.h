#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/program/program.h"

/// The fields of a command by name: what the checks, the assembly and its reader go through.
namespace systole::hw {

struct CommandField {
  std::string_view name;
  unsigned opcodes;       ///< bit i: Opcode i uses the field
  std::uint64_t highest;  ///< largest value the field can hold; 1 for a flag
  bool optional;          ///< seldom used: assembly leaves it out when it is zero
  std::uint64_t (*get)(const Command& command);
  void (*set)(Command& command, std::uint64_t value);

  [[nodiscard]] bool used_by(Opcode opcode) const {
    return (opcodes >> static_cast<unsigned>(opcode) & 1U) != 0;
  }
};

/// All fields but the opcode. A pitch follows the address that it belongs to, under its name and
/// "_pitch".
[[nodiscard]] const std::vector<CommandField>& command_fields();

/// Whether `pitch` is the row pitch of the address `field`.
[[nodiscard]] inline bool is_pitch_of(const CommandField& pitch, const CommandField& field) {
  return pitch.name.substr(0, field.name.size()) == field.name &&
         pitch.name.substr(field.name.size()) == "_pitch";
}

/// Name of a field that is not zero although the opcode does not use it; empty if there is none.
[[nodiscard]] std::string_view misused_field(const Command& command);

}  // namespace systole::hw
