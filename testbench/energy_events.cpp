#include "testbench/energy_events.h"

#include <systemc>

namespace systole::testbench {

hw::EnergyEvents energy_events(tlm_model::System& system) {
  hw::EnergyEvents events;
  const auto& core = system.core;
  events.macs = core.array.macs() + core.store.encoder_macs();
  events.postop_elements = core.store.operations();
  events.scratchpad_bytes = core.memory.scratchpad.bytes_moved();
  events.accumulator_bytes = core.memory.accumulator.bytes_moved();
  if (core.attention) {
    const tlm_model::AttentionUnit::Work& work = core.attention->work();
    events.macs += work.macs + work.decoder_macs;
    events.postop_elements += work.elements;
    events.scratchpad_bytes += work.buffer_bytes;
    events.accumulator_bytes += work.score_bytes;
  }
  std::uint64_t moved = 0;
  for (const tlm_model::DmaPort* port : system.core.ports()) moved += port->stats().bytes;
  events.bus_bytes = moved;
  events.dram_bytes = moved;
  if (system.l2) {
    events.l2_bytes = system.l2->cache().bank_bytes();
    events.dram_bytes = system.l2->cache().memory_bytes();
  }
  events.seconds = sc_core::sc_time_stamp().to_seconds();
  return events;
}

}  // namespace systole::testbench
