#include "hw/postop/result_flow.h"

#include "base/round.h"
#include "hw/array/accumulator.h"

namespace systole::hw {
namespace {

/// Whether vectors wait for serial units. Those behind a row-wise stage have long finished.
bool waits_for_units(const Chain& chain) {
  const Stage* const waits = waiting_stage(chain);
  return waits != nullptr && !stage_info(waits->op).row_wise;
}

}  // namespace

ResultFlow::ResultFlow(const ChainCycles& stages, const Chain& chain, std::uint64_t rows,
                       std::uint64_t cols, std::uint32_t lanes, std::uint64_t read, bool whole)
    : even_(tensor_operands(chain) == 0 && !waits_for_units(chain)),
      vectors_(ceil_div(cols, std::uint64_t{lanes})),
      left_(rows * vectors_),
      last_(left_ - 1),
      whole_(whole) {
  if (!even_) {
    stages_ = StageFlow(chain, rows, cols, lanes, read - kAccumulatorReadCycles);
    passes_ = row_passes(chain);
    reads_ = RowOrder(rows, vectors_, passes_);
    return;
  }
  // All results of a cycle at once: what they leave in is not the stages'.
  constexpr std::uint64_t kWide = std::uint64_t{1} << 40U;
  const ResultCycles cycles = result_cycles(stages, chain, rows, cols, lanes, kWide, read);
  const std::uint64_t columns = transposes(chain) ? cols : 0;  // they leave after the stages
  const std::uint64_t begin = cycles.fill - columns;
  gap_ = cycles.per_row - vectors_;
  due_ = begin + gap_;
  if (cycles.reads <= cycles.waiting) {
    read_ = cycles.reads;
  } else {
    read_due_ = begin + rows * cycles.per_row - (cycles.drain - columns);
  }
}

void ResultFlow::start(std::uint64_t started, std::uint64_t set_up) {
  cycle_ = started + 1;
  first_ = started + set_up;
  due_ += first_;
  read_due_ += first_;
  if (read_ != 0) read_ += first_;
}

std::optional<bool> ResultFlow::can_read(const OperandTimes& operands) const {
  if (cycle_ < first_ || reads_.over()) return false;
  if (operands.there == nullptr) return true;
  const std::uint64_t vector = whole_ ? last_ : reads_.row() * vectors_ + reads_.vector();
  if (vector < operands.known) return operands.there[vector] < cycle_;
  if (cycle_ <= operands.not_before) return false;
  return std::nullopt;
}

std::optional<std::uint64_t> ResultFlow::next(const OperandTimes& operands) {
  if (even_) return due_;
  for (;; ++cycle_) {
    const bool result = stages_.has_result(sums_there_);
    if (result && !is_taken_) return cycle_;
    const std::optional<bool> can = can_read(operands);
    if (!can) return std::nullopt;
    const bool refused = result && cycle_ < taken_;
    if (result && !refused) is_taken_ = false;
    const bool in = stages_.step(sums_there_, refused);
    const bool reads = *can && (!sums_there_ || in);
    sums_there_ = reads || (sums_there_ && !in);
    if (!reads) continue;
    reads_.next();
    ++in_;
    if (reads_.over()) read_ = cycle_ + 1;
  }
}

void ResultFlow::take(std::uint64_t cycle) {
  --left_;
  if (!even_) {
    is_taken_ = true;
    taken_ = cycle;
    in_ -= passes_;
    return;
  }
  // While it waits nothing is read.
  if (due_ < read_due_) read_due_ += cycle - due_;
  due_ = cycle + 1;
  if (++in_row_ < vectors_) return;
  in_row_ = 0;
  due_ += gap_;
}

std::optional<std::uint64_t> ResultFlow::sums_read() const {
  if (read_ != 0) return read_;
  if (even_ && (left_ == 0 || due_ >= read_due_)) return read_due_;
  return std::nullopt;
}

}  // namespace systole::hw
