#include "hw/postop/row_flow.h"

#include <algorithm>

#include "base/round.h"

namespace systole::hw {

std::uint32_t row_passes(const Chain& chain) {
  std::uint32_t passes = 0;
  for (const Stage& stage : chain.stages) passes = std::max(passes, statistics_passes(stage));
  return passes + 1;
}

void RowOrder::next() {
  if (++vector_ < vectors_) return;
  vector_ = 0;
  do {
    if (++slot_ < passes_) continue;
    slot_ = 0;
    ++interval_;
  } while (!over() && !has_row());
}

RowStage::RowStage(const Stage& stage, std::uint64_t rows, std::uint64_t vectors)
    : rows_(rows),
      vectors_(vectors),
      slots_(statistics_passes(stage) + 1),
      gap_(stage_interval(stage, vectors) - slots_ * vectors),
      line_(stage_latency(stage), false) {}

bool RowStage::active() const {
  if (slot_ == slots_) return false;  // the gap
  const bool first = slot_ == 0 || slots_ == 2;
  return first ? row_ != rows_ : slot_ == 1 ? row_b_ : row_c_;
}

void RowStage::next_slot() {
  const bool last_slot = slot_ == slots_ - 1;
  const bool over = last_slot && (slots_ == 2 ? row_ + 1 == rows_ : row_ == rows_ && !row_b_);
  at_ = 0;
  if (slot_ < slots_ && (!last_slot || (gap_ != 0 && !over))) {
    ++slot_;
    return;
  }
  slot_ = 0;
  if (over) {
    row_ = 0;
    busy_ = row_b_ = row_c_ = false;
    return;
  }
  row_c_ = row_b_;
  row_b_ = row_ != rows_;
  row_ += row_ != rows_ ? 1 : 0;
}

void RowStage::step(bool offered, bool refused) {
  const bool waits = busy_ && active() && !offered;
  const bool result = has_result();
  const bool begins = busy_ || offered;
  const bool last_pass = begins && active() && slot_ == slots_ - 1;
  taken_ = (refused || waits) && (taken_ || (result && !refused));
  if (refused || waits) return;
  line_.pop_back();
  line_.push_front(last_pass);
  if (!begins) return;
  busy_ = true;
  if (++at_ == (slot_ == slots_ ? gap_ : vectors_)) next_slot();
}

RowFactors::RowFactors(const Stage& stage, std::uint64_t rows, std::uint64_t vectors)
    : rows_(rows - 1), vectors_(vectors), left_(vectors) {
  for (const std::uint32_t cycles : factor_cycles(stage)) {
    if (cycles != 0) cycles_.push_back(cycles);
  }
  at_.resize(cycles_.size());
  at_[0] = 0;
}

void RowFactors::step(bool taken) {
  const bool row_end = taken && left_ == 1;
  if (taken) left_ = row_end ? vectors_ : left_ - 1;
  bool free = !valid_ || row_end;  // what comes after the unit
  valid_ = valid_ && !row_end;
  for (std::size_t unit = cycles_.size(); unit-- > 0;) {
    if (!at_[unit]) {
      free = true;
      continue;
    }
    const bool moves = ++*at_[unit] >= cycles_[unit] && free;
    free = moves;
    if (!moves) continue;
    at_[unit].reset();
    if (unit + 1 == cycles_.size()) {
      valid_ = true;
    } else {
      at_[unit + 1] = 0;
    }
    if (unit != 0 || rows_ == 0) continue;
    --rows_;
    at_[0] = 0;
  }
}

StageFlow::StageFlow(const Chain& chain, std::uint64_t rows, std::uint64_t cols,
                     std::uint64_t lanes) {
  const std::uint64_t vectors = ceil_div(cols, lanes);
  std::uint64_t latency = 0;
  for (const Stage& stage : chain.stages) {
    if (stage_info(stage.op).row_wise) {
      row_.emplace(stage, rows, vectors);
      break;
    }
    if (statistics_read(stage) != 0) factors_ = RowFactors(stage, rows, vectors);
    if (stage.op == StageOp::kLayerNormApply) {
      norm_.emplace(stage_latency(stage), false);
      break;
    }
    if (stage.operand == Operand::kRow) divide_at_ = latency;
    latency += stage_latency(stage);
  }
  pipeline_.assign(latency, false);
}

bool StageFlow::wants_reciprocal(bool offered) const {
  return divide_at_ && (*divide_at_ == 0 ? offered : pipeline_[*divide_at_ - 1]);
}
bool StageFlow::divides_late(bool offered) const {
  return wants_reciprocal(offered) && !factors_.valid();
}

bool StageFlow::pipeline_result(bool offered) const {
  return pipeline_.empty() ? offered : pipeline_.back();
}

bool StageFlow::has_result(bool offered) const {
  if (norm_) return norm_->back();
  return row_ ? row_->has_result() : pipeline_result(offered);
}

bool StageFlow::last_takes(bool refused) const {
  if (norm_) return factors_.valid() && !(norm_->back() && refused);
  return row_ ? row_->takes(refused) : !refused;
}

bool StageFlow::step(bool offered, bool refused) {
  const bool result = pipeline_result(offered);
  const bool late = divides_late(offered);
  const bool leaves = last_takes(refused);
  const bool moves = !(result && !leaves);
  const bool in = offered && moves && !late;
  const bool divided = moves && wants_reciprocal(offered) && factors_.valid();
  const bool normalised = norm_ && result && leaves;
  if (row_) row_->step(result, refused);
  if (norm_ && !(norm_->back() && refused)) {
    norm_->pop_back();
    norm_->push_front(normalised);
  }
  factors_.step(divided || normalised);
  if (moves && !pipeline_.empty()) {
    pipeline_.pop_back();
    // What waits for its reciprocal holds what is before it alone.
    const std::uint64_t held = late ? *divide_at_ : 0;
    pipeline_.insert(pipeline_.begin() + static_cast<std::ptrdiff_t>(held), in);
  }
  return in;
}

}  // namespace systole::hw
