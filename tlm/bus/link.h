#pragma once

#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

namespace systole::tlm_model {

/// Wires between a core's ports and the bus: every request takes `latency_ns` more on the way there
/// and its answer as long on the way back. Any number of requests are in flight. What comes at a
/// target socket leaves at the initiator socket of the same number. Debug accesses pass; there is
/// no direct access, which would take no time here.
class Link : public sc_core::sc_module {
 public:
  tlm_utils::multi_passthrough_target_socket<Link> ports{"ports"};
  tlm_utils::multi_passthrough_initiator_socket<Link> bus{"bus"};

  Link(const sc_core::sc_module_name& name, std::uint32_t latency_ns);

 private:
  void b_transport(int port, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(int port, tlm::tlm_generic_payload& payload);

  const sc_core::sc_time latency_;
};

}  // namespace systole::tlm_model
