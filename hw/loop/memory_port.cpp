#include "hw/loop/memory_port.h"

#include <algorithm>

namespace systole::hw::loop {

void MemoryPort::begin(std::uint64_t cycle) {
  cycle_ = cycle;
  for (const Client client : {kReader, kWriter}) {
    accepts_[client] = !out_[client].full();
    has_request_[client] = !out_[client].empty();
    has_answer_[client] = !in_[client].empty();
    has_room_[client] = !in_[client].full();
  }
}

void MemoryPort::move() {
  // Towards the core. The shared buffer is looked at before a beat leaves it.
  const bool takes_answer = !shared_in_.full();
  if (!shared_in_.empty()) {
    const Returning returning = shared_in_.front();
    if (has_room_[returning.client]) {
      shared_in_.pop();
      in_[returning.client].push(returning.answer);
    }
  }
  if (takes_answer) receive();

  // Towards memory.
  const bool takes_request = !shared_out_.full();
  if (!shared_out_.empty()) {
    send(shared_out_.front());
    shared_out_.pop();
  }
  if (!takes_request) return;
  int chosen = holder_;
  if (chosen < 0) chosen = has_request_[1 - last_] ? 1 - last_ : last_;
  if (!has_request_[chosen]) return;
  const Beat beat = out_[chosen].front();
  out_[chosen].pop();
  shared_out_.push(beat);
  last_ = chosen;
  holder_ = beat.last ? -1 : chosen;
}

void MemoryPort::send(const Beat& beat) {
  if (!beat.last) return;
  Memory::Request request = beat.request;
  request.cycle = cycle_;
  if (request.write) {
    ++counts_.writes;
    counts_.written_bytes += request.bytes;
  } else {
    ++counts_.reads;
    counts_.read_bytes += request.bytes;
  }
  const std::uint64_t last = memory_.send(request);
  const std::uint64_t before = std::uint64_t{beat.beats - 1} * memory_.beat_cycles();
  flights_.push_back(
      {last - std::min(last, before), beat.beats, request.write ? kWriter : kReader, beat.id});
}

void MemoryPort::receive() {
  if (flights_.empty() || cycle_ < next_beat_) return;
  // Once its first beat has come, an answer is not interrupted.
  auto next = flights_.begin();
  if (!begun_) {
    next = std::min_element(flights_.begin(), flights_.end(),
                            [](const Flight& a, const Flight& b) { return a.first < b.first; });
    if (cycle_ < next->first) return;
    if (next != flights_.begin()) {
      const Flight chosen = *next;
      flights_.erase(next);
      flights_.push_front(chosen);
      next = flights_.begin();
    }
  }
  --next->beats;
  begun_ = next->beats != 0;
  shared_in_.push({next->client, {next->id, !begun_}});
  next_beat_ = cycle_ + memory_.beat_cycles();
  if (!begun_) flights_.pop_front();
}

}  // namespace systole::hw::loop
