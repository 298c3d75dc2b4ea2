#include "hw/postop/result_cycles.h"

#include <utility>

#include "hw/postop/row_flow.h"

namespace systole::hw {
namespace {

/// Pieces in which a vector of `lanes` values leaves, or comes.
std::uint64_t pieces_of(DType type, std::uint64_t lanes, std::uint64_t piece) {
  return ceil_div(lanes * bytes_of(type), piece);
}

/// The vectors of a tile, last one first, as a stage takes them that holds up those before it: in
/// intervals of a row, with a slot for each pass (RowOrder).
class VectorsBack {
 public:
  VectorsBack(std::uint64_t rows, std::uint64_t vectors, std::uint32_t passes,
              std::uint64_t interval)
      : rows_(rows),
        vectors_(vectors),
        passes_(passes),
        interval_cycles_(interval),
        interval_(passes == kMostPasses ? rows + 1 : rows - 1),
        slot_(passes - 1),
        vector_(vectors - 1),
        last_(cycle()) {}

  /// Cycles that this one comes before the last.
  [[nodiscard]] std::uint64_t before() const { return last_ - cycle(); }
  /// What the stage makes of it is a result.
  [[nodiscard]] bool is_result() const { return slot_ == passes_ - 1; }
  /// Goes on to the one before. There is one.
  void next() {
    if (vector_-- != 0) return;
    vector_ = vectors_ - 1;
    do {
      if (slot_-- != 0) continue;
      slot_ = passes_ - 1;
      --interval_;
    } while (!has_row());
  }

 private:
  [[nodiscard]] std::uint64_t cycle() const {
    return interval_ * interval_cycles_ + slot_ * vectors_ + vector_;
  }
  [[nodiscard]] bool has_row() const {
    return passes_ != kMostPasses || (slot_ <= interval_ && interval_ - slot_ < rows_);
  }

  std::uint64_t rows_, vectors_;
  std::uint32_t passes_;
  std::uint64_t interval_cycles_, interval_;
  std::uint32_t slot_;
  std::uint64_t vector_, last_;
};

/// The stage that makes vectors wait for its statistics, if the chain has one.
const Stage* waiting_stage(const Chain& chain) {
  for (const Stage& stage : chain.stages) {
    if (stage_lead(stage) != 0 || stage_info(stage.op).row_wise) return &stage;
  }
  return nullptr;
}

/// From the cycle after that in which the last vector of sums is read to the one after that in
/// which the last piece of results leaves.
std::uint64_t drain_cycles(const ResultCycles& cycles, const Chain& chain, std::uint64_t rows,
                           std::uint64_t cols, std::uint64_t read) {
  std::uint64_t depth = 0;
  for (const Stage& stage : chain.stages) depth += stage_latency(stage);
  if (transposes(chain)) return read + depth + cols;
  const std::uint64_t vectors = cycles.vectors;
  const Stage* const waits = waiting_stage(chain);
  if (waits == nullptr || !stage_info(waits->op).row_wise) {
    // As many vectors as are in the stages leave before the last one does, in pieces.
    return read + depth + ceil_div(cycles.pieces * std::min(depth, rows * vectors), vectors);
  }
  // Stages that are full take the last one when one leaves that is as far ahead as they are deep.
  const std::uint64_t ahead = std::min(cycles.waiting, cycles.reads - 1);
  VectorsBack left(rows, vectors, row_passes(chain), stage_interval(*waits, vectors));
  std::uint64_t results = 0, vector = 0;
  const auto next = [&] {
    results += left.is_result() ? 1 : 0;
    left.next();
    ++vector;
  };
  while (vector < ahead) next();
  const std::uint64_t after = depth + read - cycles.waiting;  // the stages from that one on
  const std::uint64_t entered = left.before() + cycles.waiting - ahead;
  const std::uint64_t drain = entered + after;
  if (cycles.pieces == 0) return drain;
  while (vector + 1 < cycles.reads && left.before() + read < drain) next();
  return drain + ceil_div(cycles.pieces * results, vectors);
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
  if (const Stage* const waits = waiting_stage(chain)) {
    cycles.waiting = read;
    for (const Stage* stage = chain.stages.data(); stage != waits; ++stage) {
      cycles.waiting += stage_latency(*stage);
    }
  }
  cycles.side = side_cycles(chain);
  cycles.drain = drain_cycles(cycles, chain, rows, cols, read);
  return cycles;
}

std::optional<std::uint64_t> sums_read(const ResultCycles& cycles, std::uint64_t done,
                                       std::uint64_t left, std::uint64_t end) {
  end = std::max(end, done + left * cycles.per_row);
  const std::uint64_t read = end - std::min(end, cycles.drain);
  if (left != 0 && read > done) return std::nullopt;
  return read;
}

RowClock::RowClock(const ResultCycles& cycles, std::uint64_t started, std::uint64_t set_up)
    : cycles_(cycles), all_read_(started + set_up + cycles.reads) {
  const std::uint64_t late = std::max(set_up, cycles.lead) - cycles.lead;
  const std::uint64_t begin = done_ = started + cycles.fill + late;
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

std::uint64_t RowClock::stalls_before_taken(std::uint64_t vectors) const {
  const std::uint64_t behind = cycles_.latency - cycles_.to_factors;
  const std::uint64_t left = cycles_.vectors - std::min(behind, cycles_.vectors);
  return cycles_.pieces * std::min(vectors, left) / cycles_.vectors;
}

void RowClock::leave(std::uint64_t earliest) {
  out_ = std::max(out_ + cycles_.stream, earliest);
  if (units_ != 0) {
    const std::uint64_t factor = next_factor();
    const std::uint64_t behind = cycles_.latency - cycles_.to_factors;
    out_ = std::max(out_, factor + cycles_.vectors + behind - held_before(factor));
    taken_ = reached(out_ - behind) + stalls_before_taken(cycles_.vectors);
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

std::optional<std::uint64_t> RowClock::sums_read(std::uint64_t left, std::uint64_t end) const {
  if (cycles_.waiting != 0 && cycles_.reads <= cycles_.waiting) {
    return std::max(all_read_, end - std::min(end, cycles_.drain));
  }
  if (cycles_.waiting != 0 && units_ != 0) {
    // The last one is read when one leaves that is as far ahead.
    const std::uint64_t row = cycles_.waiting / cycles_.vectors;
    if (left > row) return std::nullopt;
    const std::uint64_t ahead = cycles_.waiting % cycles_.vectors;
    return taken_ - ahead - stalls_before_taken(ahead);
  }
  return hw::sums_read(cycles_, done_, left, end);
}

void RowClock::hold(std::uint64_t cycles) {
  if (cycles == 0) return;
  held_ += cycles;
  const std::uint64_t leaves = cycles_.vectors + cycles_.pieces;
  keep({done_ - std::min(leaves, done_), done_ - 1 + cycles, cycles});
  done_ += cycles;
}

}  // namespace systole::hw
