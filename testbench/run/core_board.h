#pragma once

#include <memory>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/rtl/core/core_ports.h"
#include "tlm/axi/axi_bridge.h"
#include "tlm/axi/axi_target_bridge.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/memory/dram.h"

namespace systole::testbench {

/// The core in RTL in the place of the model's: behind AXI4 bridges, on the bus of its machine,
/// with its DRAM. What tlm_model::Board is for the model.
class CoreBoard {
 public:
  /// `core` must outlive this.
  CoreBoard(const hw::Machine& machine, CorePorts& core);
  CoreBoard(const CoreBoard&) = delete;
  CoreBoard& operator=(const CoreBoard&) = delete;

  /// Binds the host's socket to the bus, and then the ports of the core. To be called once.
  template <typename Socket>
  void connect_host(Socket& socket) {
    bus.connect_initiator(socket);
    for (const auto& bridge : bridges_) bus.connect_initiator(bridge->socket);
  }

  tlm_model::SystemBus bus;
  tlm_model::Dram dram;
  /// Driven by the bridge whose edge is the last of a cycle.
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> interrupt;

 private:
  const tlm_model::Clock clock_;
  tlm_model::AxiTargetBridge registers_;
  std::vector<std::unique_ptr<tlm_model::AxiBridge>> bridges_;  ///< by CorePorts::Port
};

}  // namespace systole::testbench
