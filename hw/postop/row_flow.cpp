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

RowStage::RowStage(const Stage& stage, std::uint64_t rows, std::uint64_t vectors,
                   std::uint64_t interval, std::uint64_t behind)
    : rows_(rows),
      vectors_(vectors),
      slots_(statistics_passes(stage) + 1),
      gap_(interval - slots_ * vectors),
      line_(stage_latency(stage) + behind) {}

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
  line_.move(last_pass);
  if (!begins) return;
  busy_ = true;
  if (++at_ == (slot_ == slots_ ? gap_ : vectors_)) next_slot();
}

RowFactors::RowFactors(const Stage& stage, std::uint64_t rows, std::uint64_t vectors)
    : rows_(rows - 1), vectors_(vectors), left_(vectors) {
  const bool has_units = stage.op == StageOp::kDivideRowSum || stage.op == StageOp::kLayerNormApply;
  if (has_units) {
    for (const std::uint32_t cycles : factor_cycles(stage)) {
      if (cycles != 0) cycles_.at(count_++) = cycles;
    }
  } else {
    // Known as a whole: how often it has one, and when the first one is there.
    cycles_[count_++] = static_cast<std::int64_t>(stage_interval(stage, vectors));
    at_[0] = cycles_[0] - stage_lead(stage);
  }
  std::fill(at_.begin() + 1, at_.end(), kNoRow);
}

void RowFactors::step(bool taken) {
  const bool row_end = taken && left_ == 1;
  if (taken) left_ = row_end ? vectors_ : left_ - 1;
  bool free = !valid_ || row_end;  // what comes after the unit
  valid_ = valid_ && !row_end;
  for (std::size_t unit = count_; unit-- > 0;) {
    if (at_[unit] == kNoRow) {
      free = true;
      continue;
    }
    const bool moves = ++at_[unit] >= cycles_[unit] && free;
    free = moves;
    if (!moves) continue;
    at_[unit] = kNoRow;
    if (unit + 1 == count_) {
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
                     std::uint64_t lanes, std::uint64_t before) {
  const std::uint64_t vectors = ceil_div(cols, lanes);
  const bool has_row_stage = is_row_wise(chain);
  std::uint64_t latency = before, held = 0, interval = vectors;
  for (auto stage = chain.stages.begin(); stage != chain.stages.end(); ++stage) {
    const bool knows_rows = stage_info(stage->op).row_wise;
    const bool has_factors = !has_factors_ && !knows_rows && stage_lead(*stage) != 0;
    interval = std::max(interval, stage_interval(*stage, vectors));
    if (has_factors) {
      has_factors_ = true;
      waits_ = has_row_stage || stage->operand == Operand::kRow;
      held = waits_ ? latency : 0;
      // Before a stage that passes over its rows more often, which keeps to the interval of the
      // units, it is the first one that is waited for.
      constexpr std::uint64_t kAll = ~std::uint64_t{0};
      factors_ = has_row_stage ? RowFactors(*stage, 1, kAll) : RowFactors(*stage, rows, vectors);
    }
    if (knows_rows || (has_factors && !waits_)) {
      std::uint64_t behind = 0;
      for (auto after = stage + 1; after != chain.stages.end(); ++after) {
        behind += stage_latency(*after);
        interval = std::max(interval, stage_interval(*after, vectors));
      }
      if (knows_rows) {
        row_.emplace(*stage, rows, vectors, interval, behind);
      } else {
        norm_.emplace(stage_latency(*stage) + behind);
      }
      break;
    }
    latency += stage_latency(*stage);
  }
  before_ = StageLine(held);
  line_ = StageLine(latency - held);
}

bool StageFlow::has_result(bool offered) const {
  if (norm_) return norm_->has_result(false);
  return row_ ? row_->has_result() : line_result(offered);
}

bool StageFlow::last_takes(bool refused) const {
  if (norm_) return factors_.valid() && !(norm_->has_result(false) && refused);
  return row_ ? row_->takes(refused) : !refused;
}

bool StageFlow::step(bool offered, bool refused) {
  const bool result = line_result(offered);
  const bool wants = wants_factor(offered);
  const bool late = wants && !factors_.valid();
  const bool leaves = last_takes(refused);
  const bool moves = !(result && !leaves);
  const bool in = offered && moves && !late;
  const bool takes = moves && wants && !late;
  const bool normalised = norm_ && result && leaves;
  if (row_) row_->step(result, refused);
  if (norm_ && !(norm_->has_result(false) && refused)) norm_->move(normalised);
  if (has_factors_) factors_.step(takes || normalised);
  if (moves) {
    // What waits for its factor holds what is before it alone.
    line_.move(waits_ ? takes : in);
    if (!late) before_.move(in);
  }
  return in;
}

}  // namespace systole::hw
