#include "hw/loop/store_path.h"

#include <algorithm>

namespace systole::hw::loop {

StorePath::StorePath(const PathShape& shape, std::uint32_t scale_stages, std::uint32_t banks,
                     MemoryPort& port, Translation& translation)
    : shape_(shape),
      scale_stages_(scale_stages),
      port_(port),
      translation_(translation),
      queue_(shape.queue),
      banks_(banks),
      tracked_(shape.tracked()) {}

void StorePath::acknowledge() {
  const MemoryPort::Answer* const answer = port_.answer(MemoryPort::kWriter);
  if (answer == nullptr) return;
  in_flight_ &= ~(std::uint64_t{1} << answer->id);
  port_.pop(MemoryPort::kWriter);
  ++counts_.acknowledged;
}

/// Whether the writer takes a block in this cycle.
bool StorePath::write_beat() {
  const bool misses = sending_ && translation_.misses(MemoryPort::kWriter);
  const std::uint64_t held = translating_ ? translating_->request.address : asked_;
  bool moves = false;
  bool room = !translating_;
  if (misses) {
    // It goes round once more, before the beat after it.
    later_ = translating_;
    translating_ = sending_;
    sending_.reset();
    room = false;
  } else {
    bool free = !sending_;
    if (sending_ && port_.accepts(MemoryPort::kWriter)) {
      port_.push(MemoryPort::kWriter, *sending_);
      sending_.reset();
      free = true;
    }
    if (translating_ && free) {
      sending_ = translating_;
      translating_.reset();
      moves = true;
      if (later_) {
        translating_ = later_;
        later_.reset();
      }
      room = !translating_;
    }
  }
  translation_.ask(MemoryPort::kWriter, held, moves);
  asked_ = held;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - shape_.in_flight);
  if (writer_ == Writer::kIdle) return true;
  if (!room || in_flight_before_ == all) return false;
  if (writer_ == Writer::kNewRequest) {
    const Packet packet = largest_packet(shape_, address_, left_);
    std::uint8_t id = 0;
    while ((in_flight_before_ >> id & 1U) != 0) ++id;
    in_flight_ |= std::uint64_t{1} << id;
    beat_ = {};
    beat_.request.write = true;
    beat_.request.address = address_;
    beat_.request.bytes = packet.bytes;
    beat_.id = id;
    beats_left_ = packet.size / shape_.beat_bytes;
    address_ += packet.bytes;
    left_ -= packet.bytes;
  }
  --beats_left_;
  beat_.last = beats_left_ == 0;
  translating_ = beat_;
  if (beats_left_ != 0) {
    writer_ = Writer::kBeats;
    return false;
  }
  writer_ = left_ == 0 ? Writer::kIdle : Writer::kNewRequest;
  return left_ == 0;
}

bool StorePath::conflicts(const Bank& bank, const AccumulatorWrite& write,
                          std::uint32_t row) const {
  if (write.any && write.accumulates) return true;
  return std::any_of(bank.written.begin(), bank.written.end(),
                     [row](const AccumulatorWrite& w) { return w.any && w.row == row; });
}

void StorePath::move(const AccumulatorWrites& writes) {
  const bool writer_takes = write_beat();
  // From the last queue to the first, each as it was at the begin of the cycle.
  const bool has_issued = !issuing_.empty(), has_scaled = !scaling_.empty(),
             has_normalised = !normalising_.empty();
  const bool scaling_full = scaling_.full(), normalising_full = normalising_.full();
  bool issuing_full = issuing_.full();
  dispatch_full_ = dispatched_.full();
  bool pipeline_full = in_scaling_.size() >= scale_stages_;
  const bool normaliser_has = normalised_ != 0, normaliser_full = normalised_ == kNormaliserEntries;
  if (has_issued && !in_scaling_.empty() && in_scaling_.front() <= cycle_ && writer_takes) {
    const Block block = issuing_.front();
    issuing_.pop();
    in_scaling_.pop_front();
    issuing_full = pipeline_full = false;
    address_ = block.address;
    left_ = block.before + block.bytes;
    writer_ = block.last ? Writer::kNewRequest : Writer::kIdle;
  }
  if (has_scaled && normaliser_has && !pipeline_full && !issuing_full) {
    issuing_.push(scaling_.front());
    scaling_.pop();
    --normalised_;
    in_scaling_.push_back(cycle_ + scale_stages_);
  }
  if (has_normalised && !scaling_full && !normaliser_full) {
    const Block& block = normalising_.front();
    Bank& bank = banks_[shape_.accumulator_bank(block.row)];
    if (bank.has_block && bank.from <= cycle_) {
      bank.has_block = false;
      scaling_.push(block);
      normalising_.pop();
      ++normalised_;
    }
  }
  returned_.reset();
  if (!dispatched_.empty() && !normalising_full) {
    const Block& block = dispatched_.front();
    const std::uint32_t index = shape_.accumulator_bank(block.row);
    Bank& bank = banks_[index];
    if (!bank.has_block && !conflicts(bank, writes.at(index), block.row)) {
      bank.has_block = true;
      bank.from = cycle_ + 1;
      returned_ = block.tracked;
      ++counts_.blocks;
      normalising_.push(block);
      dispatched_.pop();
    }
  }
  for (std::size_t i = 0; i < banks_.size(); ++i) {
    banks_[i].written = {writes.at(i), banks_[i].written[0]};
  }
}

void StorePath::control() {
  ends_ = false;
  if (queue_.empty()) return;
  const Command& command = queue_.front();
  if (state_ == State::kWaiting && command.kind == Kind::kConfigureStore) {
    ends_ = true;
    return;
  }
  const std::uint32_t blocks = (command.cols + shape_.side - 1) / shape_.side;
  const std::uint32_t element = command.full ? 4 : 1;
  bool begins = false;
  if (state_ == State::kWaiting) {
    const auto entry = tracked_.begin(command.slot, std::uint64_t{command.rows} * blocks);
    begins = entry.has_value();
    if (entry) current_ = *entry;
  }
  const bool none_begun = row_ == 0 && block_ == 0;
  const bool wants =
      begins || state_ == State::kFirstBlock || (state_ == State::kBlocks && !none_begun);
  const bool asks = wants && !dispatch_full_;
  const bool last_block = block_ + 1 == blocks;
  const bool last = asks && last_block && row_ + 1 == command.rows;
  const bool only_one = state_ == State::kBlocks && none_begun;
  if (asks) {
    Block block;
    block.address = command.address + std::uint64_t{row_} * command.pitch;
    block.before = block_ * shape_.side * element;
    block.bytes = (last_block ? (command.cols - 1) % shape_.side + 1 : shape_.side) * element;
    block.last = last_block;
    block.row = (command.row & ~kAccumulatorRow) + block_ * shape_.side + row_;
    block.tracked = current_;
    dispatched_.push(block);
  }
  if (begins) {
    state_ = asks ? State::kBlocks : State::kFirstBlock;
  } else if (state_ == State::kFirstBlock) {
    if (asks) state_ = State::kBlocks;
  } else if (state_ == State::kBlocks && (last || only_one)) {
    state_ = State::kWaiting;
    ends_ = true;
  }
  if (!asks) return;
  block_ = last_block ? 0 : block_ + 1;
  if (block_ == 0) row_ = row_ + 1 == command.rows ? 0 : row_ + 1;
}

void StorePath::end_cycle() {
  if (returned_) tracked_.subtract(*returned_, 1);
  if (ends_) queue_.pop();
  ends_ = false;
  in_flight_before_ = in_flight_;
  ++cycle_;
}

bool StorePath::busy() const {
  return in_flight_ != 0 || writer_ != Writer::kIdle || !issuing_.empty() || !scaling_.empty() ||
         !normalising_.empty() || !dispatched_.empty();
}

}  // namespace systole::hw::loop
