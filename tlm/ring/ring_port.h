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

  /// Reports an error of SystemC if the bus answers with one.
  std::uint64_t access(std::uint64_t address, std::uint64_t bytes, bool write,
                       std::uint64_t ps) override;

  /// The contents of the memory. Reports an error of SystemC if it does not grant direct access.
  [[nodiscard]] hw::Half* contents();
  /// Bytes of the memory from `address` on, without time.
  [[nodiscard]] std::vector<std::uint8_t> peek(std::uint64_t address, std::uint32_t bytes);

 private:
  const std::uint64_t base_;
  tlm::tlm_generic_payload payload_;
  RequestBatch batch_;
};

}  // namespace systole::tlm_model::dfx
