#include "tlm/bus/crossbar.h"

#include <algorithm>

#include "tlm/bus/request_batch.h"

namespace systole::tlm_model {

Crossbar::Crossbar(const sc_core::sc_module_name& name) : sc_module(name) {
  initiators.register_b_transport(this, &Crossbar::b_transport);
  initiators.register_transport_dbg(this, &Crossbar::transport_dbg);
  initiators.register_get_direct_mem_ptr(this, &Crossbar::get_direct_mem_ptr);
}

void Crossbar::b_transport(int, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const AddressMap::Range* const range =
      map_.find(payload.get_address(), payload.get_data_length());
  RequestBatch* const batch = batch_of(payload, delay);
  if (batch != nullptr) {
    const bool together =
        range != nullptr && std::all_of(batch->requests.begin(), batch->requests.end(),
                                        [&](const RequestBatch::Request& request) {
                                          return map_.find(request.address, request.bytes) == range;
                                        });
    if (together) {
      for (RequestBatch::Request& request : batch->requests) request.address -= range->base;
    } else {
      payload.clear_extension(batch);  // the target must not serve what goes elsewhere
    }
  }
  if (range == nullptr) return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  {
    const LocalAddress local(payload, *range);
    targets[static_cast<int>(range->target)]->b_transport(payload, delay);
  }
  if (batch == nullptr || payload.get_extension<RequestBatch>() != batch) return;
  for (RequestBatch::Request& request : batch->requests) request.address += range->base;
}

unsigned Crossbar::transport_dbg(int, tlm::tlm_generic_payload& payload) {
  return debug_at_target(map_, targets, payload);
}

bool Crossbar::get_direct_mem_ptr(int, tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
  return direct_access_to_target(map_, targets, payload, dmi, sc_core::SC_ZERO_TIME);
}

}  // namespace systole::tlm_model
