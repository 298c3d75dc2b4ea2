#include "hw/stream/stream_core.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace systole::hw::stream {
namespace {

/// From an input beat to its row sum before the dividers: the requantised scores are there
/// after six cycles, the softmax unit takes three, its queue one.
constexpr std::uint64_t kSumLatency = 10;
/// A divider takes its operands in one cycle and shows the quotient in another.
constexpr std::uint64_t kDividerOverhead = 2;

std::size_t tiles(std::size_t size, std::size_t length) { return (size + length - 1) / length; }

unsigned bits_of(std::uint32_t value) {
  unsigned bits = 0;
  for (; value != 0; value >>= 1) ++bits;
  return bits;
}

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames = {"Q",  "K",  "V",  "QK",
                                                            "AV", "OW", "F1", "F2"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::vector<Work> attention_work(const LayerShape& shape, std::size_t length) {
  const std::size_t s = tiles(shape.sequence, length), e = tiles(shape.embedding, length),
                    p = tiles(shape.projection, length);
  std::vector<Work> works = {{Phase::kQ, s * p, e}, {Phase::kK, s * p, e}, {Phase::kV, s * p, e}};
  for (std::size_t block = 0; block < s; ++block) {
    works.push_back({Phase::kQk, s, p});
    works.push_back({Phase::kAv, p, s});
  }
  works.push_back({Phase::kOw, s * e, p});
  return works;
}

std::vector<Work> feed_forward_work(const LayerShape& shape, std::size_t length) {
  const std::size_t s = tiles(shape.sequence, length), e = tiles(shape.embedding, length),
                    f = tiles(shape.hidden, length);
  return {{Phase::kF1, s * f, e}, {Phase::kF2, s * e, f}};
}

std::vector<Work> product_work(std::size_t m, std::size_t n, std::size_t k, std::size_t length) {
  return {{Phase::kQ, tiles(m, length) * tiles(n, length), tiles(k, length)}};
}

StreamCore::StreamCore(const Machine::Stream& machine)
    : machine_(machine),
      pass_beats_(machine.length),
      tile_beats_(std::uint64_t{machine.length} * machine.length / machine.units),
      buffer_beats_(std::uint64_t{machine.length} * machine.units / machine.weight_bytes),
      dividers_(machine.dividers),
      account_("cycles", {{"weights", "the weights of the next pass have not arrived"},
                          {"input", "the input or the bias stream has no beat"},
                          {"output", "as many results are under way as the output queue takes"},
                          {"divider", "a row sum waits for a divider, or a row for its division"},
                          {"drain", "the last results are on their way out"}}) {}

void StreamCore::begin(std::vector<Work> works, const std::vector<SoftmaxRow>* rows) {
  if (work_ != works_.size() || !under_way_.empty()) {
    throw std::logic_error("StreamCore: begins before the last layer has ended");
  }
  works_ = std::move(works);
  rows_ = rows;
  work_ = 0;
  outer_ = inner_ = beat_ = block_ = 0;
  phases_.clear();
  enter_phase();
}

void StreamCore::enter_phase() {
  if (work_ == works_.size()) return;
  const Phase phase = work().phase;
  const auto known = std::find_if(phases_.begin(), phases_.end(),
                                  [&](const PhaseTimes& each) { return each.phase == phase; });
  phase_ = static_cast<std::size_t>(known - phases_.begin());
  if (known == phases_.end()) phases_.push_back({phase, 0, 0, 0, 0});
  phases_[phase_].tiles += work().outer * work().inner;
  if (phase == Phase::kQk) divided_ = 0;
}

bool StreamCore::is_last_pass_of_scores() const {
  return work().phase == Phase::kQk && inner_ + 1 == work().inner && outer_ + 1 == work().outer &&
         beat_ + pass_beats_ >= tile_beats_;
}

bool StreamCore::waits_for_division() const {
  return work().phase == Phase::kAv && inner_ == 0 && outer_ == 0 && beat_ < pass_beats_ &&
         beat_ >= divided_;
}

bool StreamCore::accepts(const Streams& streams, Cause& why) const {
  if (work_ == works_.size()) {
    why = kDrain;
  } else if (under_way_.size() >= machine_.output_queue) {
    why = kOutput;
  } else if ((is_last_pass_of_scores() && sums_.size() >= machine_.softmax_queue) ||
             waits_for_division()) {
    why = kDivider;
  } else if (!full_[reading_]) {
    why = kWeights;
  } else if (!streams.input || !streams.bias) {
    why = kInput;
  } else {
    return true;
  }
  return false;
}

std::uint64_t StreamCore::division_of(std::size_t row) const {
  constexpr unsigned kNumerator = 16;  // bits of SoftmaxRow::kSoftmaxScale
  // One quotient bit a cycle, without the leading zeros; a quotient of 0 shows at once.
  constexpr unsigned kShortest = 9;  // bits of the smallest sum
  const unsigned bits =
      rows_ != nullptr && row < rows_->size() ? bits_of((*rows_)[row].sum) : kShortest;
  return bits > kNumerator ? 1 : kNumerator - bits + kDividerOverhead;
}

void StreamCore::accept() {
  PhaseTimes& times = phases_[phase_];
  const std::uint64_t now = cycle_;
  if (times.last_in == 0 && times.first_in == 0) times.first_in = now;
  times.last_in = now;
  ++beats_;
  if (inner_ + 1 == work().inner) under_way_.push_back({now + machine_.depth, phase_});
  if (is_last_pass_of_scores()) {
    const std::uint64_t row = block_ * pass_beats_ + beat_ % pass_beats_;
    sums_.push_back({now + kSumLatency, division_of(row)});
  }
  if (++used_ == pass_beats_) {
    used_ = 0;
    full_[reading_] = false;
    reading_ = (reading_ + 1) % kBuffers;
  }
  if (++beat_ != tile_beats_) return;
  beat_ = 0;
  if (++inner_ != work().inner) return;
  inner_ = 0;
  if (++outer_ != work().outer) return;
  outer_ = 0;
  if (work().phase == Phase::kAv) ++block_;
  ++work_;
  enter_phase();
}

void StreamCore::fill(const Streams& streams, bool was_full) {
  if (was_full || !streams.weights) return;
  if (++filled_ != buffer_beats_) return;
  filled_ = 0;
  full_[filling_] = true;
  filling_ = (filling_ + 1) % kBuffers;
}

void StreamCore::divide() {
  if (dividers_.empty()) return;
  Divider& out = dividers_[next_out_];
  const bool given = out.busy && out.done <= cycle_;
  Divider& in = dividers_[next_in_];
  // A divider that gives its quotient takes the next sum in the cycle after.
  if (!in.busy && !sums_.empty() && sums_.front().arrives <= cycle_) {
    in = {true, cycle_ + sums_.front().duration};
    sums_.pop_front();
    next_in_ = (next_in_ + 1) % dividers_.size();
  }
  if (!given) return;
  out.busy = false;
  next_out_ = (next_out_ + 1) % dividers_.size();
  ++divided_;
}

void StreamCore::put_out(const Streams& streams) {
  if (!streams.output || under_way_.empty() || under_way_.front().arrives > cycle_) return;
  phases_[under_way_.front().phase].last_out = cycle_;
  under_way_.pop_front();
  ++outputs_;
}

bool StreamCore::step(const Streams& streams) {
  Cause why = kDrain;
  // Everything is decided on what was true when the cycle began.
  const bool accepted = accepts(streams, why);
  const bool was_full = full_[filling_];
  divide();
  put_out(streams);
  if (accepted) accept();
  fill(streams, was_full);
  ++cycle_;
  const bool left = work_ != works_.size() || !under_way_.empty();
  if (accepted) {
    account_.busy_until(cycle_);
  } else if (why != kDrain || left || !phases_.empty()) {
    account_.stall_until(cycle_, why);
  }
  return left;
}

}  // namespace systole::hw::stream
