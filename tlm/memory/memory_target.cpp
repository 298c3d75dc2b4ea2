#include "tlm/memory/memory_target.h"

#include <algorithm>

#include "tlm/common/time.h"

namespace systole::tlm_model {

MemoryTarget::MemoryTarget(const sc_core::sc_module_name& name, std::uint64_t capacity,
                           bool functional)
    : sc_module(name), capacity_(capacity), functional_(functional), needs_data_(functional) {
  require_ps_resolution();
  socket.register_b_transport(this, &MemoryTarget::b_transport);
  socket.register_transport_dbg(this, &MemoryTarget::transport_dbg);
  socket.register_get_direct_mem_ptr(this, &MemoryTarget::get_direct_mem_ptr);
}

void MemoryTarget::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (RequestBatch* const batch = short_batch_of(payload, delay)) {
    const bool write = payload.is_write(), needs_data = needs_data_ && !batch->direct;
    batch->served = true;
    if (batch->more != 0 || !batch->times.empty()) {
      RequestBatch::Request& first = batch->requests.front();
      first.status = check(first, needs_data);
      // The others have data if the first has.
      if (batch->more != 0) {
        const bool inside =
            first.is_ok() && batch->more <= (capacity_ - first.address) / first.bytes - 1;
        if (inside && move_in_one(write, *batch)) return;
        batch->spread();
      }
      const bool inside =
          first.is_ok() && batch->rows.span(batch->times.size()) <= capacity_ - first.address;
      if (inside && move_rows(write, *batch)) return;
      batch->expand();
    }
    bool all_ok = true;
    for (RequestBatch::Request& request : batch->requests) {
      request.status = check(request, needs_data);
      all_ok &= request.is_ok();
    }
    if (all_ok) {
      move_all(write, batch->requests);
    } else {
      for (RequestBatch::Request& request : batch->requests) {
        if (request.is_ok()) {
          move(write, request);
        } else {
          ++rejected_;
        }
      }
    }
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
  const tlm::tlm_response_status status = check(request, needs_data_);
  if (status != tlm::TLM_OK_RESPONSE) return reject(status);
  move(payload.is_write(), request);
  tlm::tlm_dmi dmi;
  payload.set_dmi_allowed(offer(payload.get_address(), dmi));
  time = request.time;
  return status;
}

tlm::tlm_response_status MemoryTarget::check(const RequestBatch::Request& request,
                                             bool needs_data) const noexcept {
  if (request.bytes == 0) return tlm::TLM_BURST_ERROR_RESPONSE;
  if (request.address >= capacity_ || request.bytes > capacity_ - request.address) {
    return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  }
  if (needs_data && request.data == nullptr) return tlm::TLM_GENERIC_ERROR_RESPONSE;
  return tlm::TLM_OK_RESPONSE;
}

bool MemoryTarget::get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
  dmi.set_start_address(0);
  dmi.set_end_address(capacity() - 1);
  return offer(payload.get_address(), dmi);
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
