#pragma once

#include "hw/ring/instruction.h"

namespace systole::hw::dfx {

/// Calls visit(name, field) for every field of an instruction, in the order of its encoding: each
/// takes as many bytes as it has here, little endian, without padding.
template <typename Visit, typename AnyInstruction>
void visit_fields(Visit&& visit, AnyInstruction& i) {
  visit("op", i.op);
  visit("phase", i.phase);
  visit("second", i.second);
  visit("function", i.function);
  visit("has_bias", i.has_bias);
  visit("rows", i.rows);
  visit("pitch", i.pitch);
  visit("dst", i.dst);
  visit("src", i.src);
  visit("other", i.other);
  visit("elements", i.elements);
  visit("result", i.result);
  visit("heads", i.heads);
  visit("token", i.token);
  visit("exchange", i.exchange);
  visit("constant", i.constant.bits);
  visit("memory", i.memory);
  visit("scales", i.scales);
  visit("head_bytes", i.head_bytes);
  visit("finds_largest", i.finds_largest);
  visit("winner", i.winner);
  visit("first_column", i.first_column);
  visit("weights", i.weights.address);
  visit("in_ddr", i.weights.in_ddr);
  visit("int8", i.weights.int8);
  visit("k_tiles", i.weights.k_tiles);
  visit("slices", i.weights.slices);
  visit("block", i.weights.block);
}

}  // namespace systole::hw::dfx
