#include "hw/loop/load_path.h"

#include <algorithm>

namespace systole::hw::loop {

Packet largest_packet(const PathShape& shape, std::uint64_t address, std::uint32_t left) {
  Packet best;
  for (std::uint32_t size = shape.beat_bytes; size <= shape.request_bytes; size *= 2) {
    const auto shift = static_cast<std::uint32_t>(address % size);
    const std::uint32_t bytes = std::min(size - shift, left);
    if (bytes > best.bytes) best = {size, shift, bytes};
  }
  return best;
}

void LoadPath::land(std::uint32_t& scratchpad_banks, AccumulatorWrites& writes) {
  returned_bytes_ = 0;
  const auto end_request = [this](const LocalRow& row) {
    if (!row.last) return;
    returned_bytes_ = row.bytes;
    returned_ = row.tracked;
  };
  const bool scratchpad_ends = repeated_.valid && repeated_.last;
  if (repeated_.valid) {
    scratchpad_banks |= 1U << shape_.scratchpad_bank(repeated_.row);
    ++counts_.scratchpad_rows;
    end_request(repeated_);
    repeated_.valid = false;
  }
  // Two requests cannot end in one cycle.
  if (sum_row_.valid && !scratchpad_ends) {
    AccumulatorWrite& write = writes.at(shape_.accumulator_bank(sum_row_.row));
    if (!write.any) {
      write = {true, false, sum_row_.row & ~kAccumulatorRow};
      ++counts_.accumulator_rows;
      end_request(sum_row_);
      sum_row_.valid = false;
    }
  }
  if (held_.valid) repeated_ = held_;
  held_.valid = false;
  if (scaled_.valid) held_ = scaled_;
  scaled_.valid = false;
}

void LoadPath::take_first_beat() {
  const MemoryPort::Answer answer = *port_.answer(MemoryPort::kReader);
  port_.pop(MemoryPort::kReader);
  merged_ = requests_[answer.id];
  merging_ = true;
  arrived_ = std::min(shape_.beat_bytes, merged_.packet.size);
  passed_ = 0;
  if (answer.last) requests_[answer.id].freed = true;
}

void LoadPath::pass_row(bool& popped) {
  const std::uint32_t width = row_bytes(merged_.accumulator);
  const std::uint32_t after = arrived_ > merged_.packet.shift ? arrived_ - merged_.packet.shift : 0;
  const std::uint32_t useful = std::min(after, merged_.packet.bytes);
  if (useful <= passed_ || (useful - passed_ < width && useful != merged_.packet.bytes)) return;
  if (merged_.accumulator && sum_row_.valid) return;
  const std::uint32_t offset = passed_ == 0 ? merged_.offset : 0;
  const std::uint32_t next = std::min(passed_ + width - offset, merged_.packet.bytes);
  LocalRow row;
  row.valid = true;
  row.last = next == merged_.packet.bytes;
  row.bytes = merged_.packet.bytes;
  row.tracked = merged_.tracked;
  row.row = merged_.row + shape_.side * ((merged_.offset + passed_) / width);
  (merged_.accumulator ? sum_row_ : scaled_) = row;
  passed_ = next;
  popped = row.last && arrived_ == merged_.packet.size;
}

void LoadPath::merge() {
  const MemoryPort::Answer* const answer = port_.answer(MemoryPort::kReader);
  if (!merging_) {
    if (answer != nullptr) take_first_beat();
    return;
  }
  const std::uint32_t size = merged_.packet.size;
  const std::uint32_t passed = passed_;
  bool popped = false;
  pass_row(popped);
  const bool takes_next = popped;
  popped = popped || (arrived_ == size && passed == merged_.packet.bytes);
  if (answer != nullptr && takes_next) {
    take_first_beat();
    return;
  }
  if (answer != nullptr && arrived_ != size) {
    const bool last = size - arrived_ <= shape_.beat_bytes;
    if (answer->last) requests_[answer->id].freed = true;
    port_.pop(MemoryPort::kReader);
    arrived_ = std::min(arrived_ + shape_.beat_bytes, size);
    popped = popped || (passed == merged_.packet.bytes && last);
  }
  if (popped) merging_ = false;
}

void LoadPath::request() {
  // A beat that finds no room goes round, before a new one.
  std::optional<MemoryPort::Beat> again;
  if (sending_) {
    if (port_.accepts(MemoryPort::kReader) && !translation_.misses(MemoryPort::kReader)) {
      port_.push(MemoryPort::kReader, *sending_);
    } else {
      again = sending_;
    }
  }
  translation_.ask(MemoryPort::kReader, translating_ ? translating_->request.address : asked_,
                   translating_.has_value());
  if (translating_) asked_ = translating_->request.address;
  sending_ = translating_;
  translating_ = again;
  bool next = !reading_;
  if (reading_) {
    const auto free = std::find_if(requests_.begin(), requests_.end(),
                                   [](const Request& request) { return !request.valid; });
    if (free == requests_.end()) {
      ++counts_.window_full;
    } else if (!translating_) {
      const std::uint32_t left = read_.bytes - read_bytes_;
      const std::uint32_t width = row_bytes(read_.accumulator);
      Request request;
      request.valid = true;
      request.packet = largest_packet(shape_, read_.address, left);
      request.accumulator = read_.accumulator;
      request.offset = read_bytes_ % width;
      request.row = read_.row + shape_.side * (read_bytes_ / width);
      request.tracked = read_.tracked;
      *free = request;
      MemoryPort::Beat beat;
      beat.request.address = read_.address - request.packet.shift;
      beat.request.bytes = request.packet.size;
      beat.id = static_cast<std::uint8_t>(free - requests_.begin());
      beat.beats = request.packet.size / shape_.beat_bytes;
      translating_ = beat;
      read_.address += request.packet.bytes;
      read_bytes_ += request.packet.bytes;
      if (request.packet.bytes == left) {
        reading_ = false;
        next = true;
      }
    }
  }
  for (Request& request : requests_) {
    if (request.freed) request.valid = request.freed = false;
  }
  // The queue of rows takes one in the cycle in which it passes one on.
  rows_full_ = rows_.full();
  if (!rows_.empty() && next) {
    read_ = rows_.front();
    rows_.pop();
    rows_full_ = false;
    reading_ = true;
    read_bytes_ = 0;
  }
}

void LoadPath::control() {
  ends_ = false;
  if (queue_.empty()) return;
  const Command& command = queue_.front();
  if (state_ == State::kWaiting && command.kind == Kind::kConfigureLoad) {
    ends_ = true;
    return;
  }
  bool begins = false;
  if (state_ == State::kWaiting) {
    const auto entry = tracked_.begin(
        command.slot, std::uint64_t{command.rows} * command.cols * (command.accumulator ? 4 : 1));
    begins = entry.has_value();
    if (entry) current_ = *entry;
  }
  const bool wants = begins || state_ == State::kFirstRow || (state_ == State::kRows && row_ != 0);
  const bool asks = wants && !rows_full_;
  const bool last = row_ == 0 || (row_ + 1 == command.rows && asks);
  if (asks) {
    rows_.push({command.address + std::uint64_t{row_} * command.pitch,
                command.cols * (command.accumulator ? 4 : 1), command.accumulator,
                command.row + row_, current_});
  }
  if (begins) {
    state_ = asks ? State::kRows : State::kFirstRow;
  } else if (state_ == State::kFirstRow) {
    if (asks) state_ = State::kRows;
  } else if (state_ == State::kRows && last) {
    state_ = State::kWaiting;
    ends_ = true;
  }
  if (asks) row_ = row_ + 1 == command.rows ? 0 : row_ + 1;
}

void LoadPath::end_cycle() {
  if (returned_bytes_ != 0) tracked_.subtract(returned_, returned_bytes_);
  if (ends_) queue_.pop();
  ends_ = false;
}

bool LoadPath::busy() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const Request& request) { return request.valid; });
}

}  // namespace systole::hw::loop
