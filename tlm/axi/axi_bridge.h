#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <tlm>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_pins.h"
#include "hw/axi/axi_subordinate.h"
#include "hw/machine/machine.h"
#include "tlm/common/time.h"
#include "tlm/dma/issue_order.h"

namespace systole::tlm_model {

/// Puts RTL with an AXI4 manager port on the system bus: an initiator of the bus that answers the
/// RTL's pins cycle by cycle. The RTL has the bus's clock.
///
/// What is on the pins in a cycle reaches the bus in that cycle. What the bus is done with in cycle
/// d is taken at the edge before it, so that the manager has it in cycle d, if it is ready and no
/// earlier answer is in the way (see hw::AxiSubordinate): no cycle is added to the contract of the
/// bus, and a manager that asks again in d does so as a port of the model. A target that blocks
/// until it is done is answered a cycle later. A write reaches the bus with its last beat, so that
/// a slow manager never holds the bus's data channel; its beats pass the pins before they pass the
/// bus. With `asks_with_address` it does so with its address, for its time alone, and its bytes
/// are in memory when the last beat is there: for targets that take time alone and transport_dbg(),
/// as a MemoryTarget does.
///
/// | bus                        | response |
/// |----------------------------|----------|
/// | TLM_OK_RESPONSE            | OKAY     |
/// | TLM_ADDRESS_ERROR_RESPONSE | DECERR   |
/// | any other                  | SLVERR   |
///
/// A breach of the protocol, of the RTL or of the bridge, is reported as an SC_ERROR of one line.
class AxiBridge : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<AxiBridge> socket{"socket"};

  /// `manager` must outlive the simulation. `params.bus_bytes` is set to the width of the bus.
  /// Throws std::invalid_argument on bad parameters.
  AxiBridge(const sc_core::sc_module_name& name, const hw::Machine::Bus& bus,
            hw::AxiSubordinate::Params params, hw::AxiManager& manager);

  /// The clock runs again: call it when something makes the manager active.
  void start() { started_.notify(sc_core::SC_ZERO_TIME); }

  /// Notified when the manager is not active any more and nothing is under way.
  [[nodiscard]] const sc_core::sc_event& stopped() const noexcept { return stopped_; }

  /// Cycles in which the RTL had a clock.
  [[nodiscard]] std::uint64_t cycles() const noexcept { return cycles_; }
  [[nodiscard]] const hw::AxiSubordinate::Counts& counts() const noexcept {
    return subordinate_.counts();
  }

 private:
  void run_clock();
  void run_requests();
  /// Writes bytes, without taking time.
  void move_bytes(const hw::AxiSubordinate::Request& request);
  [[nodiscard]] bool busy() const;

  const Clock clock_;
  const std::shared_ptr<IssueOrder> order_ = IssueOrder::of_simulation();
  IssueOrder::Port turn_{*order_};
  hw::AxiManager& manager_;
  hw::AxiSubordinate subordinate_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::deque<hw::AxiSubordinate::Request> requests_;  ///< to be sent, in order
  sc_core::sc_event started_, stopped_, asked_;
  std::uint64_t cycles_ = 0;
};

}  // namespace systole::tlm_model
