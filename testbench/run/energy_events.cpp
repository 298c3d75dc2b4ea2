#include "testbench/run/energy_events.h"

#include <systemc>

namespace systole::testbench {

hw::EnergyEvents energy_events(tlm_model::System& system) {
  hw::EnergyEvents events;
  const auto& core = system.core;
  events.macs = core.array.macs() + core.store.encoder_macs();
  events.postop_elements = core.store.operations() + core.load.stage_operations();
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
  if (core.loops) {
    const tlm_model::LoopUnit::Work& work = core.loops->work();
    events.macs += work.macs;
    events.postop_elements += work.elements;
    events.scratchpad_bytes += core.loops->scratchpad_bytes();
    events.accumulator_bytes += core.loops->accumulator_bytes();
    moved += work.bus_bytes;
  }
  for (const tlm_model::DmaPort* port : system.core.ports()) moved += port->stats().bytes;
  if (system.host.compute) {
    // A cycle of work on the network; the rest of the host's time is not the accelerator's.
    const tlm_model::HostCompute::Work& work = system.host.compute->work();
    events.host_cycles = work.conversion;
    for (const std::uint64_t cycles : work.operation) events.host_cycles += cycles;
    moved += system.host.compute->lines.stats().bytes;
  }
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
