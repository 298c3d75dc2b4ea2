#pragma once

#include <cstdint>

#include "hw/number/half.h"
#include "hw/ring/instruction.h"
#include "hw/ring/pass.h"

namespace systole::mapper::dfx {

/// Appends instructions to a pass, all of the phase that is set.
class InstructionWriter {
 protected:
  using Instruction = hw::dfx::Instruction;
  using Opcode = hw::dfx::Opcode;
  using Second = hw::dfx::Second;

  Instruction& put(Opcode op) {
    Instruction& instruction = pass_.instructions.emplace_back();
    instruction.op = op;
    instruction.phase = phase_;
    return instruction;
  }
  Instruction& vector(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t elements) {
    Instruction& instruction = put(op);
    instruction.dst = dst;
    instruction.src = src;
    instruction.elements = elements;
    return instruction;
  }
  void with_vector(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t other,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kVector;
    instruction.other = other;
  }
  void with_scalar(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t scalar,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kScalar;
    instruction.other = scalar;
  }
  void with_constant(Opcode op, std::uint32_t dst, std::uint32_t src, double constant,
                     std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kConstant;
    instruction.constant = hw::to_half(constant);
  }
  void with_memory(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint64_t memory,
                   std::uint32_t elements) {
    Instruction& instruction = vector(op, dst, src, elements);
    instruction.second = Second::kMemory;
    instruction.memory = memory;
  }
  void accumulate(std::uint32_t result, std::uint32_t src, double factor, std::uint32_t elements) {
    Instruction& instruction = vector(Opcode::kAccum, 0, src, elements);
    instruction.result = result;
    instruction.constant = hw::to_half(factor);
  }
  void scalar(Opcode op, std::uint32_t result, std::uint32_t from, double constant) {
    Instruction& instruction = put(op);
    instruction.result = result;
    instruction.second = Second::kScalar;
    instruction.other = from;
    instruction.constant = hw::to_half(constant);
  }

  hw::dfx::Phase phase_ = hw::dfx::Phase::kEmbedding;
  hw::dfx::Pass pass_;
};

}  // namespace systole::mapper::dfx
