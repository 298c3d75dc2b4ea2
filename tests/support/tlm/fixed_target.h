#pragma once

#include <tlm_utils/passthrough_target_socket.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <systemc>
#include <tlm>
#include <vector>

#include "tlm/common/time.h"

namespace systole::test {

/// A memory of 10 ns, twice that below `slow_end`, or of what `latency_of` says, which notes the
/// requests that reach it. It holds 1, 2, 3 ... at first.
class FixedTarget : public sc_core::sc_module {
 public:
  tlm_utils::passthrough_target_socket<FixedTarget> socket{"socket"};
  sc_core::sc_time latency{10, sc_core::SC_NS};
  std::uint64_t slow_end = 0;
  std::function<sc_core::sc_time(std::size_t request)> latency_of;  ///< by number; may be empty
  std::vector<unsigned char> bytes;
  // Of all requests:
  std::vector<std::uint64_t> addresses;
  std::vector<unsigned> lengths;
  std::vector<tlm::tlm_command> commands;
  std::vector<sc_core::sc_time> arrivals;

  explicit FixedTarget(const sc_core::sc_module_name& name, std::size_t size = 4096)
      : sc_module(name), bytes(size) {
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
    socket.register_b_transport(this, &FixedTarget::b_transport);
    socket.register_get_direct_mem_ptr(this, &FixedTarget::get_direct_mem_ptr);
  }

  /// Arrivals in cycles of 1 ns.
  [[nodiscard]] std::vector<std::uint64_t> cycles() const {
    std::vector<std::uint64_t> cycles;
    for (const sc_core::sc_time& time : arrivals) cycles.push_back(tlm_model::to_ps(time) / 1000);
    return cycles;
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    addresses.push_back(payload.get_address());
    lengths.push_back(payload.get_data_length());
    commands.push_back(payload.get_command());
    arrivals.push_back(sc_core::sc_time_stamp() + delay);
    delay += latency_of                         ? latency_of(addresses.size() - 1)
             : payload.get_address() < slow_end ? 2 * latency
                                                : latency;
    if (payload.get_address() + payload.get_data_length() > bytes.size()) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    if (unsigned char* const data = payload.get_data_ptr()) {
      unsigned char* const here = &bytes[payload.get_address()];
      if (payload.is_read()) std::memcpy(data, here, payload.get_data_length());
      if (payload.is_write()) std::memcpy(here, data, payload.get_data_length());
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }

  // Offers more than it has been asked for, as a target may.
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi& dmi) {
    dmi.allow_read_write();
    dmi.set_dmi_ptr(bytes.data());
    dmi.set_start_address(0);
    dmi.set_end_address(bytes.size() - 1);
    dmi.set_read_latency(dmi.get_read_latency() + latency);
    return true;
  }
};

}  // namespace systole::test
