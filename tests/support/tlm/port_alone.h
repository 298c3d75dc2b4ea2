#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/machine/machine.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/dram.h"

namespace systole::test {

/// Cycles in which one DMA port alone, at the machine's bus or at noc.node of its mesh, reads or
/// writes runs of bytes in many rows.
inline std::uint64_t cycles_of_port_alone(const hw::Machine& machine, bool write) {
  fresh_kernel();
  tlm_model::SystemBus bus("bus", machine.bus, tlm_model::make_mesh(machine));
  tlm_model::Dram dram("dram", machine.dram, false);
  tlm_model::RequestDma port(
      "port", machine, write ? machine.dma.outstanding_writes : machine.dma.outstanding_reads);
  const unsigned memory = bus.connect_target(dram.socket, 0, dram.capacity());
  const unsigned id = bus.connect_initiator(port.socket);
  if (bus.mesh() != nullptr) {
    bus.mesh()->place_memory(memory);
    bus.place_initiator(id, bus.mesh()->add_core(machine.noc.node, "core"));
  }
  std::uint64_t done = 0;
  run_body([&] {
    Random random(1);
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t address = between(random, 0, 1 << 20);
      const std::uint64_t bytes = between(random, 1, 1000);
      done = std::max(
          done, write ? port.write(address, nullptr, bytes) : port.read(address, nullptr, bytes));
    }
  });
  return done;
}

}  // namespace systole::test
