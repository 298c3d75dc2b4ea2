#include "tlm/axi/axi_target_bridge.h"

#include <algorithm>
#include <string>

#include "tlm/common/rtl_stack.h"

namespace systole::tlm_model {
namespace {

tlm::tlm_response_status status_of(hw::AxiResponse response) {
  switch (response) {
    case hw::AxiResponse::kOkay:
      return tlm::TLM_OK_RESPONSE;
    case hw::AxiResponse::kDecErr:
      return tlm::TLM_ADDRESS_ERROR_RESPONSE;
    default:
      return tlm::TLM_GENERIC_ERROR_RESPONSE;
  }
}

/// One byte enable for each byte: those of a payload repeat (IEEE 1666, 14.13).
std::vector<std::uint8_t> enables_of(const tlm::tlm_generic_payload& payload) {
  std::vector<std::uint8_t> enables(payload.get_data_length());
  for (std::size_t i = 0; i < enables.size(); ++i) {
    enables[i] = payload.get_byte_enable_ptr()[i % payload.get_byte_enable_length()];
  }
  return enables;
}

}  // namespace

AxiTargetBridge::AxiTargetBridge(const sc_core::sc_module_name& name, const hw::Machine::Bus& bus,
                                 const hw::AxiRequester::Params& params, hw::AxiResponder& rtl)
    : sc_module(name),
      clock_(bus.clock_mhz),
      rtl_(rtl),
      requester_(params),
      checker_(params.bytes) {
  require_ps_resolution();
  socket.register_b_transport(this, &AxiTargetBridge::b_transport);
  socket.register_transport_dbg(this, &AxiTargetBridge::transport_dbg);
  SC_HAS_PROCESS(AxiTargetBridge);
  SC_THREAD(run_clock);
  set_stack_size(kRtlStackBytes);
}

bool AxiTargetBridge::busy() const {
  return rtl_.active() || !requester_.idle() || requester_.waiting();
}

// Pins matter at edges alone, so a cycle is settled at the edge that ends it.
void AxiTargetBridge::run_clock() {
  for (std::uint64_t cycle = 0;;) {
    while (!busy()) wait(started_);
    // The first edge after now: what was asked for at an edge is on the pins after it.
    cycle = std::max(cycle, clock_.cycle_from(sc_core::sc_time_stamp() + from_ps(1)));
    if (requester_.idle() && !rtl_.active() && requester_.next_cycle() > cycle) {
      // Nothing to do until then, unless another request comes first.
      const sc_core::sc_time until = clock_.edge(requester_.next_cycle() - 1);
      wait(until - sc_core::sc_time_stamp(), started_);
      continue;
    }
    clock_.wait_until(cycle);
    requester_.drive(pins_, cycle);
    rtl_.settle(pins_);
    if (!checker_.watch(pins_, cycle)) {
      SC_REPORT_ERROR("/systole/axi_target_bridge",
                      (std::string(this->name()) + ": " + checker_.breach()).c_str());
      return;
    }
    requester_.edge(pins_, cycle,
                    [this](std::size_t number, std::uint64_t edge, hw::AxiResponse response,
                           const std::vector<hw::AxiBurstBeats>& bursts) {
                      const auto job = jobs_.find(number);
                      const Job& done = job->second;
                      if (!done.request.write && response == hw::AxiResponse::kOkay) {
                        hw::take_read_bytes(bursts, done.request, requester_.params().bytes);
                      }
                      *done.status = status_of(response);
                      *done.time = clock_.edge_ps(edge);
                      --*done.left;
                      jobs_.erase(job);
                      answered_.notify();
                    });
    rtl_.edge();
    ++cycles_;
    ++cycle;
  }
}

bool AxiTargetBridge::ask(RequestBatch::Request& request, bool write, const std::uint8_t* enables,
                          std::uint64_t& left) {
  if (request.bytes == 0) {
    request.status = tlm::TLM_BURST_ERROR_RESPONSE;
    return false;
  }
  if (request.data == nullptr) {
    request.status = tlm::TLM_GENERIC_ERROR_RESPONSE;
    return false;
  }
  const hw::AxiRequest work{request.address, request.data, enables, request.bytes, write};
  const std::size_t number = requester_.ask(hw::axi_bursts(work, requester_.params().bytes),
                                            clock_.cycle_from_ps(request.time));
  jobs_.emplace(number, Job{work, &request.status, &request.time, &left});
  ++left;
  return true;
}

void AxiTargetBridge::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (payload.get_command() == tlm::TLM_IGNORE_COMMAND) {
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return;
  }
  std::uint64_t left = 0;
  const auto ask_and_wait = [&](std::vector<RequestBatch::Request>& requests,
                                const std::uint8_t* enables) {
    for (RequestBatch::Request& request : requests) ask(request, payload.is_write(), enables, left);
    if (left != 0) started_.notify();
    while (left != 0) wait(answered_);
  };
  if (RequestBatch* const batch = batch_of(payload, delay)) {
    ask_and_wait(batch->requests, nullptr);
    batch->served = true;
    return;
  }
  if (payload.get_streaming_width() < payload.get_data_length()) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  std::vector<std::uint8_t> enables;
  if (payload.get_byte_enable_ptr() != nullptr) {
    if (payload.get_byte_enable_length() == 0) {
      payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
      return;
    }
    enables = enables_of(payload);
  }
  std::vector<RequestBatch::Request> one = {
      {payload.get_address(), payload.get_data_ptr(), to_ps(sc_core::sc_time_stamp() + delay),
       payload.get_data_length(), tlm::TLM_INCOMPLETE_RESPONSE}};
  ask_and_wait(one, payload.get_byte_enable_ptr() == nullptr ? nullptr : enables.data());
  payload.set_response_status(one[0].status);
  delay = from_ps(one[0].time) - sc_core::sc_time_stamp();
}

unsigned AxiTargetBridge::transport_dbg(tlm::tlm_generic_payload& payload) {
  if (payload.get_data_ptr() == nullptr || payload.get_command() == tlm::TLM_IGNORE_COMMAND) {
    return 0;
  }
  return rtl_.debug(payload.is_write(), payload.get_address(), payload.get_data_ptr(),
                    payload.get_data_length());
}

}  // namespace systole::tlm_model
