#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hw/program/program.h"

/// What a command touches, visited without a vector: for whoever asks about every command of many
/// programs. hw/program/program.h has the same as lists.
namespace systole::hw {

/// a + b * c, or the highest value if that overflows.
[[nodiscard]] inline std::uint64_t saturating_end(std::uint64_t a, std::uint64_t b,
                                                  std::uint64_t c) {
  constexpr std::uint64_t kHighest = std::numeric_limits<std::uint64_t>::max();
  if (c != 0 && b > (kHighest - a) / c) return kHighest;
  return a + b * c;
}

/// Bounding range of `rows` runs of `width` units, `pitch` apart.
[[nodiscard]] inline Range bounding_range(Space space, std::uint64_t begin, std::uint64_t rows,
                                          std::uint64_t width, std::uint64_t pitch, bool write) {
  if (rows == 0 || width == 0) return {space, begin, begin, write};
  return {space, begin, saturating_end(saturating_end(begin, width, 1), rows - 1, pitch), write};
}

/// Index into Program::operand_tiles of the second tensor operand of a command's chain.
[[nodiscard]] inline std::uint32_t first_operand_tile(const Command& command) {
  return unit_of(command.opcode) == Unit::kLoad ? command.b : command.a;
}

/// Calls visit(OperandTile, DType) for the tensor operands of a command's chain, in the order of
/// its stages. They must exist.
template <typename Visit>
void for_each_operand(const Command& command, const Program& program, Visit visit) {
  const Chain* const chain = chain_of(command, program);
  if (chain == nullptr) return;
  const std::size_t first = first_operand_tile(command);
  std::size_t count = 0;
  for (const Stage& stage : chain->stages) {
    if (stage.operand != Operand::kTensor) continue;
    visit(count == 0 ? OperandTile{command.tensor, command.tensor_pitch}
                     : program.operand_tiles.at(first + count - 1),
          stage.tensor);
    ++count;
  }
}

namespace ranges {

/// What a chain reads beside its values, and what it leaves in the row statistics.
template <typename Visit>
void visit_operands(const Command& command, const Program& program, Visit visit) {
  const Chain& chain = *chain_of(command, program);
  const std::uint64_t cols = command.n;
  if (const std::uint64_t words = parameter_words(chain); words != 0) {
    visit(bounding_range(Space::kScratchpad, command.parameters, words, cols * 4, cols * 4, false));
  }
  if (const std::uint64_t words = statistics_words(chain); words != 0) {
    visit(bounding_range(Space::kStatistics, command.statistics, command.m, words, words,
                         writes_row_statistics(chain)));
  }
  for_each_operand(command, program, [&](const OperandTile& tile, DType type) {
    visit(bounding_range(Space::kDram, tile.address, command.m, cols * bytes_of(type), tile.pitch,
                         false));
  });
}

template <typename Visit>
void visit_store(const Command& command, const Program& program, Visit visit) {
  visit(
      bounding_range(Space::kAccumulator, command.c, command.m, command.n, command.c_pitch, false));
  visit_operands(command, program, visit);
  const std::uint64_t rows = stored_rows(command, program);
  const std::uint64_t width = stored_row_bytes(command, program);
  if (command.opcode == Opcode::kStore) {
    visit(bounding_range(Space::kDram, command.dram, rows, width, command.dram_pitch, true));
  } else {
    visit(bounding_range(Space::kScratchpad, command.b, rows, width, command.b_pitch, true));
  }
}

template <typename Visit>
void visit_load(const Command& command, const Program& program, Visit visit) {
  const std::uint64_t n = command.n;
  visit(bounding_range(Space::kDram, command.dram, command.m, n * bytes_of(command.type),
                       command.dram_pitch, false));
  if (command.mix != 0) visit_operands(command, program, visit);
  if (command.opcode == Opcode::kLoad) {
    visit(bounding_range(Space::kScratchpad, command.a, command.m, n, command.a_pitch, true));
  } else {
    visit(bounding_range(Space::kAccumulator, command.c, command.m, n, command.c_pitch, true));
  }
}

template <typename Visit>
void visit_matmul(const Command& command, Visit visit) {
  const std::uint64_t n = command.n;
  const std::uint64_t k = command.k;
  visit(bounding_range(Space::kScratchpad, command.a, command.m, k, command.a_pitch, false));
  visit(bounding_range(Space::kScratchpad, command.b, command.b_transposed ? n : k,
                       command.b_transposed ? k : n, command.b_pitch, false));
  visit(bounding_range(Space::kAccumulator, command.c, command.m, n, command.c_pitch, true));
}

// The engines' buffers are in the scratchpad and the accumulator: nothing else may be there.
template <typename Visit>
void visit_attention(const Command& command, const Program& program, Visit visit) {
  const LayerMask& mask = program.masks.at(command.parameters);
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t heads = command.statistics;
  const std::uint64_t keys = command.c_pitch;
  const auto operand = [&](std::uint64_t address, std::uint64_t rows, std::uint64_t width,
                           std::uint64_t pitch, bool write) {
    visit(bounding_range(Space::kDram, address, rows, width, pitch, write));
  };
  const auto stored_heads = [&](std::size_t operand_mix) {
    return command.mix == 0 ? heads : program.mixes.at(operand_mix).in_heads;
  };
  operand(command.dram, command.m, stored_heads(command.mix - std::size_t{1}) * command.k,
          command.dram_pitch, false);
  operand(command.a, keys, stored_heads(command.mix) * command.k, command.a_pitch, false);
  operand(command.b, keys, heads * command.n, command.b_pitch, false);
  operand(command.tensor, command.m, heads * command.n, command.tensor_pitch, true);
  visit(
      Range{Space::kDram, mask.address, saturating_end(mask.address, mask.bytes.size(), 1), false});
  visit(Range{Space::kScratchpad, 0, kAll, true});
  visit(Range{Space::kAccumulator, 0, kAll, true});
}

template <typename Visit>
void visit_host(const Command& command, const Program& program, Visit visit) {
  const HostFunction& function = program.host_functions.at(command.chain);
  const std::uint64_t m = command.m;
  const std::uint64_t n = command.n;
  visit(bounding_range(Space::kDram, command.dram, m, n * bytes_of(function.in), command.dram_pitch,
                       false));
  if (operands_of(function.op) > 1) {
    visit(bounding_range(Space::kDram, command.a, m, n * bytes_of(function.tensor), command.a_pitch,
                         false));
  }
  visit(bounding_range(Space::kDram, command.tensor, m, n * bytes_of(function.out),
                       command.tensor_pitch, true));
}

template <typename Visit>
void visit_loop(const Command& command, const Program& program, Visit visit) {
  const std::uint64_t m = command.m, n = command.n, k = command.k;
  visit(bounding_range(Space::kDram, command.dram, m, k, command.dram_pitch, false));
  visit(bounding_range(Space::kDram, command.a, k, n, command.a_pitch, false));
  if (command.b != 0) {
    visit(bounding_range(Space::kDram, command.b, m, n * 4, command.b_pitch, false));
  }
  if (command.tensor != 0) {
    visit(bounding_range(Space::kDram, command.tensor, m, stored_row_bytes(command, program),
                         command.tensor_pitch, true));
  }
}

}  // namespace ranges

/// Calls visit(Range) for every range of ranges_of(), in its order.
template <typename Visit>
void for_each_range(const Command& command, const Program& program, Visit visit) {
  switch (command.opcode) {
    case Opcode::kEnd:
      break;
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      ranges::visit_load(command, program, visit);
      break;
    case Opcode::kMatmul:
      ranges::visit_matmul(command, visit);
      break;
    case Opcode::kStore:
    case Opcode::kMove:
      ranges::visit_store(command, program, visit);
      break;
    case Opcode::kAttention:
      ranges::visit_attention(command, program, visit);
      break;
    case Opcode::kHost:
      ranges::visit_host(command, program, visit);
      break;
    case Opcode::kLoop:
      ranges::visit_loop(command, program, visit);
      break;
  }
}

}  // namespace systole::hw
