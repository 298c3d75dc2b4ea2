#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/program/program.h"

/// A program in the memory of the machine, as a core reads it. Little endian. Sections follow each
/// other in this order, each from a multiple of kProgramAlignment bytes after the header on:
///
/// | section  | content                                                                       |
/// |----------|-------------------------------------------------------------------------------|
/// | header   | 64 bytes: "SYSTPROG", u32 version, commands, operands, masks, chains,          |
/// |          | bytes of a chain, mixes, bytes of a mix; the rest is zero                     |
/// | commands | 80 bytes each (hw/program/command_fields.h); the last is `end`                 |
/// | operands | 16 bytes each: u64 address, u32 pitch, u32 zero                               |
/// | masks    | 16 bytes each: u64 address, u32 bytes, u32 zero; the mask                     |
/// |          | (hw/attention/mask_codec.h) resides at its address                            |
/// | chains   | u8 output type, u8 zero, u16 stages, u32 zero; per stage its micro-code       |
/// |          | (hw/postop/microcode.h); zeros up to the bytes of the longest chain           |
/// | mixes    | u16 in_heads, out_heads, u8 rounding, u8 zero, s8 weights [out][in]; per      |
/// |          | output head s32 bias, s32 multiplier, s8 shift; zeros up to the longest mix   |
///
/// Chains and mixes have a fixed stride, so a core finds one by its index with a single read.
/// A program has one encoding, and only that is read. Functions of the host and the names of
/// operators are for software: they are in no memory of the machine.
namespace systole::hw {

inline constexpr std::uint32_t kProgramVersion = 8;
inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::uint64_t kProgramAlignment = 64;
inline constexpr std::size_t kOperandTileBytes = 16;
inline constexpr std::size_t kMaskEntryBytes = 16;

/// The counts of a program, and offsets from its header that follow from them.
struct ProgramHeader {
  std::uint32_t commands = 0, operands = 0, masks = 0;
  std::uint32_t chains = 0, chain_bytes = 0;
  std::uint32_t mixes = 0, mix_bytes = 0;

  [[nodiscard]] std::uint64_t command(std::uint64_t index) const {
    return kHeaderBytes + index * kCommandBytes;
  }
  [[nodiscard]] std::uint64_t operand(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t mask(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t chain(std::uint64_t index) const;
  [[nodiscard]] std::uint64_t mix(std::uint64_t index) const;
  /// Of the whole image.
  [[nodiscard]] std::uint64_t bytes() const;

  [[nodiscard]] bool operator==(const ProgramHeader& other) const {
    return commands == other.commands && operands == other.operands && masks == other.masks &&
           chains == other.chains && chain_bytes == other.chain_bytes && mixes == other.mixes &&
           mix_bytes == other.mix_bytes;
  }
};

[[nodiscard]] ProgramHeader header_of(const Program& program);

/// The program must pass check_program() on some machine. Masks are not part of the bytes: each
/// resides at its own address.
[[nodiscard]] std::vector<std::uint8_t> encode_program(const Program& program);

// What a core decodes, record by record, besides commands (hw/program/command_codec.h). All throw
// InputError (what is wrong, without a place) for bytes that encode_program() does not write.

/// From kHeaderBytes bytes.
[[nodiscard]] ProgramHeader decode_header(const std::uint8_t* bytes);
/// From kOperandTileBytes bytes.
[[nodiscard]] DramTile decode_operand_tile(const std::uint8_t* bytes);
/// A mask of that many bytes, all zero, from kMaskEntryBytes bytes: the mask itself is not read.
/// Refuses one that is not in a memory of `memory_bytes` before it takes room for it.
[[nodiscard]] LayerMask decode_mask_entry(const std::uint8_t* bytes, std::uint64_t memory_bytes);
/// From ProgramHeader::chain_bytes and mix_bytes bytes.
[[nodiscard]] Chain decode_chain(const std::uint8_t* bytes, std::size_t size);
[[nodiscard]] HeadMix decode_mix(const std::uint8_t* bytes, std::size_t size);

/// The whole image. Masks, which are in a memory of `memory_bytes`, have their address and their
/// size, but no content yet. Throws InputError (`source: section index: what is wrong`).
[[nodiscard]] Program decode_program(const std::vector<std::uint8_t>& image,
                                     const std::string& source, std::uint64_t memory_bytes);

}  // namespace systole::hw
