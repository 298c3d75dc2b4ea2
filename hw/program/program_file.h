#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hw/program/program.h"

/// Programs as binary files, little endian, version 5:
///
/// | part      | content                                                                       |
/// |-----------|-------------------------------------------------------------------------------|
/// | header    | "SYSTOLEP", u32 version, u32 sections (7); per section u32 count, u64 bytes    |
/// | chains    | per chain u8 out, u8 zero, u16 stages; per stage its micro-code, 9 x u64       |
/// |           | (hw/postop/microcode.h)                                                       |
/// | operands  | u64 address, u32 pitch                                                        |
/// | masks     | u64 address, u32 length and bytes (hw/attention/mask_codec.h)                 |
/// | mixes     | u16 in_heads, out_heads, u8 rounding, u8 zero, s8 weights [out][in]; per       |
/// |           | output head s32 bias, s32 multiplier, s8 shift                                |
/// | functions | u8 op, in type, operand type, out type; f32 in_scale, tensor_scale, out_scale; |
/// |           | s32 lo, hi; u32 columns; per column f32 gamma, then per column f32 beta       |
/// | operators | u32 length and name, u32 length and tensor, u8 place, u8 type, u16 zero,       |
/// |           | u32 pitch, rows, cols, u64 address, macs                                      |
/// | commands  | 80 bytes each (hw/program/command_codec.h)                                    |
///
/// Nothing follows the last section. A program has one encoding, and only that is read.
namespace systole::hw {

inline constexpr std::uint32_t kProgramVersion = 5;

/// The program must pass check_program() on some machine; what a stage or opcode does not use is
/// then lost nowhere.
[[nodiscard]] std::string encode_program(const Program& program);

/// Throws InputError (`source: section, byte N: what is wrong`) for anything that encode_program()
/// does not write. Whether the program fits a machine is up to check_program().
[[nodiscard]] Program decode_program(std::string_view bytes, const std::string& source);

/// Writes the file whole or not at all. InputError if it cannot.
void write_program(const Program& program, const std::string& path);

/// InputError if the file is missing, unreadable or no program.
[[nodiscard]] Program read_program(const std::string& path);

}  // namespace systole::hw
