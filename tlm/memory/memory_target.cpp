#include "tlm/memory/memory_target.h"

#include <algorithm>
#include <utility>

#include "tlm/common/time.h"

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

MemoryTarget::MemoryTarget(const sc_core::sc_module_name& name, std::uint64_t capacity,
                           bool functional)
    : sc_module(name),
      capacity_(capacity),
      functional_(functional),
      server_(
          "server", kRequestQueue,
          [this](tlm::tlm_generic_payload& payload) {
            sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
            b_transport(payload, delay);
            return delay;
          },
          [this](tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                 sc_core::sc_time& delay) {
            return socket->nb_transport_bw(payload, phase, delay);
          }) {
  require_ps_resolution();
  socket.register_nb_transport_fw(this, &MemoryTarget::nb_transport_fw);
  socket.register_b_transport(this, &MemoryTarget::b_transport);
  socket.register_transport_dbg(this, &MemoryTarget::transport_dbg);
  socket.register_get_direct_mem_ptr(this, &MemoryTarget::get_direct_mem_ptr);
}

void MemoryTarget::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (RequestBatch* const batch = batch_of(payload, delay)) {
    const bool write = payload.is_write();
    for (RequestBatch::Request& request : batch->requests) {
      request.status = check_and_serve(write, request);
    }
    batch->served = true;
    return;
  }
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  std::uint64_t time = now + to_ps(delay);
  payload.set_response_status(serve(payload, time));
  delay = from_ps(time - now);
}

tlm::tlm_response_status MemoryTarget::reject(tlm::tlm_response_status status) {
  ++rejected_;
  return status;
}

// A bad access is the initiator's error: answer with a status, never abort.
tlm::tlm_response_status MemoryTarget::serve(tlm::tlm_generic_payload& payload,
                                             std::uint64_t& time) {
  if (payload.get_command() == tlm::TLM_IGNORE_COMMAND) return tlm::TLM_OK_RESPONSE;
  if (payload.get_byte_enable_ptr() != nullptr) return reject(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  if (payload.get_streaming_width() < payload.get_data_length()) {
    return reject(tlm::TLM_BURST_ERROR_RESPONSE);
  }
  RequestBatch::Request request{payload.get_address(), payload.get_data_ptr(), time,
                                payload.get_data_length(), tlm::TLM_INCOMPLETE_RESPONSE};
  const tlm::tlm_response_status status = check_and_serve(payload.is_write(), request);
  tlm::tlm_dmi dmi;
  if (status == tlm::TLM_OK_RESPONSE) payload.set_dmi_allowed(offer(dmi));
  time = request.time;
  return status;
}

tlm::tlm_response_status MemoryTarget::check_and_serve(bool write, RequestBatch::Request& request) {
  if (request.bytes == 0) return reject(tlm::TLM_BURST_ERROR_RESPONSE);
  if (request.address >= capacity() || request.bytes > capacity() - request.address) {
    return reject(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  if (functional_ && request.data == nullptr) return reject(tlm::TLM_GENERIC_ERROR_RESPONSE);
  move(write, request);
  return tlm::TLM_OK_RESPONSE;
}

bool MemoryTarget::get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
  dmi.set_start_address(0);
  dmi.set_end_address(capacity() - 1);
  return offer(dmi);
}

unsigned MemoryTarget::transport_dbg(tlm::tlm_generic_payload& payload) {
  if (payload.get_data_ptr() == nullptr || payload.get_address() >= capacity() ||
      payload.get_command() == tlm::TLM_IGNORE_COMMAND) {
    return 0;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>(payload.get_data_length(), capacity() - payload.get_address());
  copy(payload.is_write(), payload.get_address(), payload.get_data_ptr(), bytes);
  return static_cast<unsigned>(bytes);
}

}  // namespace systole::tlm_model
