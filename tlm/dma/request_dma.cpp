#include "tlm/dma/request_dma.h"

#include <algorithm>
#include <string>

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
      window_(outstanding, 0) {
  batch_.requests.reserve(outstanding);
  issued_.reserve(outstanding);
}

RequestDma::Transfer RequestDma::begin(tlm::tlm_command command, std::uint64_t not_before,
                                       const OnRow& on_row) {
  next_issue_ = std::max({next_issue_, not_before, now()});
  payload_.set_command(command);
  batch_.clear();  // an error may have left some
  issued_.clear();
  Transfer transfer{on_row, next_issue_};
  set_now(transfer, to_ps(sc_core::sc_time_stamp()));
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
                               const OnRow& on_row) {
  Transfer transfer = begin(command, not_before, on_row);
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

std::uint64_t RequestDma::read_runs(const std::vector<Run>& runs, const OnRow& on_row) {
  Transfer transfer = begin(tlm::TLM_READ_COMMAND, 0, on_row);
  for (const Run& run : runs) issue_run(run, transfer);
  return end(transfer);
}

bool RequestDma::is_stream(const Rows& rows) const noexcept {
  const std::uint64_t bytes = cut_.request_bytes;
  return !singly_ && !sampled_ && tlb_ == nullptr && slots_in_order_ && cut_.row_bytes == 0 &&
         (rows.count == 1 || rows.pitch == rows.bytes) && rows.address % bytes == 0 &&
         rows.bytes % bytes == 0 &&
         (rows.data == nullptr || rows.count == 1 || rows.data_pitch == rows.bytes);
}

std::size_t RequestDma::count_even(std::uint64_t count, Transfer& transfer,
                                   std::uint64_t& step) const {
  const std::uint64_t first = window_[oldest_];
  const std::size_t second = oldest_ + 1 == window_.size() ? 0 : oldest_ + 1;
  if (!issued_.empty() || first != next_issue_ || window_[second] <= first) return 0;
  step = window_[second] - first;
  if (!clock_.divides(clock_.edge_ps(step)) || clock_.edge_ps(first) < transfer.now_ps) return 0;
  std::uint64_t limit = transfer.furthest;
  if (first + step * (window_.size() - 1) > limit) {
    if (transfer.next_activity == 0) transfer.next_activity = pending_activity();
    // The last edge before it.
    limit = std::max(limit + 1, clock_.cycle_from_ps(transfer.next_activity)) - 1;
  }
  std::size_t even = 0, slot = oldest_;
  for (std::uint64_t cycle = first; even < std::min<std::uint64_t>(count, window_.size());
       cycle += step, ++even) {
    if (cycle > limit || window_[slot] != cycle) break;
    slot = slot + 1 == window_.size() ? 0 : slot + 1;
  }
  return even;
}

void RequestDma::issue_stream(const Rows& rows, Transfer& transfer) {
  const auto bytes = static_cast<std::uint32_t>(cut_.request_bytes);
  const std::uint64_t in_row = rows.bytes / bytes, count = rows.count * in_row;
  std::uint64_t left_in_row = in_row;
  const auto ends_row = [&] {
    if (--left_in_row != 0) return false;
    left_in_row = in_row;
    return true;
  };
  for (std::uint64_t i = 0; i < count;) {
    const std::uint64_t address = rows.address + i * bytes;
    std::uint8_t* const data = rows.data == nullptr ? nullptr : rows.data + i * bytes;
    // As issue() does for the next request.
    make_room(transfer);
    reach(window_[oldest_], transfer);
    std::uint64_t step = 0;
    // What it costs to prepare is worth it from a few requests on.
    constexpr std::size_t kFewest = 4;
    const std::size_t even = count_even(count - i, transfer, step);
    if (even < kFewest) {
      issue(address, data, bytes, ends_row(), transfer);
      ++i;
      continue;
    }
    const std::uint64_t first = window_[oldest_], last = first + step * (even - 1);
    for (std::uint64_t cycle = first; cycle <= last; cycle += step) {
      if (cycle > transfer.furthest) set_now(transfer, clock_.edge_ps(cycle));
      issued_.push_back({oldest_, ends_row()});
      if (++oldest_ == window_.size()) oldest_ = 0;
    }
    batch_.requests.push_back(
        {address, data, clock_.edge_ps(first), bytes, tlm::TLM_INCOMPLETE_RESPONSE});
    batch_.more = even - 1;
    batch_.step = clock_.edge_ps(step);
    stats_.window_wait_cycles += (even - 1) * (step - 1);
    stats_.requests += even;
    stats_.bytes += even * bytes;
    next_issue_ = last + 1;
    i += even;
  }
}

void RequestDma::synchronise() {
  const sc_core::sc_time edge = clock_.edge(next_issue_);
  if (edge > sc_core::sc_time_stamp()) wait(edge - sc_core::sc_time_stamp());
}

std::size_t RequestDma::next_slot(Transfer& transfer) {
  if (slots_in_order_) {
    const std::size_t slot = oldest_;
    if (++oldest_ == window_.size()) oldest_ = 0;
    return slot;
  }
  auto first = std::min_element(window_.begin(), window_.end());
  if (*first > next_issue_) {
    // One that was not sent yet may be the first to end.
    send(transfer);
    first = std::min_element(window_.begin(), window_.end());
  }
  return static_cast<std::size_t>(first - window_.begin());
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
  // The walker may have waited.
  transfer.next_activity = 0;
  set_now(transfer, std::max(transfer.now_ps, to_ps(sc_core::sc_time_stamp())));
}

void RequestDma::reach(std::uint64_t free, Transfer& transfer) {
  const std::uint64_t cycle = std::max(next_issue_, free);
  stats_.window_wait_cycles += cycle - next_issue_;
  next_issue_ = cycle;
  if (cycle <= transfer.furthest) return;
  // A wait in which no other process acts would change nothing but the time.
  if (transfer.next_activity == 0) transfer.next_activity = pending_activity();
  if (const std::uint64_t edge = clock_.edge_ps(cycle); transfer.next_activity > edge) {
    set_now(transfer, edge);
    return;
  }
  send(transfer);
  synchronise();
  transfer.next_activity = 0;
  set_now(transfer, to_ps(sc_core::sc_time_stamp()));
}

void RequestDma::issue(std::uint64_t address, std::uint8_t* data, std::uint32_t bytes,
                       bool ends_row, Transfer& transfer) {
  make_room(transfer);
  batch_.expand();  // this one is not like those in it
  if (tlb_ != nullptr) translate(address, transfer);
  const std::size_t slot = next_slot(transfer);
  reach(window_[slot], transfer);
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

void RequestDma::send(Transfer& transfer) {
  const std::size_t count = issued_.size();
  if (count == 0) return;
  transport_batch(batch_, payload_,
                  [this](auto& payload, auto& delay) { socket->b_transport(payload, delay); });
  // The target may have waited.
  transfer.next_activity = 0;
  set_now(transfer, std::max(transfer.now_ps, to_ps(sc_core::sc_time_stamp())));
  const auto finish = [&](std::size_t i, std::uint64_t done) {
    window_[issued_[i].slot] = done;
    if (sampled_) flights_[flights_.size() - count + i].done = done;
    transfer.row_done = std::max(transfer.row_done, done);
    if (!issued_[i].ends_row) return;
    if (transfer.on_row) transfer.on_row(transfer.row, transfer.row_done);
    transfer.done = std::max(transfer.done, transfer.row_done);
    transfer.row_done = 0;
    ++transfer.row;
  };
  if (batch_.more != 0) {
    if (!batch_.requests.front().is_ok()) report(batch_.requests.front());
    const std::uint64_t first = clock_.cycle_from_ps(batch_.requests.front().time);
    const std::uint64_t step = clock_.cycles_in(batch_.step);
    for (std::size_t i = 0; i < count; ++i) finish(i, first + i * step);
    timed_in_one_ += count;
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      if (!batch_.requests[i].is_ok()) report(batch_.requests[i]);
      finish(i, clock_.cycle_from_ps(batch_.requests[i].time));
    }
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
