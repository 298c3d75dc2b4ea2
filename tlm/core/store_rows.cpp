/// Rows of results of the store unit: from the chain, and from what is behind it, to memory or the
/// scratchpad.
#include <algorithm>

#include "base/round.h"
#include "hw/core/bank_words.h"
#include "tlm/core/store_unit.h"

namespace systole::tlm_model {

/// Requests of a store issue as their beats come into the queue. What becomes known besides has to
/// be told to others first.
class StoreUnit::Pace final : public DmaPort::Pace {
 public:
  /// Of row `number`, which goes to `address`.
  Pace(StoreUnit& unit, Flow& flow, std::uint64_t number, std::uint64_t address)
      : unit_(unit), flow_(flow), number_(number), row_(address) {}

  std::optional<std::uint64_t> next(std::uint64_t address, std::uint64_t bytes) override {
    const std::optional<std::uint64_t> cycle =
        flow_.rows.request(bytes, unit_.queue_, unit_.input_times(flow_));
    if (cycle) unit_.follow(flow_);
    if (flow_.has_news()) return std::nullopt;
    const std::uint64_t end = address + bytes - row_;
    if (flow_.with_values && flow_.computed == number_ && flow_.valued < end) return std::nullopt;
    return cycle;
  }
  void issued(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes) override {
    flow_.rows.issued(cycle, address, bytes, unit_.queue_);
  }

 private:
  StoreUnit& unit_;
  Flow& flow_;
  const std::uint64_t number_, row_;
};

bool StoreUnit::Flow::has_news() const {
  return (has_operands && learnt < rows.left().size()) || (!released && rows.sums_read());
}

void StoreUnit::learn(Flow& flow) {
  const std::vector<std::uint64_t>& left = flow.rows.left();
  for (; flow.learnt < left.size(); ++flow.learnt) {
    const std::uint64_t end = left[flow.learnt] + flow.columns;
    const std::uint64_t unhindered = std::min(flow.row_done + flow.cycles.per_row, end);
    flow.busy += unhindered - std::min(unhindered, flow.row_done);
    keep_step(unhindered, kWork);
    if (end == flow.encoder_free) {
      flow.encoder_wait += end - unhindered;
      keep_step(end, kEncoder);
    } else if (end > unhindered) {
      const std::uint64_t refused = std::min(end - unhindered, flow.rows.refused(flow.learnt));
      flow.refused += refused;
      keep_step(unhindered + refused, kBankConflict);
    }
    keep_step(end, kMemory);
    flow.row_done = end;
    if (flow.observed) flow.read.push_back(end - flow.fill - 1);
    if (flow.has_operands) use_operands(flow.learnt + 1, left[flow.learnt]);
  }
  if (uses_operands_ && flow.learnt == flow.result->m) {
    uses_operands_ = false;
    operands_of_ = nullptr;
    operands_free_ = left.back();
    started_or_ended_.notify();
  }
  const std::optional<std::uint64_t> read = flow.rows.sums_read();
  if (flow.released || !read) return;
  flow.released = true;
  // What is left of them may be written over before this process comes to it.
  if (flow.with_values && flow.computed < flow.result->m) compute(flow, flow.result->m);
  processor().release_at(*flow.entry, std::max(cycle(), *read));
}

std::uint64_t StoreUnit::leave(std::uint64_t not_before, Flow& flow) {
  for (;;) {
    const std::uint64_t known = operands_known();
    const std::optional<std::uint64_t> end = flow.rows.leave(input_times(flow), not_before);
    learn(flow);
    if (end) return *end;
    await_inputs(flow, known);
  }
}

void StoreUnit::write_row(std::uint64_t number, std::uint64_t offset, const std::uint8_t* data,
                          std::uint64_t bytes, Flow& flow) {
  const std::uint64_t address = flow.store->to.address + offset;
  Pace pace(*this, flow, number, address);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t known = operands_known();
    if (flow.with_values) compute_known(number, flow);
    const DmaPort::Written written = write_dma->write_row(address, data, bytes, at, pace);
    flow.written = std::max(flow.written, written.done);
    const bool is_late = written.bytes == at && !flow.has_news();
    at = written.bytes;
    learn(flow);
    if (is_late) await_inputs(flow, known);
  }
}

// Loads have the banks first: what they write by then has to be known.
std::uint64_t StoreUnit::serve_words(std::uint64_t address, std::uint64_t bytes,
                                     std::uint64_t words, std::uint64_t from) {
  BankedSram& scratchpad = memory_.scratchpad;
  if (from > cycle() + loads_known_) wait_cycles(from - cycle());
  if (from + words <= cycle() + loads_known_ &&
      !hw::bank_access(address, bytes, scratchpad.bank_size()).crosses &&
      scratchpad.is_left_alone(address, address + bytes, from, from + words)) {
    return scratchpad.serve(BankedSram::Client::kStore, address, address + bytes, words, from);
  }
  for (std::uint64_t word = 0; word < words; ++word) {
    const std::uint64_t at = address + word * bytes / words;
    const hw::BankAccess access =
        hw::bank_access(at, address + (word + 1) * bytes / words - at, scratchpad.bank_size());
    std::uint64_t free = 0;
    while ((free = hw::first_free(scratchpad.service(), access, from)) > cycle() + loads_known_) {
      wait_cycles(free - cycle());
    }
    scratchpad.serve(BankedSram::Client::kStore, access, free);
    from = free + 1;
  }
  return from;
}

void StoreUnit::move_row(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes,
                         Flow& flow) {
  BankedSram& scratchpad = memory_.scratchpad;
  const std::uint64_t row = flow.move->to.address + offset;
  for (bool is_over = false; !is_over;) {
    const std::uint64_t known = operands_known();
    const std::optional<std::uint64_t> leaves = flow.rows.next(input_times(flow));
    if (flow.has_news()) learn(flow);
    if (!leaves) {
      await_inputs(flow, known);
      continue;
    }
    if (flow.with_values) compute_known(number, flow);
    const std::uint64_t at = flow.rows.piece_address(), length = flow.rows.piece_bytes();
    const std::uint64_t words =
        hw::accesses_to_write(memory_.scratchpad_code, at, at + length, scratchpad.word_bytes());
    // Words that a code reads first are read ahead.
    const std::uint64_t end = serve_words(at, length, words, *leaves - std::min(*leaves, words));
    flow.written = std::max(flow.written, end + hw::kBankWriteCycles);
    events().scratchpad_bytes += scratchpad.count(words * scratchpad.word_bytes());
    is_over = flow.rows.take(end);
    if (is_over || flow.has_news()) learn(flow);
  }
  if (!flow.observed) return;
  StoredUse& use = flow.writes.emplace_back();
  use.space = hw::Space::kScratchpad;
  use.write = true;
  use.first_step = use.last_step = flow.steps.back().step;
  use.address = row;
  use.pitch = use.bytes = bytes;
  use.cycle = static_cast<std::int64_t>(flow.row_done);
}

void StoreUnit::put(std::uint64_t number, std::uint64_t offset, std::uint64_t at_result,
                    std::uint64_t bytes, Flow& flow) {
  if (flow.move != nullptr) return move_row(number, offset, bytes, flow);
  write_row(number, offset, flow.with_values ? result_.data() + at_result : nullptr, bytes, flow);
}

void StoreUnit::encode(std::uint64_t row, Flow& flow) {
  flow.encoder_free = encoder_begun_;
  const std::uint64_t end = leave(encoder_begun_, flow);
  const std::uint64_t features = flow.result->n / flow.encoder->in_heads;
  const hw::HeadMixLines::Token token = encoder_.take(*flow.encoder, features, end);
  if (recorder() != nullptr) {
    recorder()->hold(encoder_state_, ps(end), ps(token.done), wave_state("busy"));
    recorder()->hold(encoder_row_, ps(end), ps(token.done), row);
  }
  flow.encoder_delay = token.done - end;
  const std::uint64_t macs = features * hw::mix_products(*flow.encoder);
  const std::uint64_t outputs = features * flow.encoder->out_heads;
  encoder_macs_ += macs;
  operations_ += outputs;
  events().macs += macs;
  events().postop_elements += outputs;

  const std::uint64_t address = flow.store->to.address + row * flow.pitch;
  // The last piece is there when the encoder is done with the row.
  const std::uint64_t pieces = ceil_div(flow.row_bytes, piece_bytes_[0]);
  flow.rows.begin_made(address, flow.row_bytes, token.done - std::min(token.done, pieces));
  put(row, row * flow.pitch, row * flow.row_bytes, flow.row_bytes, flow);
  encoder_begun_ = token.begun + flow.rows.free() - std::min(flow.rows.free(), token.done);
}

void StoreUnit::transpose(std::uint64_t first, std::uint64_t rows, Flow& flow) {
  // The transposer has two buffers: it takes the last row when the columns before have left it.
  const std::uint64_t columns_left = flow.rows.free();
  std::uint64_t end = 0;
  for (std::uint64_t row = 1; row <= rows; ++row) end = leave(row == rows ? columns_left : 0, flow);
  if (flow.with_values) compute(flow, std::max(flow.computed, first + rows));
  const std::uint64_t columns = flow.result->n;
  const std::uint64_t element = flow.row_bytes / flow.result->m, bytes = rows * element;
  const std::uint64_t base = flow.move != nullptr ? flow.move->to.address : flow.store->to.address;
  for (std::uint64_t column = 0; column < columns; ++column) {
    const std::uint64_t offset = column * flow.pitch + first * element;
    flow.rows.begin_made(base + offset, bytes, end);
    put(first, offset, first * flow.computed_bytes + column * bytes, bytes, flow);
  }
}

}  // namespace systole::tlm_model
