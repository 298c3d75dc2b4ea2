#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

namespace systole::tlm_model {

/// A part of a memory that is on another bus: what comes at `target`, from address 0 to `bytes`,
/// leaves at `memory` as an access to the bytes from `base` on. It adds no time. Requests outside
/// get TLM_ADDRESS_ERROR_RESPONSE.
class MemoryWindow : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<MemoryWindow> target{"target"};
  tlm_utils::simple_initiator_socket<MemoryWindow> memory{"memory"};

  MemoryWindow(const sc_core::sc_module_name& name, std::uint64_t base, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address < bytes_ && bytes <= bytes_ - address;
  }
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload);
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);

  const std::uint64_t base_, bytes_;
};

}  // namespace systole::tlm_model
