#include "hw/program/program.h"

#include "hw/program/program_ranges.h"

namespace systole::hw {
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
    case Opcode::kLoop:
      return "loop";
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
    case Opcode::kLoop:
      return Unit::kLoop;
    case Opcode::kStore:
    case Opcode::kMove:
    case Opcode::kEnd:
      break;
  }
  return Unit::kStore;
}

bool loop_takes(const Chain& chain) {
  const std::size_t bytes = bytes_of(chain.out);
  return (bytes == 1 || bytes == 4) && parameter_words(chain) == 0 && tensor_operands(chain) == 0 &&
         statistics_words(chain) == 0 && !is_row_wise(chain) && !transposes(chain) &&
         !uses_valid_cols(chain);
}

const Chain* chain_of(const Command& command, const Program& program) {
  switch (command.opcode) {
    case Opcode::kStore:
    case Opcode::kMove:
    case Opcode::kLoop:
      return &program.chains.at(command.chain);
    case Opcode::kLoad:
    case Opcode::kLoadAccumulator:
      return command.mix == 0 ? nullptr : &program.chains.at(command.mix - std::size_t{1});
    default:
      return nullptr;
  }
}

std::vector<OperandTile> operands_of(const Command& command, const Program& program) {
  std::vector<OperandTile> tiles;
  for_each_operand(command, program,
                   [&](const OperandTile& tile, DType) { tiles.push_back(tile); });
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
  for_each_range(command, program, [&](const Range& range) { ranges.push_back(range); });
  return ranges;
}

}  // namespace systole::hw
