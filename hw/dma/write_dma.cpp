#include "hw/dma/write_dma.h"

#include <algorithm>
#include <limits>

namespace systole::hw {
namespace {

constexpr std::uint64_t kNotAnswered = std::numeric_limits<std::uint64_t>::max();

std::uint64_t beats_of(const WriteRequest& request, std::uint64_t beat_bytes) {
  return (request.address % beat_bytes + request.bytes + beat_bytes - 1) / beat_bytes;
}

}  // namespace

WritePort::WritePort(const WriteParams& params, WriteMemory memory)
    : params_(params), memory_(std::move(memory)) {}

void WritePort::start(const RowWrite& command, std::size_t position) {
  command_ = command;
  row_ = at_ = command.address;
  cut_.clear();
  next_ = 0;
  for (std::uint64_t row = 0; row < command.rows; ++row) {
    for (std::uint64_t at = 0; at < command.bytes;) {
      WriteRequest request;
      request.command = position;
      request.address = command.address + row * command.pitch + at;
      request.bytes = params_.cut.length(command.address + row * command.pitch, at, command.bytes);
      request.done = kNotAnswered;
      at += request.bytes;
      cut_.push_back(request);
    }
  }
}

bool WritePort::has_slot(std::uint64_t cycle) const {
  const std::size_t slots = params_.outstanding;
  if (params_.slots == SlotOrder::kIssue) {
    return requests_.size() < slots || requests_[requests_.size() - slots].done <= cycle;
  }
  const auto in_flight = std::count_if(requests_.begin(), requests_.end(),
                                       [cycle](const WriteRequest& r) { return r.done > cycle; });
  return static_cast<std::size_t>(in_flight) < slots;
}

void WritePort::push(bool last_of_request) {
  ++words_;
  complete_ += last_of_request ? 1 : 0;
}

void WritePort::send(std::uint64_t cycle) {
  if (to_send_ == requests_.size() || requests_[to_send_].issued >= cycle) return;
  if (!memory_.takes_data(cycle)) return;
  --words_;
  WriteRequest& request = requests_[to_send_];
  if (++beats_ < beats_of(request, params_.beat_bytes)) return;
  beats_ = 0;
  ++to_send_;
  request.sent = cycle;
  request.done = memory_.done(request);
}

void WritePort::issue(std::uint64_t cycle) {
  if (complete_ == 0 || !has_slot(cycle) || !memory_.takes(cycle)) return;
  --complete_;
  requests_.push_back(cut_.at(next_++));
  requests_.back().issued = cycle;
}

void WritePort::step(std::uint64_t cycle, std::uint64_t piece, bool row_end) {
  const bool room = words_ < params_.queue_words;
  issue(cycle);
  send(cycle);
  const std::uint64_t beat = params_.beat_bytes;
  bool row_over = false;
  if (flush_) {
    if (!room) return;
    flush_ = false;
    row_over = true;
    push(true);
  } else if (piece != 0) {
    const std::uint64_t end = at_ + piece;
    const bool fills = end / beat != at_ / beat;
    flush_ = row_end && fills && end % beat != 0;
    row_over = row_end && !flush_;
    at_ = end;
    if (fills || row_end) push(row_over || end / beat * beat % params_.cut.request_bytes == 0);
  }
  if (row_over) at_ = row_ += command_.pitch;
}

}  // namespace systole::hw
