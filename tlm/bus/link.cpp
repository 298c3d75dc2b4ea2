#include "tlm/bus/link.h"

#include "tlm/bus/request_batch.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {

Link::Link(const sc_core::sc_module_name& name, std::uint32_t latency_ns)
    : sc_module(name), latency_(latency_ns, sc_core::SC_NS) {
  require_ps_resolution();
  ports.register_b_transport(this, &Link::b_transport);
  ports.register_transport_dbg(this, &Link::transport_dbg);
}

unsigned Link::transport_dbg(int port, tlm::tlm_generic_payload& payload) {
  return bus[port]->transport_dbg(payload);
}

void Link::b_transport(int port, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const std::uint64_t latency = to_ps(latency_);
  RequestBatch* const batch = batch_of(payload, delay);
  if (batch != nullptr) {
    for (RequestBatch::Request& request : batch->requests) request.time += latency;
  }
  delay += latency_;
  bus[port]->b_transport(payload, delay);
  delay += latency_;
  if (batch == nullptr) return;
  // A batch that was not served goes on request by request, through here again.
  for (RequestBatch::Request& request : batch->requests) {
    request.time = batch->served ? request.time + latency : request.time - latency;
  }
}

}  // namespace systole::tlm_model
