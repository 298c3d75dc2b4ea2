#include "hw/dma/result_rows.h"

#include <algorithm>
#include <utility>

#include "base/round.h"

namespace systole::hw {

ResultRows::ResultRows(ResultFlow flow, const Shape& shape, const RowWrite& to)
    : flow_(std::move(flow)), shape_(shape), to_(to), rows_(to.rows) {
  rows_left_.reserve(to.rows);
  begin_row();
}

void ResultRows::begin_row() {
  at_ = to_.address;
  to_.address += to_.pitch;
  --rows_;
  left_ = shape_.cols;
  begin_vector();
}

std::optional<std::uint64_t> ResultRows::leave(const InputTimes& inputs, std::uint64_t not_before) {
  if (leaving_ == 0) leaving_ = shape_.cols;
  std::uint64_t end = 0;
  while (leaving_ != 0) {
    const std::optional<std::uint64_t> next = flow_.next(inputs);
    if (!next) return std::nullopt;
    leaving_ -= std::min(leaving_, shape_.lanes);
    end = *next + 1;
    if (leaving_ == 0) end = std::max(end, not_before);
    flow_.take(end - 1);
  }
  rows_left_.push_back(end);
  return end;
}

void ResultRows::begin_made(std::uint64_t address, std::uint64_t bytes, std::uint64_t from) {
  is_made_ = true;
  at_ = address;
  left_ = 1;
  vector_ = bytes;
  taken_ = 0;
  from_ = from;
}

inline void ResultRows::begin_vector() {
  // Two results may have a byte in two vectors: it leaves with the first one.
  const auto bytes = [this](std::uint64_t columns) {
    return ceil_div(columns * shape_.bits, std::uint64_t{8});
  };
  const std::uint64_t before = shape_.cols - left_;
  vector_ = bytes(before + std::min(left_, shape_.lanes)) - bytes(before);
}

std::optional<std::uint64_t> ResultRows::next(const InputTimes& inputs) {
  if (is_made_) return std::max(from_, free_);
  if (taken_ != 0) return free_;
  const std::optional<std::uint64_t> cycle = flow_.next(inputs);
  if (!cycle) return std::nullopt;
  return std::max(*cycle, free_);
}

inline bool ResultRows::pass_piece(std::uint64_t cycle) {
  const std::uint64_t bytes = piece_bytes();
  at_ += bytes;
  taken_ += bytes;
  free_ = cycle + 1;
  if (taken_ < vector_) return false;
  taken_ = 0;
  if (is_made_) {
    left_ = 0;
    return true;
  }
  left_ -= std::min(left_, shape_.lanes);
  flow_.take(cycle);
  if (left_ != 0) {
    begin_vector();
    return false;
  }
  rows_left_.push_back(cycle + 1);
  if (rows_ != 0) begin_row();
  return true;
}

bool ResultRows::take(std::uint64_t cycle) { return pass_piece(cycle); }

inline void ResultRows::push(std::uint64_t cycle, std::uint64_t beat) {
  if (flush_) {
    flush_ = false;
    free_ = cycle + 1;
    beats_.push_back({cycle, bytes_});
    return;
  }
  // Beats are powers of two: saves three divisions a piece.
  const std::uint64_t within = beat - 1, begin = at_, end = begin + piece_bytes();
  const bool ends_row = pass_piece(cycle), fills = ((begin ^ end) & ~within) != 0;
  bytes_ += end - begin;
  flush_ = ends_row && fills && (end & within) != 0;
  if (!fills && !ends_row) return;
  beats_.push_back({cycle, bytes_ - (ends_row && !flush_ ? 0 : end & within)});
}

void ResultRows::fill(std::uint64_t wanted, const StoreQueue& queue, const InputTimes& inputs) {
  while (flush_ || left_ != 0) {
    const std::optional<std::uint64_t> room = queue.takes(queue.issued() + beats_.size());
    if (!room && !beats_.empty() && beats_.back().bytes >= wanted) return;
    const std::optional<std::uint64_t> cycle = flush_ ? free_ : next(inputs);
    if (!cycle) return;
    push(std::max(*cycle, room.value_or(0)), queue.beat_bytes());
  }
}

std::optional<std::uint64_t> ResultRows::request(std::uint64_t bytes, const StoreQueue& queue,
                                                 const InputTimes& inputs) {
  const std::uint64_t end = issued_bytes_ + bytes;
  fill(end, queue, inputs);
  for (const Beat& beat : beats_) {
    if (beat.bytes >= end) return beat.cycle + 1;
  }
  return std::nullopt;
}

void ResultRows::issued(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes,
                        StoreQueue& queue) {
  issued_bytes_ += bytes;
  auto left = beats_.begin();
  while (left != beats_.end() && left->bytes <= issued_bytes_) ++left;
  beats_.erase(beats_.begin(), left);
  queue.issue(cycle, queue.beats(address, bytes));
}

}  // namespace systole::hw
