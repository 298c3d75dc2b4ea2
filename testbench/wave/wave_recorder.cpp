#include "testbench/wave/wave_recorder.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

/// Changes that are sorted and written at a time.
constexpr std::size_t kEnough = 8192;
constexpr std::size_t kValues = 64;  ///< of a kHighest or kUnion

std::uint64_t now_ps() { return tlm_model::to_ps(sc_core::sc_time_stamp()); }

}  // namespace

WaveRecorder::WaveRecorder(std::unique_ptr<WaveFile> file, const Limits& limits,
                           std::function<void()> before_look,
                           std::function<std::uint64_t()> settled)
    : file_(std::move(file)),
      limits_(limits),
      before_look_(std::move(before_look)),
      settled_(std::move(settled)),
      enough_(kEnough),
      stop_at_(limits.to_ps) {
  tlm_model::require_ps_resolution();
  sc_core::sc_get_curr_simcontext()->add_trace_file(this);
}

WaveRecorder::~WaveRecorder() { sc_core::sc_get_curr_simcontext()->remove_trace_file(this); }

WaveRecorder::Signal WaveRecorder::add_signal(const std::string& name, unsigned width, Kind kind) {
  signals_.push_back({name, width});
  Variable& variable = variables_.emplace_back();
  variable.kind = kind;
  if (kind == Kind::kHighest || kind == Kind::kUnion) variable.held.counts.resize(kValues);
  shown_.emplace_back();
  const auto signal = static_cast<Signal>(signals_.size() - 1);
  shown_.back() = value_of(signal);
  return signal;
}

template <typename T>
void WaveRecorder::look_at(const T& object, const std::string& name, int width) {
  const Signal signal = add_signal(name, static_cast<unsigned>(width), Kind::kNumber);
  // No value of a variable that was not looked at yet.
  looked_.push_back({signal, &object, sizeof object, std::is_same_v<T, bool>, 0});
}

void WaveRecorder::trace(const unsigned int& object, const std::string& name, const char** texts) {
  unsigned count = 0;
  while (texts[count] != nullptr) ++count;
  int width = 1;
  while (count > 1U << width) ++width;
  look_at(object, name, width);
}

void WaveRecorder::refuse(const std::string& name) {
  SC_REPORT_WARNING("/systole/wave", (name + ": only unsigned variables are recorded").c_str());
}

std::vector<RecordedSignal> WaveRecorder::signals() const { return signals_; }

void WaveRecorder::write_comment(const std::string& comment) { file_->comment(comment); }

void WaveRecorder::hold(Signal signal, std::uint64_t from, std::uint64_t to, std::uint64_t value) {
  if (from >= to || !records()) return;
  changes_.push_back({from, value, signal, Verb::kBegin});
  changes_.push_back({to, value, signal, Verb::kEnd});
}

void WaveRecorder::set(Signal signal, std::uint64_t at, std::uint64_t value) {
  if (records()) changes_.push_back({at, value, signal, Verb::kSet});
}

void WaveRecorder::add(Signal signal, std::uint64_t at, std::int64_t change) {
  if (!records()) return;
  changes_.push_back({at, static_cast<std::uint64_t>(change), signal, Verb::kAdd});
}

void WaveRecorder::cycle(bool delta_cycle) {
  if (!delta_cycle && records()) look(now_ps());
}

void WaveRecorder::look(std::uint64_t now) {
  // What changes after the end of the window is not shown; the rest lasts up to there.
  if (looks_ && now <= stop_at_) {
    if (before_look_) before_look_();
    for (Looked& looked : looked_) {
      std::uint64_t value = 0;
      std::memcpy(&value, looked.at, looked.bytes);  // of a little-endian host
      const std::uint64_t largest = ~std::uint64_t{0} >> (64 - 8 * looked.bytes);
      if (!looked.is_bool && value == largest) value = kNone;
      if (value == looked.last) continue;
      looked.last = value;
      set(looked.signal, now, value);
    }
    end_ = now;
  }
  // After the end nothing is written before all of it is known.
  if (changes_.size() < enough_ && (now < stop_at_ || settled_() <= stop_at_)) return;
  const std::uint64_t settled = settled_();
  flush(std::min(settled, stop_at_));
  // What cannot be written yet is sorted again: less often, the more it is.
  enough_ = std::max(kEnough, 2 * changes_.size());
  if (settled > stop_at_) finish();
}

void WaveRecorder::sort_until(std::uint64_t horizon) {
  std::uint64_t first = horizon;
  std::size_t count = 0;
  for (const Change& change : changes_) {
    if (change.at >= horizon) continue;
    first = std::min(first, change.at);
    ++count;
  }
  // Into pieces of time, and within each by time: in most of them they are few and nearly in order.
  unsigned shift = 0;
  while ((horizon - first) >> shift > count) ++shift;
  std::vector<std::size_t>& ends = piece_ends_;
  ends.assign(((horizon - first) >> shift) + 1, 0);
  for (const Change& change : changes_) {
    if (change.at < horizon) ++ends[(change.at - first) >> shift];
  }
  std::size_t begin = 0;
  for (std::size_t& end : ends) end = std::exchange(begin, begin + end);
  sorted_.resize(count);
  std::size_t later = 0;
  for (const Change& change : changes_) {
    if (change.at < horizon) {
      sorted_[ends[(change.at - first) >> shift]++] = change;
    } else {
      changes_[later++] = change;
    }
  }
  changes_.resize(later);
  begin = 0;
  const auto by_time = [](const Change& a, const Change& b) { return a.at < b.at; };
  for (const std::size_t end : ends) {
    const auto from = sorted_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = sorted_.begin() + static_cast<std::ptrdiff_t>(end);
    if (!std::is_sorted(from, to, by_time)) std::stable_sort(from, to, by_time);
    begin = end;
  }
}

void WaveRecorder::flush(std::uint64_t horizon) {
  sort_until(horizon);
  for (auto change = sorted_.begin(); change != sorted_.end() && !full_;) {
    const std::uint64_t time = change->at;
    if (!begun_ && time > limits_.from_ps) begin(limits_.from_ps);
    for (; change != sorted_.end() && change->at == time; ++change) apply(*change);
    write_time(std::max(time, begin_));
  }
  if (full_) finish();
}

void WaveRecorder::apply(const Change& change) {
  Variable& variable = variables_[change.signal];
  Held& held = variable.held;
  const bool counts = change.value < held.counts.size();
  switch (change.verb) {
    case Verb::kSet:
      variable.number = change.value;
      break;
    case Verb::kAdd:
      variable.number += change.value;
      break;
    case Verb::kBegin:
      ++held.count;
      held.latest = change.value;
      if (counts && held.counts[change.value]++ == 0)
        held.values |= std::uint64_t{1} << change.value;
      break;
    case Verb::kEnd:
      --held.count;
      if (counts && --held.counts[change.value] == 0) {
        held.values &= ~(std::uint64_t{1} << change.value);
      }
      break;
  }
  if (variable.touched) return;
  variable.touched = true;
  touched_.push_back(change.signal);
}

RecordedValue WaveRecorder::value_of(Signal signal) const {
  const Variable& variable = variables_[signal];
  const Held& held = variable.held;
  std::uint64_t bits = 0;
  switch (variable.kind) {
    case Kind::kNumber:
      bits = variable.number;
      break;
    case Kind::kLatest:
      bits = held.count == 0 ? kNone : held.latest;
      break;
    case Kind::kHighest:
      if (held.values != 0) bits = 63U - static_cast<unsigned>(__builtin_clzll(held.values));
      break;
    case Kind::kUnion:
      bits = held.values;
      break;
  }
  if (bits == kNone) return {RecordedValue::Kind::kNone, 0};
  const unsigned width = signals_[signal].width;
  if (width < 64 && bits >> width != 0) return {RecordedValue::Kind::kUnknown, 0};
  return {RecordedValue::Kind::kNumber, bits};
}

void WaveRecorder::begin(std::uint64_t time) {
  begun_ = true;
  begin_ = end_ = time;
  file_->begin(time, signals_, shown_);
}

void WaveRecorder::write_time(std::uint64_t time) {
  // What is shown too late is shown as early as possible.
  time = written_ = std::max(time, written_);
  bool changed = false;
  for (const Signal signal : touched_) {
    variables_[signal].touched = false;
    const RecordedValue value = value_of(signal);
    if (value == shown_[signal]) continue;
    shown_[signal] = value;
    if (begun_) file_->change(time, signal, value);
    changed = true;
  }
  touched_.clear();
  if (!begun_ || !changed) return;
  end_ = std::max(end_, time);
  if (file_->bytes() < limits_.max_bytes) return;
  full_ = true;
  stop_at_ = end_ = time;
}

void WaveRecorder::finish() {
  if (!records()) return;
  stop_recording();
  if (!full_) {
    // Changes at the very end belong to it.
    sort_until(stop_at_ + 1);
    for (const Change& change : sorted_) apply(change);
    if (!begun_) begin(std::min(limits_.from_ps, stop_at_));
    end_ = std::max(stop_at_, begin_);
    write_time(end_);
  }
  changes_.clear();
}

void WaveRecorder::stop() {
  if (!records()) return;
  const std::uint64_t now = now_ps();
  stop_at_ = std::min(stop_at_, now);
  look(now);
  looks_ = false;  // what else changes now belongs to what follows
}

void WaveRecorder::commit() {
  stop();
  if (records()) {
    flush(stop_at_);
    finish();
  }
  file_->commit(end_);
}

}  // namespace systole::testbench
