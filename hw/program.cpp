#include "hw/program.h"

#include <limits>

namespace systole::hw {
namespace {

/// a + b * c, or the highest value if that overflows.
std::uint64_t saturating_end(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  constexpr std::uint64_t kHighest = std::numeric_limits<std::uint64_t>::max();
  if (c != 0 && b > (kHighest - a) / c) return kHighest;
  return a + b * c;
}

/// Bounding range of `rows` runs of `width` units, `pitch` apart.
Range tile(Space space, std::uint64_t begin, std::uint64_t rows, std::uint64_t width,
           std::uint64_t pitch, bool write) {
  if (rows == 0 || width == 0) return {space, begin, begin, write};
  return {space, begin, saturating_end(saturating_end(begin, width, 1), rows - 1, pitch), write};
}

/// What a chain reads beside its values, and what it leaves in the row statistics.
void add_operand_ranges(const Command& command, const Program& program,
                        std::vector<Range>& ranges) {
  const Chain& chain = *chain_of(command, program);
  const std::uint64_t cols = command.n;
  if (const std::uint64_t words = parameter_words(chain); words != 0) {
    ranges.push_back(
        tile(Space::kScratchpad, command.parameters, words, cols * 4, cols * 4, false));
  }
  if (const std::uint64_t words = statistics_words(chain); words != 0) {
    ranges.push_back(tile(Space::kStatistics, command.statistics, command.m, words, words,
                          writes_row_statistics(chain)));
  }
  const std::vector<DType> types = tensor_types(chain);
  const std::vector<OperandTile> tiles = operands_of(command, program);
  for (std::size_t i = 0; i < types.size(); ++i) {
    ranges.push_back(tile(Space::kDram, tiles[i].address, command.m, cols * bytes_of(types[i]),
                          tiles[i].pitch, false));
  }
}

void add_store_ranges(const Command& command, const Program& program, std::vector<Range>& ranges) {
  ranges.push_back(
      tile(Space::kAccumulator, command.c, command.m, command.n, command.c_pitch, false));
  add_operand_ranges(command, program, ranges);
  const std::uint64_t rows = stored_rows(command, program);
  const std::uint64_t width = stored_row_bytes(command, program);
  if (command.opcode == Opcode::kStore) {
    ranges.push_back(tile(Space::kDram, command.dram, rows, width, command.dram_pitch, true));
  } else {
    ranges.push_back(tile(Space::kScratchpad, command.b, rows, width, command.b_pitch, true));
  }
}

void add_load_ranges(const Command& command, const Program& program, std::vector<Range>& ranges) {
  const std::uint64_t n = command.n;
  ranges.push_back(tile(Space::kDram, command.dram, command.m, n * bytes_of(command.type),
                        command.dram_pitch, false));
  if (command.mix != 0) add_operand_ranges(command, program, ranges);
  if (command.opcode == Opcode::kLoad) {
    ranges.push_back(tile(Space::kScratchpad, command.a, command.m, n, command.a_pitch, true));
  } else {
    ranges.push_back(tile(Space::kAccumulator, command.c, command.m, n, command.c_pitch, true));
  }
}

// The engines' buffers stand in the scratchpad and the accumulator: nothing else may be there.
void add_attention_ranges(const Command& command, const Program& program,
                          std::vector<Range>& ranges) {
  const LayerMask& mask = program.masks.at(command.parameters);
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t heads = command.statistics;
  const std::uint64_t keys = command.c_pitch;
  const auto operand = [&](std::uint64_t address, std::uint64_t rows, std::uint64_t width,
                           std::uint64_t pitch, bool write) {
    ranges.push_back(tile(Space::kDram, address, rows, width, pitch, write));
  };
  const auto stored_heads = [&](std::size_t operand_mix) {
    return command.mix == 0 ? heads : program.mixes.at(operand_mix).in_heads;
  };
  operand(command.dram, command.m, stored_heads(command.mix - std::size_t{1}) * command.k,
          command.dram_pitch, false);
  operand(command.a, keys, stored_heads(command.mix) * command.k, command.a_pitch, false);
  operand(command.b, keys, heads * command.n, command.b_pitch, false);
  operand(command.tensor, command.m, heads * command.n, command.tensor_pitch, true);
  ranges.push_back(
      {Space::kDram, mask.address, saturating_end(mask.address, mask.bytes.size(), 1), false});
  ranges.push_back({Space::kScratchpad, 0, kAll, true});
  ranges.push_back({Space::kAccumulator, 0, kAll, true});
}

void add_host_ranges(const Command& command, const Program& program, std::vector<Range>& ranges) {
  const HostFunction& function = program.host_functions.at(command.chain);
  const std::uint64_t m = command.m;
  const std::uint64_t n = command.n;
  ranges.push_back(
      tile(Space::kDram, command.dram, m, n * bytes_of(function.in), command.dram_pitch, false));
  if (operands_of(function.op) > 1) {
    ranges.push_back(
        tile(Space::kDram, command.a, m, n * bytes_of(function.tensor), command.a_pitch, false));
  }
  ranges.push_back(tile(Space::kDram, command.tensor, m, n * bytes_of(function.out),
                        command.tensor_pitch, true));
}

}  // namespace

std::string_view name_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kEnd:
      return "end";
    case Opcode::kLoad:
      return "load";
    case Opcode::kLoadAccumulator:
      return "load_accumulator";
    case Opcode::kMatmul:
      return "matmul";
    case Opcode::kStore:
      return "store";
    case Opcode::kMove:
      return "move";
    case Opcode::kAttention:
      return "attention";
    case Opcode::kHost:
      return "host";
  }
  return "?";
}

Unit unit_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      return Unit::kLoad;
    case Opcode::kMatmul:
    case Opcode::kAttention:
      return Unit::kCompute;
    case Opcode::kHost:
      return Unit::kHost;
    case Opcode::kStore:
    case Opcode::kMove:
    case Opcode::kEnd:
      break;
  }
  return Unit::kStore;
}

const Chain* chain_of(const Command& command, const Program& program) {
  switch (command.opcode) {
    case Opcode::kStore:
    case Opcode::kMove:
      return &program.chains.at(command.chain);
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      return command.mix == 0 ? nullptr : &program.chains.at(command.mix - std::size_t{1});
    default:
      return nullptr;
  }
}

std::vector<OperandTile> operands_of(const Command& command, const Program& program) {
  const Chain* const chain = chain_of(command, program);
  const std::size_t count = chain == nullptr ? 0 : tensor_operands(*chain);
  std::vector<OperandTile> tiles;
  if (count == 0) return tiles;
  tiles.push_back({command.tensor, command.tensor_pitch});
  const bool load = unit_of(command.opcode) == Unit::kLoad;
  const std::size_t first = load ? command.b : command.a;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    tiles.push_back(program.operand_tiles.at(first + i));
  }
  return tiles;
}

std::uint64_t stored_rows(const Command& command, const Program& program) {
  return transposes(program.chains.at(command.chain)) ? command.n : command.m;
}

std::uint64_t stored_row_bytes(const Command& command, const Program& program) {
  const Chain& chain = program.chains.at(command.chain);
  if (command.mix == 0) {
    return std::uint64_t{transposes(chain) ? command.m : command.n} * bytes_of(chain.out);
  }
  const HeadMix& mix = program.mixes.at(command.mix - std::size_t{1});
  return std::uint64_t{command.n} / mix.in_heads * mix.out_heads;
}

std::vector<Range> ranges_of(const Command& command, const Program& program) {
  std::vector<Range> ranges;
  const std::uint64_t m = command.m;
  const std::uint64_t n = command.n;
  const std::uint64_t k = command.k;
  switch (command.opcode) {
    case Opcode::kEnd:
      break;
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      add_load_ranges(command, program, ranges);
      break;
    case Opcode::kMatmul:
      ranges.push_back(tile(Space::kScratchpad, command.a, m, k, command.a_pitch, false));
      ranges.push_back(tile(Space::kScratchpad, command.b, command.b_transposed ? n : k,
                            command.b_transposed ? k : n, command.b_pitch, false));
      ranges.push_back(tile(Space::kAccumulator, command.c, m, n, command.c_pitch, true));
      break;
    case Opcode::kStore:
    case Opcode::kMove:
      add_store_ranges(command, program, ranges);
      break;
    case Opcode::kAttention:
      add_attention_ranges(command, program, ranges);
      break;
    case Opcode::kHost:
      add_host_ranges(command, program, ranges);
      break;
  }
  return ranges;
}

}  // namespace systole::hw
