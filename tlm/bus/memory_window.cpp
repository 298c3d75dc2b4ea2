#include "tlm/bus/memory_window.h"

#include <algorithm>

#include "tlm/bus/address_map.h"
#include "tlm/bus/request_batch.h"

namespace systole::tlm_model {
MemoryWindow::MemoryWindow(const sc_core::sc_module_name& name, std::uint64_t base,
                           std::uint64_t bytes)
    : sc_module(name), base_(base), bytes_(bytes) {
  target.register_b_transport(this, &MemoryWindow::b_transport);
  target.register_transport_dbg(this, &MemoryWindow::transport_dbg);
  target.register_get_direct_mem_ptr(this, &MemoryWindow::get_direct_mem_ptr);
}

void MemoryWindow::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  RequestBatch* const batch = batch_of(payload, delay);
  if (batch != nullptr) {
    const auto inside = [this](const RequestBatch::Request& request) {
      return holds(request.address, request.bytes);
    };
    if (std::all_of(batch->requests.begin(), batch->requests.end(), inside)) {
      for (RequestBatch::Request& request : batch->requests) request.address += base_;
      {
        const MovedAddress moved(
            payload, payload.get_address() + base_);  // for a bus that serves one at a time
        memory->b_transport(payload, delay);
      }
      for (RequestBatch::Request& request : batch->requests) request.address -= base_;
      return;
    }
    payload.clear_extension(batch);
  }
  if (!holds(payload.get_address(), payload.get_data_length())) {
    return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  const MovedAddress moved(payload, payload.get_address() + base_);
  memory->b_transport(payload, delay);
}

unsigned MemoryWindow::transport_dbg(tlm::tlm_generic_payload& payload) {
  if (!holds(payload.get_address(), payload.get_data_length())) return 0;
  const MovedAddress moved(payload, payload.get_address() + base_);
  return memory->transport_dbg(payload);
}

bool MemoryWindow::get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
  const MovedAddress moved(payload, payload.get_address() + base_);
  const bool granted = memory->get_direct_mem_ptr(payload, dmi);
  const std::uint64_t begin = dmi.get_start_address(), end = dmi.get_end_address();
  if (!granted || begin > base_ || end < base_ + bytes_ - 1) return false;
  dmi.set_dmi_ptr(dmi.get_dmi_ptr() + (base_ - begin));
  dmi.set_start_address(0);
  dmi.set_end_address(bytes_ - 1);
  return true;
}

}  // namespace systole::tlm_model
