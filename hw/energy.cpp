#include "hw/energy.h"

#include <array>

#include "hw/memory/word_code.h"
#include "hw/number/int4.h"
#include "hw/silicon/area.h"

namespace systole::hw {
namespace {

constexpr std::array kCounts = {&EnergyEvents::macs,
                                &EnergyEvents::int4_macs,
                                &EnergyEvents::int4_int4_macs,
                                &EnergyEvents::postop_elements,
                                &EnergyEvents::scratchpad_bytes,
                                &EnergyEvents::accumulator_bytes,
                                &EnergyEvents::bus_bytes,
                                &EnergyEvents::noc_byte_hops,
                                &EnergyEvents::l2_bytes,
                                &EnergyEvents::dram_bytes,
                                &EnergyEvents::host_cycles};

}  // namespace

void EnergyEvents::add(const EnergyEvents& other) {
  for (const auto count : kCounts) this->*count += other.*count;
  seconds += other.seconds;
}

EnergyEvents EnergyEvents::since(const EnergyEvents& before) const {
  EnergyEvents events = *this;
  for (const auto count : kCounts) events.*count -= before.*count;
  events.seconds -= before.seconds;
  return events;
}

Machine::Energy energy_table(const Machine& machine) {
  Machine::Energy table = machine.energy;
  // Two products by int4 weights share multiplier and adder of a PE, and so do four of int4.
  if (table.mac_int4_pj == 0) table.mac_int4_pj = table.mac_pj / Int4Operands{false, true}.macs();
  if (table.mac_int4_int4_pj == 0) {
    table.mac_int4_int4_pj = table.mac_pj / Int4Operands{true, true}.macs();
  }
  // A byte of data takes its check bits along.
  const auto by_size = [](double& pj, const SramSize& size, double growth) {
    if (pj == 0) pj = sram_byte_pj(size) * growth;
  };
  by_size(table.scratchpad_byte_pj, scratchpad_size(machine), scratchpad_code(machine).growth());
  by_size(table.accumulator_byte_pj, accumulator_size(machine), accumulator_code(machine).growth());
  if (machine.l2.kib != 0) by_size(table.l2_byte_pj, l2_size(machine), 1);
  const bool leaks = table.logic_leakage_mw_mm2 > 0 || table.sram_leakage_mw_mm2 > 0;
  if (table.leakage_mw == 0 && leaks) {
    const AreaReport area = area_of(machine);
    table.leakage_mw = area.memory * table.sram_leakage_mw_mm2 +
                       (area.total() - area.memory) * table.logic_leakage_mw_mm2;
  }
  return table;
}

}  // namespace systole::hw
