#pragma once

#include <tlm_utils/passthrough_target_socket.h>

#include <cstdint>
#include <map>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_pins.h"
#include "hw/axi/axi_requester.h"
#include "hw/machine/machine.h"
#include "tlm/bus/request_batch.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {

/// Puts RTL with an AXI4 subordinate port on the system bus: a target of the bus that asks at the
/// RTL's pins, cycle by cycle. The RTL has the bus's clock. Addresses at the pins are offsets in
/// the target's range.
///
/// A request that arrives in bus cycle a is on the pins in the cycle that ends with edge a + 1 at
/// the earliest, and complete with the edge that takes its last answer (see hw::AxiRequester). So
/// b_transport waits, as targets may; requests of several initiators, and those of a RequestBatch,
/// are under way together.
///
/// | request                       | answer                         |
/// |-------------------------------|--------------------------------|
/// | neither read nor write        | TLM_OK_RESPONSE, nothing done  |
/// | byte enables                  | strobes; bytes of a read that are not enabled stay |
/// | no bytes, or streaming        | TLM_BURST_ERROR_RESPONSE       |
/// | byte enables of no length     | TLM_BYTE_ENABLE_ERROR_RESPONSE |
/// | no data pointer               | TLM_GENERIC_ERROR_RESPONSE     |
///
/// | response | status                     |
/// |----------|----------------------------|
/// | OKAY     | TLM_OK_RESPONSE            |
/// | DECERR   | TLM_ADDRESS_ERROR_RESPONSE |
/// | others   | TLM_GENERIC_ERROR_RESPONSE |
///
/// A request that takes several bursts has the worst of their responses. A breach of the protocol,
/// of the RTL or of the bridge, is reported as an SC_ERROR of one line.
class AxiTargetBridge : public sc_core::sc_module {
 public:
  tlm_utils::passthrough_target_socket<AxiTargetBridge> socket{"socket"};

  /// `rtl` must outlive the simulation. Throws std::invalid_argument on bad parameters.
  AxiTargetBridge(const sc_core::sc_module_name& name, const hw::Machine::Bus& bus,
                  const hw::AxiRequester::Params& params, hw::AxiResponder& rtl);

  /// The clock runs again: call it when something makes the RTL active.
  void start() { started_.notify(sc_core::SC_ZERO_TIME); }

  /// Cycles in which the RTL had a clock.
  [[nodiscard]] std::uint64_t cycles() const noexcept { return cycles_; }
  [[nodiscard]] const hw::AxiRequester::Counts& counts() const noexcept {
    return requester_.counts();
  }

 private:
  /// A request of a call that is under way, and where its answer goes.
  struct Job {
    hw::AxiRequest request;
    tlm::tlm_response_status* status;
    std::uint64_t* time;  ///< ps
    std::uint64_t* left;  ///< of the call: requests without an answer
  };

  void run_clock();
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload);
  /// Answers at once what is no access to the RTL; else it asks, and returns true.
  bool ask(RequestBatch::Request& request, bool write, const std::uint8_t* enables,
           std::uint64_t& left);
  [[nodiscard]] bool busy() const;

  const Clock clock_;
  hw::AxiResponder& rtl_;
  hw::AxiRequester requester_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::map<std::size_t, Job> jobs_;  ///< by the requester's number
  sc_core::sc_event started_, answered_;
  std::uint64_t cycles_ = 0;
};

}  // namespace systole::tlm_model
