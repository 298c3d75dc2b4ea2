#include "tlm/ring/core_values.h"

#include <algorithm>
#include <utility>

#include "hw/function/half_table.h"
#include "hw/ring/half_gemv.h"
#include "hw/ring/half_vector.h"
#include "hw/ring/int8_gemv.h"

namespace systole::tlm_model::dfx {
namespace {

using hw::Half;
using hw::kHalfBytes;
using hw::dfx::Instruction;
using hw::dfx::Opcode;
using hw::dfx::Second;
using hw::dfx::TableFunction;
using hw::half_vector::Operation;

/// What the mask puts in the place of a score: the FP16 nearest to minus infinity.
constexpr Half kMasked = hw::kHalfLowest;

}  // namespace

CoreValues::CoreValues(const hw::Machine& machine, std::uint32_t register_elements,
                       HalfEngines engines)
    : depth_(machine.matrix.depth),
      lanes_(machine.matrix.lanes),
      int8_lanes_(machine.matrix.unit(true).lanes),
      engines_(std::move(engines)),
      registers_(register_elements, Half{0}),
      scalars_(hw::dfx::kScalars, Half{0}) {}

void CoreValues::execute(const Instruction& instruction, std::uint64_t cycle) {
  engines_.matrix->begin_at(cycle);
  engines_.vector->begin_at(cycle);
  switch (instruction.op) {
    case Opcode::kConv1d:
    case Opcode::kMaskedMm:
    case Opcode::kMm:
      return product(instruction);
    case Opcode::kWriteKeys:
      return write_keys(instruction);
    case Opcode::kWriteValues:
      return write_values(instruction);
    case Opcode::kRotate:
      return rotate(instruction);
    default:
      return vector(instruction);
  }
}

void CoreValues::product(const Instruction& instruction) {
  if (instruction.weights.int8) {
    int8_product(instruction);
  } else {
    fp16_product(instruction);
  }
  if (instruction.function != TableFunction::kNone) look_up(instruction);
  if (instruction.op == Opcode::kMaskedMm) mask(instruction);
  for (std::uint32_t r = 0; instruction.finds_largest && r < instruction.rows; ++r) {
    find_largest(instruction, r * instruction.pitch);
  }
}

void CoreValues::look_up(const Instruction& instruction) {
  const hw::HalfTable& table =
      instruction.function == TableFunction::kGelu ? hw::half_gelu_table() : hw::half_silu_table();
  for (std::uint32_t r = 0; r < instruction.rows; ++r) {
    Half* const y = registers_.data() + instruction.dst + r * instruction.pitch;
    for (std::uint32_t i = 0; i < instruction.elements; ++i) y[i] = hw::half_lookup(table, y[i]);
  }
}

void CoreValues::fp16_product(const Instruction& instruction) {
  const auto& weights = instruction.weights;
  const Half* const tiles =
      (weights.in_ddr ? memory_.ddr : memory_.hbm) + weights.address / kHalfBytes;
  for (std::uint32_t slice = 0; slice < weights.slices; slice += weights.block) {
    const std::uint32_t slices = std::min(weights.block, weights.slices - slice);
    hw::HalfGemv gemv{};
    gemv.x = registers_.data() + instruction.src;
    gemv.rows = instruction.rows;
    gemv.x_pitch = instruction.pitch;
    gemv.tiles = tiles + std::uint64_t{slice} * weights.k_tiles * depth_ * lanes_;
    gemv.k_tiles = weights.k_tiles;
    gemv.slices = slices;
    gemv.k_stride = slices;
    gemv.slice_stride = 1;
    gemv.depth = depth_;
    gemv.lanes = lanes_;
    gemv.bias = instruction.has_bias
                    ? memory_.ddr + instruction.memory / kHalfBytes + slice * lanes_
                    : nullptr;
    gemv.y = registers_.data() + instruction.dst + slice * lanes_;
    gemv.y_pitch = instruction.pitch;
    engines_.matrix->gemv(gemv);
  }
}

void CoreValues::int8_product(const Instruction& instruction) {
  const auto& weights = instruction.weights;
  const auto* const memory =
      reinterpret_cast<const std::int8_t*>(weights.in_ddr ? memory_.ddr : memory_.hbm);
  const Half* const ddr = memory_.ddr;
  std::vector<std::int8_t> x(std::size_t{weights.k_tiles} * depth_);
  for (std::uint32_t r = 0; r < instruction.rows; ++r) {
    const Half* const src = registers_.data() + instruction.src + r * instruction.pitch;
    std::transform(src, src + x.size(), x.begin(),
                   [](Half integer) { return static_cast<std::int8_t>(hw::to_float(integer)); });
    for (std::uint32_t slice = 0; slice < weights.slices; slice += weights.block) {
      const std::uint32_t column = slice * int8_lanes_;
      hw::Int8Gemv gemv;
      gemv.x = x.data();
      gemv.tiles = memory + weights.address + std::uint64_t{column} * weights.k_tiles * depth_;
      gemv.k_tiles = weights.k_tiles;
      gemv.slices = std::min(weights.block, weights.slices - slice);
      gemv.depth = depth_;
      gemv.lanes = int8_lanes_;
      gemv.scale = scalars_[instruction.other + r];
      gemv.column_scales = ddr + instruction.scales / kHalfBytes + column;
      if (instruction.has_bias) gemv.bias = ddr + instruction.memory / kHalfBytes + column;
      gemv.y = registers_.data() + instruction.dst + r * instruction.pitch + column;
      hw::int8_gemv(gemv);
    }
  }
}

void CoreValues::mask(const Instruction& instruction) {
  Half* const y = registers_.data() + instruction.dst;
  const std::uint32_t tokens = instruction.elements;
  const std::uint32_t padded = (tokens + depth_ - 1) / depth_ * depth_;
  Half largest = kMasked;
  for (std::uint32_t i = 0; i < tokens; ++i) {
    y[i] = hw::half_mul(y[i], instruction.constant);
    largest = hw::half_max(largest, y[i]);
  }
  std::fill(y + tokens, y + padded, kMasked);
  scalars_[instruction.result] = largest;
}

void CoreValues::find_largest(const Instruction& instruction, std::uint32_t offset) {
  const Half* const y = registers_.data() + instruction.dst + offset;
  Half* const winner = registers_.data() + instruction.winner + offset;
  Half largest = kMasked;
  std::uint32_t place = 0;
  for (std::uint32_t i = 0; i < instruction.elements; ++i) {
    if (i != 0 && !(hw::to_float(largest) < hw::to_float(y[i]))) continue;
    largest = y[i];
    place = i;
  }
  place += instruction.first_column;
  winner[0] = largest;
  winner[1].bits = static_cast<std::uint16_t>(place);
  winner[2].bits = static_cast<std::uint16_t>(place >> 16);
  winner[3].bits = instruction.elements == 0 ? 0 : 1;
}

void CoreValues::vector(const Instruction& instruction) {
  Half* const dst = registers_.data() + instruction.dst;
  const Half* const src = registers_.data() + instruction.src;
  const std::size_t n = instruction.elements;
  const Half* other = nullptr;  // a vector
  Half single = instruction.constant;
  if (instruction.second == Second::kVector) other = registers_.data() + instruction.other;
  if (instruction.second == Second::kMemory) {
    other = memory_.ddr + instruction.memory / kHalfBytes;
  }
  if (instruction.second == Second::kScalar) single = scalars_[instruction.other];
  const hw::half_vector::Elements elements{src, other != nullptr ? other : &single,
                                           other == nullptr, n, dst};
  switch (instruction.op) {
    case Opcode::kLoad:
      std::copy_n(other, n, dst);
      return;
    case Opcode::kAdd:
      return engines_.vector->apply(Operation::kAdd, elements);
    case Opcode::kSub:
      return engines_.vector->apply(Operation::kSubtract, elements);
    case Opcode::kMul:
      return engines_.vector->apply(Operation::kMultiply, elements);
    case Opcode::kExp:
      std::transform(src, src + n, dst, hw::half_exp);
      return;
    case Opcode::kAccum: {
      const Half sum = hw::half_vector::accumulate(src, n, depth_);
      scalars_[instruction.result] =
          instruction.constant == hw::kHalfOne ? sum : hw::half_mul(sum, instruction.constant);
      return;
    }
    case Opcode::kAbsMax: {
      Half largest = hw::kHalfZero;
      for (std::size_t i = 0; i < n; ++i) {
        largest = hw::half_max(largest,
                               Half{static_cast<std::uint16_t>(src[i].bits & hw::kHalfMagnitude)});
      }
      scalars_[instruction.result] = hw::half_mul(largest, instruction.constant);
      return;
    }
    case Opcode::kQuantise:
      std::transform(src, src + n, dst, [&](Half x) {
        return hw::to_half(static_cast<float>(hw::quantise(x, single)));
      });
      return;
    case Opcode::kRecip:
      scalars_[instruction.result] = hw::half_recip(single);
      return;
    default:
      scalars_[instruction.result] =
          hw::half_recip_sqrt(hw::half_add(single, instruction.constant));
  }
}

// Two multiplications and an addition, each rounded.
void CoreValues::rotate(const Instruction& instruction) {
  const std::uint32_t head = instruction.elements;
  const Half* const cosines = memory_.ddr + instruction.memory / kHalfBytes;
  const Half* const sines = cosines + head;
  std::vector<Half> swapped(head);
  for (std::uint32_t h = 0; h < instruction.heads; ++h) {
    const Half* const src = registers_.data() + instruction.src + h * head;
    Half* const dst = registers_.data() + instruction.dst + h * head;
    for (std::uint32_t i = 0; i < head; ++i) swapped[i] = src[i ^ 1U];
    engines_.vector->apply(Operation::kMultiply, {src, cosines, false, head, dst});
    engines_.vector->apply(Operation::kMultiply,
                           {swapped.data(), sines, false, head, swapped.data()});
    engines_.vector->apply(Operation::kAdd, {dst, swapped.data(), false, head, dst});
  }
}

// Keys: [tokens / lanes][K tiles][lanes][depth], so that a token is a column of a tile.
void CoreValues::write_keys(const Instruction& instruction) {
  const std::uint32_t head = instruction.elements, token = instruction.token;
  for (std::uint32_t h = 0; h < instruction.heads; ++h) {
    const Half* const src = registers_.data() + instruction.src + h * head;
    Half* const cache = memory_.hbm +
                        (instruction.memory + h * instruction.head_bytes) / kHalfBytes +
                        std::uint64_t{token / lanes_} * lanes_ * head + token % lanes_ * depth_;
    for (std::uint32_t k = 0; k < head / depth_; ++k) {
      std::copy_n(src + k * depth_, depth_, cache + std::uint64_t{k} * lanes_ * depth_);
    }
  }
}

// Values: [tokens / depth][head / lanes][lanes][depth], so that a token is a row of a tile.
void CoreValues::write_values(const Instruction& instruction) {
  const std::uint32_t head = instruction.elements, token = instruction.token;
  for (std::uint32_t h = 0; h < instruction.heads; ++h) {
    const Half* const src = registers_.data() + instruction.src + h * head;
    Half* const cache = memory_.hbm +
                        (instruction.memory + h * instruction.head_bytes) / kHalfBytes +
                        std::uint64_t{token / depth_} * depth_ * head + token % depth_;
    for (std::uint32_t i = 0; i < head; ++i) cache[std::uint64_t{i} * depth_] = src[i];
  }
}

}  // namespace systole::tlm_model::dfx
