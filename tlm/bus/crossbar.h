#pragma once

#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

#include "tlm/bus/address_map.h"

namespace systole::tlm_model {

/// Wires between any number of TLM-2.0 initiators and targets, and an address map: each target has
/// a port for each initiator, so nothing takes time or turns here. Where initiators meet is the
/// target's to say.
///
/// b_transport never waits and adds no time, and passes on a RequestBatch whose requests are all
/// for one target. An address that no target answers, or a request that leaves a target's range,
/// gets TLM_ADDRESS_ERROR_RESPONSE at once.
class Crossbar : public sc_core::sc_module {
 public:
  /// Bind initiators here ...
  tlm_utils::multi_passthrough_target_socket<Crossbar> initiators{"initiators"};
  /// ... and this to targets, with connect_target().
  tlm_utils::multi_passthrough_initiator_socket<Crossbar> targets{"targets"};

  explicit Crossbar(const sc_core::sc_module_name& name);

  /// Binds a target's socket to [base, base + size). Throws hw::InputError if the range is empty,
  /// wraps around, or overlaps another.
  template <typename Socket>
  void connect_target(Socket& socket, std::uint64_t base, std::uint64_t size) {
    map_.add({base, size, bound_++});
    targets.bind(socket);
  }

 private:
  void b_transport(int id, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(int id, tlm::tlm_generic_payload& payload);
  bool get_direct_mem_ptr(int id, tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);

  AddressMap map_;
  unsigned bound_ = 0;
};

}  // namespace systole::tlm_model
