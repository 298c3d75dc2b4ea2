#pragma once

#include <cstdint>
#include <vector>

#include "hw/program/program.h"

/// Commands as they are in memory: kCommandBytes each, little endian.
///
/// | byte | field                                                        |
/// |------|--------------------------------------------------------------|
/// | 0    | opcode                                                       |
/// | 1    | type                                                         |
/// | 2    | flags: 1 accumulate, 2 a_unsigned, 4 b_transposed            |
/// | 3    | issue                                                        |
/// | 4    | chain, mix (u16 each)                                        |
/// | 8    | op, dram_pitch (u32 each)                                    |
/// | 16   | dram, tensor (u64 each)                                      |
/// | 32   | tensor_pitch, m, n, k, a, a_pitch, b, b_pitch, c, c_pitch,   |
/// |      | parameters, statistics (u32 each)                            |
namespace systole::hw {

[[nodiscard]] std::vector<std::uint8_t> encode_commands(const std::vector<Command>& commands);

/// Reads kCommandBytes bytes; the values are not checked (see check_program()).
[[nodiscard]] Command decode_command(const std::uint8_t* bytes);

}  // namespace systole::hw
