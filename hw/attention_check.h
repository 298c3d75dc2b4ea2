#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "hw/machine.h"
#include "hw/program.h"

namespace systole::hw {

/// Calls `fail`, which must not return, with what is wrong with a kAttention command: a machine
/// without engines or with buffers too small for one token, a chain that cannot stand behind it, no
/// mask, sizes out of range, decoders to another number of heads.
void check_attention_command(const Command& command, const Program& program, const Machine& machine,
                             const std::function<void(const std::string& what)>& fail);

/// The same for the mask of a command that passed check_attention_command(): one that is none, or
/// of other sizes; scores and outputs of one query that are more than the accumulator. This takes
/// time that grows with queries x heads, so the command's ranges should be known to lie in memory.
void check_attention_mask(const Command& command, const Program& program, const Machine& machine,
                          const std::function<void(const std::string& what)>& fail);

/// The same if Program::mixes does not have `count` of them from that of a command's field `mix`,
/// which is not 0.
void check_mix_index(std::uint16_t mix, std::size_t count, const Program& program,
                     const std::function<void(const std::string& what)>& fail);

}  // namespace systole::hw
