#include "tlm/dma/request_dma.h"

#include <algorithm>
#include <string>
#include <utility>

namespace systole::tlm_model {
namespace {

/// Completion of a request that was not sent yet.
constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

void report(const RequestBatch::Request& request) {
  tlm::tlm_generic_payload payload;
  payload.set_response_status(request.status);
  SC_REPORT_ERROR(
      "/systole/dma",
      (payload.get_response_string() + " at address " + std::to_string(request.address)).c_str());
}

/// Before it no other process acts, ps; at most a second ahead, so that it can be counted in
/// cycles.
std::uint64_t pending_activity() {
  constexpr std::uint64_t kSecond = 1'000'000'000'000;
  const sc_core::sc_simcontext* const kernel = sc_core::sc_get_curr_simcontext();
  const std::uint64_t until = to_ps(sc_core::sc_time_to_pending_activity(kernel));
  return to_ps(sc_core::sc_time_stamp()) + std::min(until, kSecond);
}

}  // namespace

RequestDma::RequestDma(const sc_core::sc_module_name& name, const hw::Machine& machine,
                       std::uint32_t outstanding)
    : DmaPort(name),
      cut_(machine.dma),
      clock_(machine.core.clock_mhz),
      slots_in_order_(machine.dma.slots == hw::SlotOrder::kIssue),
      window_(outstanding, 0),
      late_(outstanding) {
  batch_.requests.reserve(outstanding);
  batch_.times.reserve(outstanding);
  issued_.reserve(outstanding);
}

RequestDma::Transfer RequestDma::begin(tlm::tlm_command command, std::uint64_t not_before,
                                       const OnArrival& on_arrival) {
  next_issue_ = std::max({next_issue_, not_before, now()});
  payload_.set_command(command);
  batch_.clear();  // an error may have left some
  issued_.clear();
  Transfer transfer{on_arrival, next_issue_};
  resume(transfer);
  return transfer;
}

void RequestDma::issue_run(const Run& run, Transfer& transfer) {
  cut_.for_each(run.address, run.bytes, [&](std::uint64_t at, std::uint64_t length) {
    issue(run.address + at, run.data == nullptr ? nullptr : run.data + at,
          static_cast<std::uint32_t>(length), run.ends_row && at + length == run.bytes, transfer);
  });
}

std::uint64_t RequestDma::end(Transfer& transfer) {
  send(transfer);
  const sc_core::sc_time now = from_ps(transfer.now_ps);
  if (now > sc_core::sc_time_stamp()) wait(now - sc_core::sc_time_stamp());
  return transfer.done;
}

std::uint64_t RequestDma::move(tlm::tlm_command command, const Rows& rows, std::uint64_t not_before,
                               const OnArrival& on_arrival) {
  Transfer transfer = begin(command, not_before, on_arrival);
  transfer.settling = rows.settling;
  transfer.places = rows.places;
  if (is_stream(rows)) {
    issue_stream(rows, transfer);
    return end(transfer);
  }
  for (std::uint64_t row = 0; row < rows.count; ++row) {
    std::uint8_t* const data = rows.data == nullptr ? nullptr : rows.data + row * rows.data_pitch;
    issue_run({rows.address + row * rows.pitch, data, rows.bytes, true}, transfer);
  }
  return end(transfer);
}

DmaPort::Written RequestDma::write_row(std::uint64_t address, const std::uint8_t* data,
                                       std::uint64_t bytes, std::uint64_t from, Pace& pace) {
  static const OnArrival kNone;
  Written written{from};
  std::uint64_t length = cut_.length(address, from, bytes);
  std::optional<std::uint64_t> ready = pace.next(address + from, length);
  if (!ready) return written;
  Transfer transfer = begin(tlm::TLM_WRITE_COMMAND, 0, kNone);
  while (ready) {
    const std::uint64_t at = written.bytes;
    next_issue_ = std::max(next_issue_, *ready);
    issue(address + at, data == nullptr ? nullptr : const_cast<std::uint8_t*>(data) + at,
          static_cast<std::uint32_t>(length), true, transfer);
    pace.issued(next_issue_ - 1, address + at, length);
    written.bytes += length;
    if (written.bytes == bytes) break;
    length = cut_.length(address, written.bytes, bytes);
    ready = pace.next(address + written.bytes, length);
    transfer.alone_until = 0;  // it may have others look at what it has learnt
  }
  written.done = end(transfer);
  return written;
}

std::uint64_t RequestDma::read_runs(const std::vector<Run>& runs, const OnArrival& on_arrival) {
  Transfer transfer = begin(tlm::TLM_READ_COMMAND, 0, on_arrival);
  for (const Run& run : runs) issue_run(run, transfer);
  return end(transfer);
}

bool RequestDma::is_stream(const Rows& rows) const noexcept {
  const std::uint64_t within = cut_.request_bytes - 1;
  const std::uint64_t ends = rows.address | rows.bytes | (rows.count == 1 ? 0 : rows.pitch);
  return !singly_ && !sampled_ && tlb_ == nullptr && slots_in_order_ && cut_.row_bytes == 0 &&
         (ends & within) == 0 &&
         (rows.count == 1 ||
          (rows.pitch >= rows.bytes && (rows.data == nullptr || rows.data_pitch >= rows.bytes)));
}

RequestDma::Even RequestDma::count_even(std::uint64_t count, Transfer& transfer) const {
  const std::uint64_t first = window_[oldest_];
  const std::uint32_t second = slot_after(oldest_);
  if (first != next_issue_ || window_[second] <= first) return {};
  Even even;
  even.step = window_[second] - first;
  if (!clock_.divides(clock_.edge_ps(even.step)) || clock_.edge_ps(first) < transfer.now_ps) {
    return {};
  }
  // Of the first one it is known; it may be the last before others act.
  look_ahead(transfer);
  const std::uint64_t limit = std::max(first + 1, transfer.alone_until) - 1;
  std::uint32_t slot = oldest_;
  for (std::uint64_t cycle = first; even.certain < std::min<std::uint64_t>(count, window_.size());
       cycle += even.step, ++even.certain) {
    if (cycle > limit || window_[slot] != cycle || late_[slot].places != nullptr) break;
    slot = slot_after(slot);
  }
  even.all = even.certain;
  if (even.certain == window_.size()) {
    even.all = std::min(count, (limit - first) / even.step + 1);
  }
  return even;
}

void RequestDma::issue_even(const Even& even, Stream& stream, Transfer& transfer) {
  const auto bytes = static_cast<std::uint32_t>(cut_.request_bytes);
  const std::uint64_t first = next_issue_;
  batch_.requests.push_back(
      {stream.address, stream.data, clock_.edge_ps(first), bytes, tlm::TLM_INCOMPLETE_RESPONSE});
  batch_.more = even.all - 1;
  batch_.step = clock_.edge_ps(even.step);
  if (even.all > even.certain) {
    batch_.certain = even.certain;
    batch_.answer_from = batch_.answer_by = clock_.edge_ps(first + even.step * window_.size());
  }
  transport(transfer);
  const std::uint64_t count = batch_.size();
  if (batch_.more != 0) {
    end_in_one(stream, transfer);
  } else {
    oldest_ = take_answers(oldest_, stream, transfer);
  }
  stream.pass(count);
  const std::uint64_t last = first + even.step * (count - 1);
  advance_to(last, transfer);
  next_issue_ = last + 1;
  stats_.window_wait_cycles += (count - 1) * (even.step - 1);
  stats_.requests += count;
  stats_.bytes += count * bytes;
  batch_.clear();
}

void RequestDma::end_in_one(const Stream& stream, Transfer& transfer) {
  if (!batch_.requests.front().is_ok()) report(batch_.requests.front());
  const std::uint64_t first = clock_.cycle_from_ps(batch_.requests.front().time);
  const std::uint64_t step = clock_.cycles_in(batch_.step), count = batch_.size();
  const std::uint64_t in_window = std::min<std::uint64_t>(count, window_.size());
  // What the last requests leave in the slots is what counts; in which of them it begins does not.
  for (std::uint64_t i = count - in_window; i < count; ++i) {
    window_[oldest_] = first + i * step;
    oldest_ = slot_after(oldest_);
  }
  for (std::uint64_t i = 0; i < count; ++i) batch_.times.push_back(first + i * step);
  finish(batch_.times, stream, transfer);
  timed_in_one_ += count;
}

void RequestDma::issue_stream(const Rows& rows, Transfer& transfer) {
  const std::uint64_t in_row = rows.bytes / cut_.request_bytes;
  Stream stream;
  stream.address = rows.address;
  stream.data = rows.data;
  stream.in_row = stream.row_left = in_row;
  stream.left = rows.count * in_row;
  stream.bytes = cut_.request_bytes;
  if (rows.count > 1) stream.gap = rows.pitch - rows.bytes;
  if (rows.data != nullptr) stream.data_bytes = stream.bytes;
  if (rows.data != nullptr && rows.count > 1) stream.data_gap = rows.data_pitch - rows.bytes;
  while (stream.left != 0) {
    // As issue() does for the next request.
    make_room(transfer);
    while (!settle(oldest_)) approach(oldest_, transfer);
    reach(window_[oldest_], transfer);
    // What it costs to prepare is worth it from a few requests on.
    constexpr std::uint64_t kFewest = 4;
    if (const std::uint64_t count = stream.in_line();
        transfer.settling == 0 && batch_.size() == 0 && count >= kFewest) {
      const Even even = count_even(count, transfer);
      if (even.certain >= kFewest) {
        issue_even(even, stream, transfer);
        continue;
      }
    }
    issue_in_reach(stream, transfer);
  }
}

void RequestDma::issue_in_reach(Stream& stream, Transfer& transfer) {
  const auto bytes = static_cast<std::uint32_t>(cut_.request_bytes);
  const Clock clock = clock_;
  std::vector<std::uint64_t>& times = batch_.times;
  const std::size_t before = times.size();
  if (before == 0) {
    batch_.rows = stream;
    batch_.requests.push_back(
        {stream.address, stream.data, 0, bytes, tlm::TLM_INCOMPLETE_RESPONSE});
  }
  std::uint64_t left = std::min<std::uint64_t>(stream.left, window_.size() - before);
  std::uint32_t slot = oldest_;
  std::uint64_t cycle = next_issue_, waited = 0;
  for (;;) {
    times.push_back(std::max(clock.edge_ps(cycle), transfer.now_ps));
    slot = slot_after(slot);
    ++cycle;
    if (--left == 0) break;
    const std::uint64_t next = std::max(cycle, window_[slot]);
    if (next >= transfer.alone_until || late_[slot].places != nullptr) break;
    waited += next - cycle;
    cycle = next;
  }
  batch_.requests.front().time = times.front();
  transfer.now_ps = times.back();
  oldest_ = slot;
  next_issue_ = cycle;
  const std::uint64_t count = times.size() - before;
  stream.pass(count);
  stats_.window_wait_cycles += waited;
  stats_.requests += count;
  stats_.bytes += count * bytes;
}

std::uint32_t RequestDma::take_answers(std::uint32_t slot, RequestRows rows, Transfer& transfer) {
  const bool is_expanded = batch_.times.empty();  // by the bus or the memory
  for (const RequestBatch::Request& request : batch_.requests) {
    if (!request.is_ok()) report(request);
    if (is_expanded) batch_.times.push_back(request.time);
  }
  const Clock clock = clock_;
  for (std::uint64_t& time : batch_.times) {
    time = clock.cycle_from_ps(time);
    window_[slot] = time + transfer.settling;
    if (transfer.places != nullptr) {
      finish(time, rows.bytes, rows.pass(), transfer);
      keep_slot(slot, transfer);
    }
    slot = slot_after(slot);
  }
  if (transfer.places == nullptr) finish(batch_.times, rows, transfer);
  return slot;
}

void RequestDma::send_rows(Transfer& transfer) {
  const std::size_t count = batch_.times.size(), slots = window_.size();
  const RequestRows rows = batch_.rows;
  transport(transfer);
  take_answers(static_cast<std::uint32_t>((oldest_ + slots - count) % slots), rows, transfer);
  batch_.clear();
}

void RequestDma::synchronise() {
  const sc_core::sc_time edge = clock_.edge(next_issue_);
  if (edge > sc_core::sc_time_stamp()) wait(edge - sc_core::sc_time_stamp());
}

std::uint32_t RequestDma::next_slot(Transfer& transfer) {
  if (slots_in_order_) return std::exchange(oldest_, slot_after(oldest_));
  auto first = std::min_element(window_.begin(), window_.end());
  if (*first > next_issue_) {
    // One that was not sent yet may be the first to end.
    send(transfer);
    first = std::min_element(window_.begin(), window_.end());
  }
  return static_cast<std::uint32_t>(first - window_.begin());
}

bool RequestDma::settle(std::uint32_t slot) {
  Late& late = late_[slot];
  if (late.places == nullptr) return true;
  const Places::Placed placed = late.places->placed(late.request);
  window_[slot] = placed.cycle;
  if (!placed.is_final) return false;
  late.places = nullptr;
  return true;
}

void RequestDma::approach(std::uint32_t slot, Transfer& transfer) {
  reach(window_[slot], transfer);
  send(transfer);
  synchronise();
  resume(transfer);
}

void RequestDma::keep_slot(std::uint32_t slot, const Transfer& transfer) {
  if (transfer.places == nullptr) return;
  late_[slot] = {transfer.places, transfer.places->last()};
  (void)settle(slot);
}

std::uint32_t RequestDma::reach_slot(Transfer& transfer) {
  std::uint32_t slot = next_slot(transfer);
  for (;;) {
    const bool is_settled = settle(slot);
    // Another one may be free sooner.
    const std::uint32_t first = slots_in_order_ ? slot : next_slot(transfer);
    if (first != slot) {
      slot = first;
    } else if (is_settled) {
      break;
    } else {
      approach(slot, transfer);
    }
  }
  reach(window_[slot], transfer);
  return slot;
}

void RequestDma::translate(std::uint64_t address, Transfer& transfer) {
  const std::uint64_t page = tlb_->page_of(address);
  if (page == page_) return;
  page_ = page;
  send(transfer);  // what was issued before a walk reaches memory before it
  const Tlb::Answer answer = tlb_->translate(page, next_issue_, *walker_);
  if (!answer.hit) ++stats_.tlb_misses;
  stats_.tlb_wait_cycles += answer.cycle - next_issue_;
  next_issue_ = answer.cycle;
  resume(transfer);  // the walker may have waited
}

void RequestDma::resume(Transfer& transfer) {
  transfer.now_ps = std::max(transfer.now_ps, to_ps(sc_core::sc_time_stamp()));
  transfer.alone_until = 0;
}

void RequestDma::look_ahead(Transfer& transfer) const {
  if (transfer.alone_until == 0) transfer.alone_until = clock_.cycle_from_ps(pending_activity());
}

void RequestDma::reach(std::uint64_t free, Transfer& transfer) {
  const std::uint64_t cycle = std::max(next_issue_, free);
  stats_.window_wait_cycles += cycle - next_issue_;
  next_issue_ = cycle;
  look_ahead(transfer);
  if (cycle < transfer.alone_until) return advance_to(cycle, transfer);
  send(transfer);
  synchronise();
  order_->take_turn(place_);
  resume(transfer);
}

void RequestDma::issue(std::uint64_t address, std::uint8_t* data, std::uint32_t bytes,
                       bool ends_row, Transfer& transfer) {
  make_room(transfer);
  if (tlb_ != nullptr) translate(address, transfer);
  const std::uint32_t slot = reach_slot(transfer);
  const std::uint64_t cycle = next_issue_;
  // Field by field: copying a temporary would stall on its stores.
  RequestBatch::Request& request = batch_.requests.emplace_back();
  request.address = address;
  request.data = data;
  request.time = std::max(clock_.edge_ps(cycle), transfer.now_ps);
  request.bytes = bytes;
  issued_.push_back({slot, ends_row});
  window_[slot] = kUnknown;
  if (sampled_) flights_.push_back({cycle, 0, bytes});
  next_issue_ = cycle + 1;
  ++stats_.requests;
  stats_.bytes += bytes;
}

void RequestDma::transport(Transfer& transfer) {
  transport_batch(batch_, payload_,
                  [this](auto& payload, auto& delay) { socket->b_transport(payload, delay); });
  resume(transfer);  // the target may have waited
}

void RequestDma::send(Transfer& transfer) {
  if (!batch_.times.empty()) return send_rows(transfer);
  const std::size_t count = issued_.size();
  if (count == 0) return;
  transport(transfer);
  for (std::size_t i = 0; i < count; ++i) {
    if (!batch_.requests[i].is_ok()) report(batch_.requests[i]);
    const std::uint64_t done = clock_.cycle_from_ps(batch_.requests[i].time);
    window_[issued_[i].slot] = done + transfer.settling;
    if (sampled_) flights_[flights_.size() - count + i].done = done;
    finish(done, batch_.requests[i].bytes, issued_[i].ends_row, transfer);
    keep_slot(issued_[i].slot, transfer);
  }
  batch_.clear();
  issued_.clear();
}

void RequestDma::sample() {
  sampled_ = true;
  const std::uint64_t present = now();
  outstanding_ = 0;
  std::deque<Flight> left;
  for (const Flight& flight : flights_) {
    if (flight.done <= present) {
      moved_ += flight.bytes;
      continue;
    }
    if (flight.issued <= present) ++outstanding_;
    left.push_back(flight);
  }
  flights_.swap(left);
}

void RequestDma::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, outstanding_, prefix + "outstanding");
  sc_core::sc_trace(file, moved_, prefix + "bytes");
}

}  // namespace systole::tlm_model
