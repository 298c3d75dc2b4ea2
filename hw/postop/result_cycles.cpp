#include "hw/postop/result_cycles.h"

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

const Stage* waiting_stage(const Chain& chain) {
  for (const Stage& stage : chain.stages) {
    if (stage_lead(stage) != 0 || stage_info(stage.op).row_wise) return &stage;
  }
  return nullptr;
}

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
  const std::uint64_t latency = row - std::min(row, vectors);
  cycles.after_operands = kOperandCycles + latency + cycles.pieces;
  const std::vector<DType> tensors = tensor_types(chain);
  if (has_one_pass && cycles.pieces != 0 && !tensors.empty()) {
    // Vectors go in as they come, and the first ones of a long row have left by then.
    const std::uint64_t apart = pieces_of(tensors.back(), lanes, piece);
    const std::uint64_t inside = std::min(vectors, 1 + (latency - 1) / apart);
    cycles.after_operands -= (vectors - inside) * (pieces_of(chain.out, lanes, piece) - 1);
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

}  // namespace systole::hw
