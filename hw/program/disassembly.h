#pragma once

#include <string>

#include "hw/program/program.h"

/// Programs as text, to read: one line for each chain, operator and command.
///
///     chain 0 s8 { add channel; requantise channel lo=-127 hi=127; gelu b=-7 c=-60 ... }
///     operator 0 "ffn.up" tensor="h" place=dram type=s8 address=0x4000 pitch=64 rows=17 cols=64
///     operand 0 address=0x8000 pitch=64
///     mask 0 address=0x9000 bytes=0100000003000000...
///     mix 0 in_heads=3 out_heads=2 weights=1,-2,3,4,5,6 bias=7,-8 multipliers=9,10 shifts=1,2
///     function 0 layernorm in=s16 out=s8 in_scale=0.001 ... gamma=1,0.5 beta=0,-0.25
///     load op=0 dram=0x1000:64 a=0:64 m=17 n=64
///     matmul op=0 c=0:64 a=0:64 b=1088:64 m=17 n=64 k=64 accumulate
///     store op=0 chain=0 dram=0x4000:64 c=0:64 m=17 n=64 parameters=5184
///     end
///
/// An address is followed by its row pitch. What is not given is zero or empty, except
/// `rounding=half_up` and `type=s8` (of a tensor operand: `type=s16`). A stage's operand is a word
/// after its name: channel, row, tensor or saved. In strings, `"` and `\` follow a `\`; other bytes
/// are `\xNN`.
namespace systole::hw {

/// For a program that check_program() accepts.
[[nodiscard]] std::string disassemble(const Program& program);

}  // namespace systole::hw
