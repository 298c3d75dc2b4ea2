#include "hw/postop/result_flow.h"

#include <algorithm>

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

ResultFlow::ResultFlow(const ChainCycles& stages, const Chain& chain, const Tile& tile,
                       std::uint32_t lanes, std::uint64_t read, Inputs inputs)
    : chain_(chain),
      tile_(tile),
      lanes_(lanes),
      access_(read),
      even_(inputs != Inputs::kRows && tensor_operands(chain) == 0 && !waits_for_units(chain)),
      vectors_(ceil_div(tile.cols, std::uint64_t{lanes})),
      left_(tile.rows * vectors_),
      last_(left_ - 1),
      whole_(inputs == Inputs::kWhole) {
  if (!even_) {
    make_stages();
    return;
  }
  // All results of a cycle at once: what they leave in is not the stages'.
  constexpr std::uint64_t kWide = std::uint64_t{1} << 40U;
  const ResultCycles cycles =
      result_cycles(stages, chain, tile.rows, tile.cols, lanes, kWide, read);
  const std::uint64_t columns = transposes(chain) ? tile.cols : 0;  // they leave after the stages
  const std::uint64_t begin = cycles.fill - columns;
  gap_ = cycles.per_row - vectors_;
  due_ = begin + gap_;
  if (cycles.reads <= cycles.waiting) {
    read_ = cycles.reads;
  } else {
    read_due_ = begin + tile.rows * cycles.per_row - (cycles.drain - columns);
  }
}

void ResultFlow::make_stages() {
  stages_ = StageFlow(chain_, tile_.rows, tile_.cols, lanes_, access_ - kAccumulatorReadCycles);
  passes_ = row_passes(chain_);
  reads_ = RowOrder(tile_.rows, vectors_, passes_);
}

void ResultFlow::start(std::uint64_t started, std::uint64_t set_up) {
  started_ = started;
  cycle_ = started + 1;
  first_ = free_until_ = started + set_up;
  due_ += first_;
  read_due_ += first_;
  if (read_ != 0) read_ += first_;
}

void ResultFlow::move_stages() {
  even_ = false;
  read_ = 0;
  make_stages();
  const std::uint64_t all = tile_.rows * vectors_, taken = all - left_;
  left_ = all;
  auto late = late_.begin();
  for (std::uint64_t vector = 0; vector < taken; ++vector) {
    const std::uint64_t due = *next({});
    if (late != late_.end() && late->first == vector) {
      take(late++->second);
    } else {
      take(due);
    }
  }
}

std::optional<bool> ResultFlow::has_operands(const InputTimes& inputs) const {
  if (cycle_ < first_ || reads_.over()) return false;
  if (inputs.there == nullptr) return true;
  const std::uint64_t vector = whole_ ? last_ : reads_.row() * vectors_ + reads_.vector();
  if (vector < inputs.known) return inputs.there[vector] < cycle_;
  if (cycle_ <= inputs.not_before) return false;
  return std::nullopt;
}

bool ResultFlow::is_free(std::uint64_t cycle, const SumReads& sums, bool& is_met) {
  if (cycle <= free_until_) return true;
  const std::uint64_t last = tile_.at + (tile_.rows - 1) * tile_.pitch + vectors_ * lanes_ - 1;
  const SumReads::Free free = sums.free(even_ ? free_until_ : cycle_, tile_.at, last);
  free_until_ = std::max(free_until_, free.until);
  is_met = free.is_known;
  return cycle <= free_until_;
}

std::optional<bool> ResultFlow::can_read(const InputTimes& inputs) {
  const std::optional<bool> there = has_operands(inputs);
  is_refused_ = false;
  if (!there || !*there || inputs.sums == nullptr || cycle_ < free_until_) return there;
  const std::uint64_t at = tile_.at + reads_.row() * tile_.pitch + reads_.vector() * lanes_;
  std::optional<bool> can = inputs.sums->can_read(cycle_, at, at + lanes_ - 1);
  bool is_met = false;
  if (!can && is_free(cycle_ + 1, *inputs.sums, is_met)) can = true;
  waits_for_sums_ = !can;
  is_refused_ = can && !*can;
  return can;
}

std::optional<std::uint64_t> ResultFlow::find_next(const InputTimes& inputs) {
  waits_for_sums_ = false;
  shares_sums_ = inputs.sums != nullptr;
  if (even_ && shares_sums_) {
    bool is_met = false;
    if (!is_free(std::min(due_, last_read()), *inputs.sums, is_met)) {
      waits_for_sums_ = !is_met;
      if (!is_met) return std::nullopt;
      move_stages();
      shares_sums_ = true;
    }
  }
  if (even_) return due_;
  for (;; ++cycle_) {
    const bool result = stages_.has_result(sums_there_);
    if (result && !is_taken_) return cycle_;
    const bool refused = result && cycle_ < taken_;
    const std::optional<bool> can = can_read(inputs);
    if (!can) return std::nullopt;
    if (result && !refused) is_taken_ = false;
    const bool in = stages_.step(sums_there_, refused);
    const bool has_room = !sums_there_ || in;
    const bool reads = *can && has_room;
    if (is_refused_ && has_room) {
      refused_.resize(std::max(refused_.size(), reads_.row() + 1));
      ++refused_[reads_.row()];
    }
    sums_there_ = reads || (sums_there_ && !in);
    if (!reads) continue;
    reads_.next();
    ++in_;
    if (reads_.over()) read_ = cycle_ + 1;
  }
}

std::optional<std::uint64_t> ResultFlow::sums_read() const {
  if (even_ && shares_sums_ && last_read() > free_until_) return std::nullopt;
  if (read_ != 0) return read_;
  if (even_ && (left_ == 0 || due_ >= read_due_)) return read_due_;
  return std::nullopt;
}

}  // namespace systole::hw
