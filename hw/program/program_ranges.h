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

/// Calls visit(DramTile, DType) for the tensor operands of a chain, in the order of its stages.
/// They must exist.
template <typename Visit>
void for_each_operand(const ChainUse& use, const Program& program, Visit visit) {
  std::size_t count = 0;
  for (const Stage& stage : chain_of(use, program).stages) {
    if (stage.operand != Operand::kTensor) continue;
    visit(count == 0 ? use.tensor : program.operand_tiles.at(use.operands + count - 1),
          stage.tensor);
    ++count;
  }
}

/// Visits the ranges of a command; a function for every type of work.
template <typename Visit>
class RangeVisitor {
 public:
  RangeVisitor(const Program& program, Visit& visit) : program_(program), visit_(visit) {}

  void operator()(const cmd::End& /*end*/) {}

  void operator()(const cmd::Load& load) {
    load_tile(load);
    visit_(
        bounding_range(Space::kScratchpad, load.to.address, load.m, load.n, load.to.pitch, true));
  }
  void operator()(const cmd::LoadAccumulator& load) {
    load_tile(load);
    visit_(
        bounding_range(Space::kAccumulator, load.to.address, load.m, load.n, load.to.pitch, true));
  }

  void operator()(const cmd::Matmul& mm) {
    const StoredShape a = a_shape(mm), b = b_shape(mm);
    visit_(bounding_range(Space::kScratchpad, mm.a.address, a.rows, a.cols, mm.a.pitch, false));
    visit_(bounding_range(Space::kScratchpad, mm.b.address, b.rows, b.cols, mm.b.pitch, false));
    visit_(bounding_range(Space::kAccumulator, mm.c.address, mm.m, mm.n, mm.c.pitch, true));
  }

  void operator()(const cmd::Store& store) {
    result(store);
    const WrittenRows written = written_rows(store, program_);
    dram(store.to, written.rows, written.bytes, true);
  }
  void operator()(const cmd::Move& move) {
    result(move);
    const WrittenRows written = written_rows(move, program_);
    visit_(bounding_range(Space::kScratchpad, move.to.address, written.rows, written.bytes,
                          move.to.pitch, true));
  }

  // The engines' buffers are in the scratchpad and the accumulator: nothing else may be there.
  void operator()(const cmd::Attention& attention) {
    const LayerMask& mask = program_.masks.at(attention.mask);
    constexpr std::uint64_t kAll = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t heads = attention.heads;
    const auto stored_heads = [&](std::size_t operand) {
      return attention.decoders ? program_.mixes.at(*attention.decoders + operand).in_heads : heads;
    };
    dram(attention.query, attention.queries, stored_heads(0) * attention.k, false);
    dram(attention.key, attention.keys, stored_heads(1) * attention.k, false);
    dram(attention.value, attention.keys, heads * attention.n, false);
    dram(attention.out, attention.queries, heads * attention.n, true);
    visit_(Range{Space::kDram, mask.address, saturating_end(mask.address, mask.bytes.size(), 1),
                 false});
    visit_(Range{Space::kScratchpad, 0, kAll, true});
    visit_(Range{Space::kAccumulator, 0, kAll, true});
  }

  void operator()(const cmd::HostCall& call) {
    const HostFunction& function = program_.host_functions.at(call.function);
    const std::uint64_t n = call.n;
    dram(call.in, call.m, n * bytes_of(function.in), false);
    if (operands_of(function.op) > 1) {
      dram(call.operand, call.m, n * bytes_of(function.tensor), false);
    }
    dram(call.out, call.m, n * bytes_of(function.out), true);
  }

  void operator()(const cmd::Loop& loop) {
    dram(loop.a, loop.m, loop.k, false);
    dram(loop.b, loop.k, loop.n, false);
    if (loop.d.address != 0) dram(loop.d, loop.m, std::uint64_t{loop.n} * 4, false);
    if (loop.c.address != 0) dram(loop.c, loop.m, written_rows(loop, program_).bytes, true);
  }

 private:
  void dram(const DramTile& tile, std::uint64_t rows, std::uint64_t width, bool write) {
    visit_(bounding_range(Space::kDram, tile.address, rows, width, tile.pitch, write));
  }

  void load_tile(const cmd::Load& load) {
    if (load.window) {
      const WindowSpan span = window_span(*load.window, load.m, load.from.pitch);
      visit_(Range{Space::kDram, saturating_end(load.from.address, span.begin, 1),
                   saturating_end(load.from.address, span.end, 1), false});
      return;
    }
    const ReadRows read = read_rows(load);
    dram(load.from, read.rows, read.bytes, false);
    if (load.pre) operands(*load.pre, load.m, load.n);
  }

  void result(const cmd::Result& result) {
    visit_(bounding_range(Space::kAccumulator, result.from.address, result.m, result.n,
                          result.from.pitch, false));
    operands(result.chain, result.m, result.n);
  }

  /// What a chain reads beside its values, and what it leaves in the row statistics.
  void operands(const ChainUse& use, std::uint64_t rows, std::uint64_t cols) {
    const Chain& chain = chain_of(use, program_);
    if (const std::uint64_t words = parameter_words(chain); words != 0) {
      visit_(bounding_range(Space::kScratchpad, use.parameters, words, cols * 4, cols * 4, false));
    }
    if (const std::uint64_t words = statistics_words(chain); words != 0) {
      visit_(bounding_range(Space::kStatistics, use.statistics, rows, words, words,
                            writes_row_statistics(chain)));
    }
    for_each_operand(use, program_, [&](const DramTile& tile, DType type) {
      dram(tile, rows, cols * bytes_of(type), false);
    });
  }

  const Program& program_;
  Visit& visit_;
};

/// Calls visit(Range) for every range of ranges_of(), in its order.
template <typename Visit>
void for_each_range(const Command& command, const Program& program, Visit visit) {
  std::visit(RangeVisitor<Visit>(program, visit), command.work);
}

}  // namespace systole::hw
