#include "tlm/memory/at_server.h"

#include <utility>

namespace systole::tlm_model {

AtServer::AtServer(const sc_core::sc_module_name& name, std::size_t capacity, Serve serve,
                   Backward backward)
    : sc_module(name),
      capacity_(capacity),
      serve_(std::move(serve)),
      backward_(std::move(backward)),
      phases_(this, &AtServer::on_phase) {
  SC_HAS_PROCESS(AtServer);
  SC_METHOD(on_finished);
  sensitive << finished_.get_event();
  dont_initialize();
}

tlm::tlm_sync_enum AtServer::transport(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) {
    payload.acquire();
    phases_.notify(payload, phase, delay);
  } else if (phase == tlm::END_RESP) {
    phases_.notify(payload, phase, delay);
  } else if (phase == tlm::END_REQ || phase == tlm::BEGIN_RESP) {
    SC_REPORT_ERROR("/systole/at_server", "an initiator sent a phase that belongs to targets");
  }  // other phases are extensions, which the base protocol lets a target ignore
  return tlm::TLM_ACCEPTED;
}

void AtServer::on_phase(tlm::tlm_generic_payload& payload, const tlm::tlm_phase& phase) {
  if (phase == tlm::BEGIN_REQ) {
    begin_request(payload);
  } else {
    end_response(payload);
  }
}

void AtServer::begin_request(tlm::tlm_generic_payload& payload) {
  if (refused_ != nullptr) {
    SC_REPORT_ERROR("/systole/at_server", "BEGIN_REQ before the END_REQ of the previous request");
  }
  if (in_flight_ < capacity_) {
    accept(payload);
  } else {
    refused_ = &payload;
  }
}

void AtServer::accept(tlm::tlm_generic_payload& payload) {
  ++in_flight_;
  tlm::tlm_phase phase = tlm::END_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  backward_(payload, phase, delay);
  finished_.notify(payload, serve_(payload));
}

void AtServer::on_finished() {
  while (tlm::tlm_generic_payload* const payload = finished_.get_next_transaction()) {
    responses_.push_back(payload);
  }
  respond();
}

void AtServer::respond() {
  if (responding_ != nullptr || responses_.empty()) return;
  tlm::tlm_generic_payload& payload = *responses_.front();
  responses_.pop_front();
  responding_ = &payload;
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  // Anything but TLM_ACCEPTED ends the response, after the delay.
  if (backward_(payload, phase, delay) != tlm::TLM_ACCEPTED) {
    phases_.notify(payload, tlm::END_RESP, delay);
  }
}

void AtServer::end_response(tlm::tlm_generic_payload& payload) {
  if (responding_ != &payload) {
    SC_REPORT_ERROR("/systole/at_server", "END_RESP for a response that is not pending");
  }
  responding_ = nullptr;
  --in_flight_;
  payload.release();
  if (refused_ != nullptr) accept(*std::exchange(refused_, nullptr));
  respond();
}

}  // namespace systole::tlm_model
