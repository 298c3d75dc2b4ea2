#include "tlm/axi/axi_bridge.h"

#include <algorithm>

#include "tlm/bus/request_batch.h"
#include "tlm/common/rtl_stack.h"

namespace systole::tlm_model {
namespace {

hw::AxiSubordinate::Params before_bus(hw::AxiSubordinate::Params params,
                                      const hw::Machine::Bus& bus) {
  params.bus_bytes = bus.width_bytes;
  return params;
}

hw::AxiResponse response_of(tlm::tlm_response_status status) {
  if (status == tlm::TLM_OK_RESPONSE) return hw::AxiResponse::kOkay;
  return status == tlm::TLM_ADDRESS_ERROR_RESPONSE ? hw::AxiResponse::kDecErr
                                                   : hw::AxiResponse::kSlvErr;
}

}  // namespace

AxiBridge::AxiBridge(const sc_core::sc_module_name& name, const hw::Machine::Bus& bus,
                     hw::AxiSubordinate::Params params, hw::AxiManager& manager)
    : sc_module(name),
      clock_(bus.clock_mhz),
      manager_(manager),
      subordinate_(before_bus(params, bus)),
      checker_(params.bytes) {
  require_ps_resolution();
  SC_HAS_PROCESS(AxiBridge);
  SC_THREAD(run_clock);
  set_stack_size(kRtlStackBytes);
  SC_THREAD(run_requests);
}

bool AxiBridge::busy() const {
  return manager_.active() || !subordinate_.idle() || !requests_.empty();
}

// Pins matter at edges alone, so a cycle is settled once, when what is on them reaches the bus.
void AxiBridge::run_clock() {
  for (std::uint64_t cycle = 0;;) {
    if (!busy()) {
      stopped_.notify(sc_core::SC_ZERO_TIME);
      while (!busy()) wait(started_);
    }
    // The first edge after now: what starts the manager at an edge has set its inputs after it.
    cycle = std::max(cycle, clock_.cycle_from(sc_core::sc_time_stamp() + from_ps(1)));
    clock_.wait_until(cycle);
    subordinate_.drive(pins_, cycle);
    manager_.settle(pins_);
    if (!checker_.watch(pins_, cycle)) {
      SC_REPORT_ERROR("/systole/axi_bridge",
                      (std::string(this->name()) + ": " + checker_.breach()).c_str());
      return;
    }
    subordinate_.edge(pins_, cycle, [this](const hw::AxiSubordinate::Request& request) {
      if (!request.takes_time) return move_bytes(request);
      requests_.push_back(request);
      asked_.notify();
    });
    manager_.edge();
    ++cycles_;
    ++cycle;
  }
}

void AxiBridge::move_bytes(const hw::AxiSubordinate::Request& request) {
  tlm::tlm_generic_payload payload;
  payload.set_command(tlm::TLM_WRITE_COMMAND);
  describe_request(payload, request.address, request.data, request.bytes);
  (void)socket->transport_dbg(payload);  // the time of the burst says whether there is such a place
}

// A separate process: a target may wait, and the RTL's clock must not.
void AxiBridge::run_requests() {
  tlm::tlm_generic_payload payload;
  while (true) {
    while (requests_.empty()) wait(asked_);
    order_->take_turn(turn_);
    const hw::AxiSubordinate::Request request = requests_.front();
    payload.set_command(request.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    describe_request(payload, request.address, request.data, request.bytes);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    subordinate_.answer(request, clock_.cycle_from(sc_core::sc_time_stamp() + delay),
                        response_of(payload.get_response_status()));
    requests_.pop_front();
  }
}

}  // namespace systole::tlm_model
