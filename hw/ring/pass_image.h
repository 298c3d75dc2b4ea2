#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/pass.h"

/// A pass as a program in memory, little endian: the header, then the exchanges, then the
/// instructions, field by field in the order of hw/ring/instruction_fields.h.
///
/// | bytes      | content                                                                |
/// |------------|------------------------------------------------------------------------|
/// | 4          | "DFXP"                                                                 |
/// | 4          | bytes of all of it                                                     |
/// | 4, 4       | number of exchanges, of instructions                                   |
/// | 4          | cores of the ring, whose parts an exchange names                       |
/// | 4, 1, 4 each | of an exchange: base, whether it is of sums, the cores + 1 bounds     |
namespace systole::hw::dfx {

inline constexpr std::size_t kPassHeaderBytes = 20;
/// Longer than any pass: bytes.
inline constexpr std::uint32_t kMaxPassBytes = 1U << 30;

/// A field of an encoded instruction.
struct InstructionField {
  std::string name;           ///< as listings have it
  std::size_t offset, bytes;  ///< in the instruction
};
/// In the order of the encoding, without gaps.
[[nodiscard]] std::vector<InstructionField> instruction_fields();
/// Of an encoded instruction.
[[nodiscard]] std::size_t instruction_bytes();

[[nodiscard]] std::vector<std::uint8_t> encode_pass(const Pass& pass, std::uint32_t cores);

/// Bytes of the pass that begins with this header. Throws InputError if there is none.
[[nodiscard]] std::uint32_t pass_bytes(const std::vector<std::uint8_t>& header);

/// What a core has, beyond its machine.
struct PassLimits {
  std::uint32_t register_elements = 0;
  std::uint64_t hbm_bytes = 0, ddr_bytes = 0;
};

/// The pass in these bytes, pass_bytes() of them. Throws InputError, one line, if there is none, or
/// one that a core of the machine cannot run: an instruction that is none, or that uses registers,
/// scalars, memory or exchanges which do not exist.
[[nodiscard]] Pass decode_pass(const std::vector<std::uint8_t>& bytes, const Machine& machine,
                               const PassLimits& limits);

/// What is wrong with an instruction of the pass, or an exchange, for a core of the machine:
/// registers, scalars, memory or exchanges that do not exist. Empty: nothing.
[[nodiscard]] std::string problem_of(const Instruction& instruction, const Pass& pass,
                                     const Machine& machine, const PassLimits& limits);
[[nodiscard]] std::string problem_of(const Exchange& exchange, const PassLimits& limits);

}  // namespace systole::hw::dfx
