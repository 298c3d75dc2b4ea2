#include "hw/postop/result_cycles.h"

#include <utility>

namespace systole::hw {
namespace {

/// Pieces in which a vector of `lanes` values leaves, or comes.
std::uint64_t pieces_of(DType type, std::uint64_t lanes, std::uint64_t piece) {
  return ceil_div(lanes * bytes_of(type), piece);
}

}  // namespace

ResultCycles result_cycles(const ChainCycles& stages, const Chain& chain, std::uint64_t rows,
                           std::uint64_t cols, std::uint32_t lanes, std::uint64_t piece,
                           std::uint64_t read) {
  const std::uint64_t vectors = ceil_div(cols, lanes);
  const bool has_one_pass = stages.reads == rows * vectors;
  ResultCycles cycles{stages};
  cycles.vectors = vectors;
  cycles.pieces = piece_cycles(chain, cols, lanes, piece);
  cycles.fill += read;
  cycles.per_row += cycles.pieces;
  const std::uint64_t row = cycles.fill - stages.lead + stages.per_row;
  cycles.latency = row - std::min(row, vectors);
  cycles.stream = has_one_pass ? std::min(vectors, stages.per_row) : stages.per_row;
  cycles.after_tile = kOperandCycles + row - std::min<std::uint64_t>(row, 1) + cycles.pieces;
  const std::vector<DType> tensors = tensor_types(chain);
  if (has_one_pass && cycles.pieces != 0 && !tensors.empty()) {
    // Vectors go in as they come, and the first ones of a long row have left by then.
    const std::uint64_t apart = pieces_of(tensors.back(), lanes, piece);
    const std::uint64_t inside = std::min(vectors, 1 + (cycles.latency - 1) / apart);
    cycles.left_before = (vectors - inside) * (pieces_of(chain.out, lanes, piece) - 1);
  }
  cycles.after_operands = kOperandCycles + cycles.latency + cycles.pieces - cycles.left_before;
  cycles.to_factors = read;
  for (const Stage& stage : chain.stages) {
    if (stage_lead(stage) != 0) {
      const bool has_units =
          stage.op == StageOp::kDivideRowSum || stage.op == StageOp::kLayerNormApply;
      cycles.units = has_units
                         ? factor_cycles(stage)
                         : FactorCycles{static_cast<std::uint32_t>(stage_interval(stage, vectors))};
      break;
    }
    cycles.to_factors += stage_latency(stage);
  }
  cycles.side = side_cycles(chain);
  cycles.drain = drain_cycles(chain, rows, cols, lanes, piece) + read;
  return cycles;
}

RowClock::RowClock(const ResultCycles& cycles, std::uint64_t begin, std::uint64_t late)
    : cycles_(cycles), done_(begin) {
  const std::uint64_t interval = cycles.per_row - cycles.pieces;
  out_ = begin + interval - cycles.stream;
  std::uint64_t made =
      begin + interval + cycles.to_factors - cycles.latency - cycles.vectors - late;
  while (units_ < made_.size() && cycles.units[units_] != 0) ++units_;
  for (std::size_t i = units_; i-- > 0;) {
    made_[i] = made;
    made -= cycles.units[i];
  }
}

std::uint64_t RowClock::next_factor() {
  if (std::exchange(is_first_, false)) return made_[units_ - 1];
  const FactorTimes before = made_;
  std::uint64_t at = before[0];
  for (std::size_t i = 0; i < units_; ++i) {
    // A unit hands on what it has made when the one after it has.
    at = std::max(at + cycles_.units[i], i + 1 < units_ ? before[i + 1] : taken_);
    made_[i] = at;
  }
  return at;
}

void RowClock::next(std::uint64_t there, bool tile) {
  // The pieces that are still to come are added with the row, and those of the rows before it.
  const std::uint64_t after =
      tile ? cycles_.after_tile - cycles_.pieces : kOperandCycles + cycles_.latency;
  const std::uint64_t stood =
      held_before(there + kOperandCycles) + (tile ? 0 : cycles_.left_before);
  leave(there + after - std::min(there + after, stood));
}

void RowClock::leave(std::uint64_t earliest) {
  out_ = std::max(out_ + cycles_.stream, earliest);
  if (units_ != 0) {
    const std::uint64_t factor = next_factor();
    const std::uint64_t behind = cycles_.latency - cycles_.to_factors;
    out_ = std::max(out_, factor + cycles_.vectors + behind - held_before(factor));
    taken_ = reached(out_ - behind);
  }
  const std::uint64_t done = out_ + held_ + cycles_.pieces;
  busy_ += std::min(done - done_, cycles_.per_row);
  done_ = done;
  if (cycles_.pieces == 0) return;
  held_ += cycles_.pieces;
  keep({done_ - cycles_.pieces - std::min(cycles_.stream, done_ - cycles_.pieces), done_,
        cycles_.pieces});
}

void RowClock::keep(const Hold& hold) { holds_[count_++ % kKept] = hold; }

std::uint64_t RowClock::held_before(std::uint64_t cycle) const {
  std::uint64_t held = held_;
  for (std::size_t i = count_; i + kKept > count_ && i != 0; --i) {
    const Hold& hold = holds_[(i - 1) % kKept];
    if (hold.to <= cycle) break;
    const std::uint64_t left = hold.to - std::max(hold.from, cycle);
    held -= hold.cycles * left / (hold.to - hold.from);
  }
  return held;
}

std::uint64_t RowClock::reached(std::uint64_t moved) const {
  std::uint64_t cycle = moved + held_;
  for (std::size_t i = count_; i + kKept > count_ && i != 0; --i) {
    const Hold& hold = holds_[(i - 1) % kKept];
    const std::uint64_t without = cycle - hold.cycles;
    const std::uint64_t moves = hold.to - hold.from - hold.cycles;
    if (without >= hold.from + moves) break;
    cycle = without;
    if (without <= hold.from) continue;
    cycle += hold.cycles * (without - hold.from) / moves;
    break;
  }
  return cycle;
}

void RowClock::hold(std::uint64_t cycles) {
  if (cycles == 0) return;
  held_ += cycles;
  const std::uint64_t leaves = cycles_.vectors + cycles_.pieces;
  keep({done_ - std::min(leaves, done_), done_ - 1 + cycles, cycles});
  done_ += cycles;
}

}  // namespace systole::hw
