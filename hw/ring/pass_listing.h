#pragma once

#include <string>
#include <string_view>

#include "hw/ring/pass.h"

/// Passes as text, to read: a line for each exchange and each instruction.
///
///     exchange 0 base=2624 first=0,256,512,768,1024
///     0 load phase=embedding second=memory elements=1024 memory=0x3a000
///     23 conv1d phase=self-attention has_bias dst=3072 src=1024 ... slices=16 block=8
///
///     35 masked_mm phase=self-attention dst=6144 ... constant=0x3000 ... # constant 0.125
///
/// A line of an instruction begins with its number and its opcode. Fields follow in the order of
/// the encoding (hw/ring/instruction_fields.h), those alone that are not as in an empty
/// instruction: a flag is its name. Blanks in names of phases are `_`. Bits of an FP16 and
/// addresses are hexadecimal, `exchange ... sums` adds up parts, and a `#` begins a comment.
namespace systole::hw::dfx {

/// Name of the kind of second operand, "scalar".
[[nodiscard]] std::string_view name_of(Second second);

[[nodiscard]] std::string disassemble(const Pass& pass);

}  // namespace systole::hw::dfx
