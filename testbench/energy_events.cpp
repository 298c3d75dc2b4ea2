#include "testbench/energy_events.h"

#include <systemc>

namespace systole::testbench {

hw::EnergyEvents energy_events(tlm_model::System& system) {
  hw::EnergyEvents events;
  const auto& core = system.core;
  events.macs = core.array.macs() + (core.attention ? core.attention->macs() : 0);
  events.postop_elements = core.store.operations();
  events.scratchpad_bytes = core.memory.scratchpad.bytes_moved();
  events.accumulator_bytes = core.memory.accumulator.bytes_moved();
  std::uint64_t moved = 0;
  for (const tlm_model::DmaPort* port : system.core.ports()) moved += port->stats().bytes;
  events.bus_bytes = moved;
  events.dram_bytes = moved;
  events.seconds = sc_core::sc_time_stamp().to_seconds();
  return events;
}

}  // namespace systole::testbench
