#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/number/half.h"
#include "tlm/bus/request_batch.h"
#include "tlm/ring/memory_port.h"

namespace systole::tlm_model::dfx {

/// A port of a core: an initiator of requests to one memory, which is at `base` on the bus. The
/// requests carry time alone; values move by direct access, as the core computes ahead.
class RingPort : public sc_core::sc_module, public PortMemory {
 public:
  tlm_utils::simple_initiator_socket<RingPort> socket{"socket"};

  /// Times may lie ahead of simulated time, or behind it.
  RingPort(const sc_core::sc_module_name& name, std::uint64_t base);

  /// From now on others use the memory too: an access waits until simulated time has come to it,
  /// and goes out as requests of a beat of the port. What is asked for in the past is asked for
  /// now. For accesses by an SC_THREAD.
  void share() { shared_ = true; }

  /// Reports an error of SystemC if the bus answers with one.
  std::uint64_t access(std::uint64_t address, std::uint64_t bytes, bool write,
                       std::uint64_t ps) override;

  /// The contents of the memory. Reports an error of SystemC if it does not grant direct access.
  [[nodiscard]] hw::Half* contents();
  /// Bytes of the memory from `address` on, without time.
  [[nodiscard]] std::vector<std::uint8_t> peek(std::uint64_t address, std::uint32_t bytes);

 private:
  /// Bytes that the port takes at a time, none of which crosses a multiple of it.
  static constexpr std::uint64_t kBeatBytes = 256;

  void make_requests(std::uint64_t address, std::uint64_t bytes, std::uint64_t ps);

  const std::uint64_t base_;
  bool shared_ = false;
  tlm::tlm_generic_payload payload_;
  RequestBatch batch_;
};

}  // namespace systole::tlm_model::dfx
