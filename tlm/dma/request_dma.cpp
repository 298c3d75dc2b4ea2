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

/// Whether no other process can act up to and including `time`.
bool all_sleep_beyond(const sc_core::sc_time& time) {
  const sc_core::sc_simcontext* const kernel = sc_core::sc_get_curr_simcontext();
  return sc_core::sc_time_to_pending_activity(kernel) > time - sc_core::sc_time_stamp();
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
  ends_row_.reserve(outstanding);
  slots_.reserve(outstanding);
}

RequestDma::Transfer RequestDma::begin(tlm::tlm_command command, std::uint64_t not_before,
                                       const OnRow& on_row) {
  next_issue_ = std::max({next_issue_, not_before, now()});
  payload_.set_command(command);
  batch_.requests.clear();  // an error may have left some
  ends_row_.clear();
  slots_.clear();
  return {on_row, to_ps(sc_core::sc_time_stamp()), next_issue_};
}

void RequestDma::issue_run(const Run& run, Transfer& transfer) {
  for (std::uint64_t at = 0; at < run.bytes;) {
    const std::uint64_t length = cut_.length(run.address, at, run.bytes);
    issue(run.address + at, run.data == nullptr ? nullptr : run.data + at,
          static_cast<std::uint32_t>(length), run.ends_row && at + length == run.bytes, transfer);
    at += length;
  }
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
  transfer.now_ps = std::max(transfer.now_ps, to_ps(sc_core::sc_time_stamp()));
}

void RequestDma::issue(std::uint64_t address, std::uint8_t* data, std::uint32_t bytes,
                       bool ends_row, Transfer& transfer) {
  // A full window: the next request has to know when the first one of the batch is done.
  if (batch_.requests.size() == window_.size()) send(transfer);
  if (tlb_ != nullptr) translate(address, transfer);
  const std::size_t slot = next_slot(transfer);
  const std::uint64_t cycle = std::max(next_issue_, window_[slot]);
  stats_.window_wait_cycles += cycle - next_issue_;
  next_issue_ = cycle;
  if (cycle > clock_.cycle_from_ps(transfer.now_ps) + quantum_) {
    // A wait in which no other process acts would change nothing but the time.
    if (const sc_core::sc_time edge = clock_.edge(cycle); all_sleep_beyond(edge)) {
      transfer.now_ps = to_ps(edge);
    } else {
      send(transfer);
      synchronise();
      transfer.now_ps = to_ps(sc_core::sc_time_stamp());
    }
  }
  // Field by field: copying a temporary would stall on its stores.
  RequestBatch::Request& request = batch_.requests.emplace_back();
  request.address = address;
  request.data = data;
  request.time = std::max(clock_.edge_ps(cycle), transfer.now_ps);
  request.bytes = bytes;
  ends_row_.push_back(ends_row);
  slots_.push_back(slot);
  window_[slot] = kUnknown;
  if (sampled_) flights_.push_back({cycle, 0, bytes});
  next_issue_ = cycle + 1;
  ++stats_.requests;
  stats_.bytes += bytes;
}

void RequestDma::send(Transfer& transfer) {
  const std::size_t count = batch_.requests.size();
  if (count == 0) return;
  transport_batch(batch_, payload_,
                  [this](auto& payload, auto& delay) { socket->b_transport(payload, delay); });
  // The target may have waited.
  transfer.now_ps = std::max(transfer.now_ps, to_ps(sc_core::sc_time_stamp()));
  for (std::size_t i = 0; i < count; ++i) {
    const RequestBatch::Request& request = batch_.requests[i];
    if (!request.is_ok()) report(request);
    const std::uint64_t done = clock_.cycle_from_ps(request.time);
    window_[slots_[i]] = done;
    if (sampled_) flights_[flights_.size() - count + i].done = done;
    transfer.row_done = std::max(transfer.row_done, done);
    if (!ends_row_[i]) continue;
    if (transfer.on_row) transfer.on_row(transfer.row, transfer.row_done);
    transfer.done = std::max(transfer.done, transfer.row_done);
    transfer.row_done = 0;
    ++transfer.row;
  }
  batch_.requests.clear();
  ends_row_.clear();
  slots_.clear();
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
