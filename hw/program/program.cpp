#include "hw/program/program.h"

#include "base/units.h"
#include "hw/number/weight_groups.h"
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

ReadRows read_rows(const cmd::Load& load) {
  if (load.packed()) {
    return {load.m / kGroupWeights, packed_group_bytes(load.format, load.n)};
  }
  return {load.m, std::uint64_t{load.n} * bytes_of(load.type)};
}

bool loop_takes(const Chain& chain) {
  const std::size_t bytes = bytes_of(chain.out);
  return (bytes == 1 || bytes == 4) && parameter_words(chain) == 0 && tensor_operands(chain) == 0 &&
         statistics_words(chain) == 0 && !is_row_wise(chain) && !transposes(chain) &&
         !uses_valid_cols(chain);
}

StoredShape a_shape(const cmd::Matmul& matmul) {
  return stored_shape(matmul.m, matmul.k, true, matmul.a_int4);
}

StoredShape b_shape(const cmd::Matmul& matmul) {
  const bool transposed = matmul.b_transposed;
  return stored_shape(transposed ? matmul.n : matmul.k, transposed ? matmul.k : matmul.n,
                      transposed, matmul.b_int4);
}

CommandShape shape_of(const Command& command) {
  return std::visit(
      [](const auto& work) -> CommandShape {
        using T = std::decay_t<decltype(work)>;
        if constexpr (std::is_same_v<T, cmd::End>) {
          return {};
        } else if constexpr (std::is_same_v<T, cmd::Attention>) {
          return {work.queries, work.n, work.k};
        } else if constexpr (std::is_same_v<T, cmd::Matmul> || std::is_same_v<T, cmd::Loop>) {
          return {work.m, work.n, work.k};
        } else {
          return {work.m, work.n, 0};
        }
      },
      command.work);
}

const ChainUse* chain_use(const Command& command) {
  if (const auto* const result = command.as<cmd::Result>()) return &result->chain;
  const auto* const load = command.as<cmd::Load>();
  return load != nullptr && load->pre ? &*load->pre : nullptr;
}

const Chain& chain_of(const ChainUse& use, const Program& program) {
  return program.chains.at(use.chain);
}

std::vector<DramTile> operands_of(const ChainUse& use, const Program& program) {
  std::vector<DramTile> tiles;
  for_each_operand(use, program, [&](const DramTile& tile, DType) { tiles.push_back(tile); });
  return tiles;
}

namespace {

WrittenRows rows_after(const Chain& chain, std::uint64_t m, std::uint64_t n, bool int4 = false) {
  const std::uint64_t rows = transposes(chain) ? n : m, cols = transposes(chain) ? m : n;
  return {rows, stored_bytes<std::uint64_t>(cols, int4, bytes_of(chain.out))};
}

}  // namespace

WrittenRows written_rows(const cmd::Store& store, const Program& program) {
  WrittenRows rows = rows_after(chain_of(store.chain, program), store.m, store.n, store.int4);
  if (store.encoder) {
    const HeadMix& mix = program.mixes.at(*store.encoder);
    rows.bytes = std::uint64_t{store.n} / mix.in_heads * mix.out_heads;
  }
  return rows;
}

WrittenRows written_rows(const cmd::Move& move, const Program& program) {
  return rows_after(chain_of(move.chain, program), move.m, move.n, move.int4);
}

WrittenRows written_rows(const cmd::Loop& loop, const Program& program) {
  return rows_after(program.chains.at(loop.chain), loop.m, loop.n);
}

namespace {

/// Bytes of a row of all tensor operands.
std::uint64_t operand_row_bytes(std::uint64_t cols, const Chain& chain) {
  std::uint64_t bytes = 0;
  for (const DType type : tensor_types(chain)) bytes += cols * bytes_of(type);
  return bytes;
}

}  // namespace

std::uint64_t staged_rows(std::uint64_t cols, DType type, const Chain& chain,
                          const Machine::Postop& postop) {
  return postop.operand_kib * kKib / (cols * bytes_of(type) + operand_row_bytes(cols, chain));
}

std::uint64_t operand_block(const cmd::Result& result, const Chain& chain,
                            const Machine::Postop& postop) {
  const std::uint64_t bytes = operand_row_bytes(result.n, chain);
  const std::uint64_t room = postop.operand_kib * kKib;
  if (result.m * bytes <= room) return result.m;
  return transposes(chain) ? postop.lanes : room / bytes / 2;
}

std::vector<Range> ranges_of(const Command& command, const Program& program) {
  std::vector<Range> ranges;
  for_each_range(command, program, [&](const Range& range) { ranges.push_back(range); });
  return ranges;
}

}  // namespace systole::hw
