#include "tlm/dma_port.h"

#include <algorithm>
#include <string>

namespace systole::tlm_model {

DmaPort::DmaPort(const sc_core::sc_module_name& name, const hw::Machine& machine,
                 std::uint32_t outstanding)
    : sc_module(name),
      request_bytes_(machine.dma.request_bytes),
      clock_(machine.core.clock_mhz),
      window_(outstanding, 0) {}

std::uint64_t DmaPort::move(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                            std::uint64_t bytes, std::uint64_t not_before) {
  next_issue_ = std::max({next_issue_, not_before, now()});
  std::uint64_t done = next_issue_;
  // Up to the first boundary, then from one to the next.
  std::uint64_t most = request_bytes_ - address % request_bytes_;
  for (std::uint64_t at = 0; at < bytes; most = request_bytes_) {
    const auto length = static_cast<std::uint32_t>(std::min(most, bytes - at));
    done =
        std::max(done, issue(command, address + at, data == nullptr ? nullptr : data + at, length));
    at += length;
  }
  return done;
}

void DmaPort::synchronise() {
  const sc_core::sc_time edge = clock_.edge(next_issue_);
  if (edge > sc_core::sc_time_stamp()) wait(edge - sc_core::sc_time_stamp());
}

std::uint64_t DmaPort::issue(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                             std::uint32_t bytes) {
  std::uint64_t& slot = window_[oldest_];
  const std::uint64_t cycle = std::max(next_issue_, slot);
  stats_.window_wait_cycles += cycle - next_issue_;
  next_issue_ = cycle;
  std::uint64_t now_ps = to_ps(sc_core::sc_time_stamp());
  if (cycle > clock_.cycle_from_ps(now_ps) + quantum_) {
    synchronise();
    now_ps = to_ps(sc_core::sc_time_stamp());
  }

  payload_.set_command(command);
  payload_.set_address(address);
  payload_.set_data_ptr(data);
  payload_.set_data_length(bytes);
  payload_.set_streaming_width(bytes);
  payload_.set_dmi_allowed(false);
  payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay = from_ps(std::max(clock_.edge_ps(cycle), now_ps) - now_ps);
  socket->b_transport(payload_, delay);
  if (payload_.is_response_error()) {
    SC_REPORT_ERROR(
        "/systole/dma",
        (payload_.get_response_string() + " at address " + std::to_string(address)).c_str());
  }
  const std::uint64_t done = clock_.cycle_from_ps(to_ps(sc_core::sc_time_stamp()) + to_ps(delay));
  slot = done;
  if (++oldest_ == window_.size()) oldest_ = 0;
  if (sampled_) flights_.push_back({cycle, done, bytes});
  next_issue_ = cycle + 1;
  ++stats_.requests;
  stats_.bytes += bytes;
  return done;
}

void DmaPort::sample() {
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

void DmaPort::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, outstanding_, prefix + "outstanding");
  sc_core::sc_trace(file, moved_, prefix + "bytes");
}

}  // namespace systole::tlm_model
