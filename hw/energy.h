#pragma once

#include <cstdint>

#include "hw/machine/machine.h"

namespace systole::hw {

/// What happened in a run, as far as it costs energy.
struct EnergyEvents {
  std::uint64_t macs = 0;
  std::uint64_t int4_macs = 0;        ///< of them: by int4 weights
  std::uint64_t int4_int4_macs = 0;   ///< of these: of int4 activations
  std::uint64_t postop_elements = 0;  ///< elements times stages
  std::uint64_t scratchpad_bytes = 0;
  std::uint64_t accumulator_bytes = 0;
  std::uint64_t bus_bytes = 0;
  std::uint64_t noc_byte_hops = 0;  ///< bytes of packets, headers included, times links of a mesh
  std::uint64_t l2_bytes = 0;
  std::uint64_t dram_bytes = 0;
  std::uint64_t host_cycles = 0;  ///< of its clock, in which it computed
  double seconds = 0.0;           ///< of simulated time, for leakage

  void add(const EnergyEvents& other);
  /// What came after `before`.
  [[nodiscard]] EnergyEvents since(const EnergyEvents& before) const;
};

/// Joules by cause; their sum is the energy of the run.
struct EnergyReport {
  double mac = 0, postop = 0, scratchpad = 0, accumulator = 0, bus = 0, noc = 0, l2 = 0, dram = 0,
         host = 0, leakage = 0;
  [[nodiscard]] double total() const {
    return mac + postop + scratchpad + accumulator + bus + noc + l2 + dram + host + leakage;
  }
};

/// The table of a machine with a figure for everything: what is 0 in it and follows from sizes or
/// area has been filled in. Figures that are given stay.
[[nodiscard]] Machine::Energy energy_table(const Machine& machine);

/// Of a table that energy_table() made.
[[nodiscard]] inline EnergyReport energy_of(const EnergyEvents& events,
                                            const Machine::Energy& table) {
  const auto joules = [](std::uint64_t count, double pj) {
    return static_cast<double>(count) * pj * 1e-12;
  };
  EnergyReport report;
  report.mac = joules(events.macs - events.int4_macs, table.mac_pj) +
               joules(events.int4_macs - events.int4_int4_macs, table.mac_int4_pj) +
               joules(events.int4_int4_macs, table.mac_int4_int4_pj);
  report.postop = joules(events.postop_elements, table.postop_pj);
  report.scratchpad = joules(events.scratchpad_bytes, table.scratchpad_byte_pj);
  report.accumulator = joules(events.accumulator_bytes, table.accumulator_byte_pj);
  report.bus = joules(events.bus_bytes, table.bus_byte_pj);
  report.noc = joules(events.noc_byte_hops, table.noc_byte_hop_pj);
  report.l2 = joules(events.l2_bytes, table.l2_byte_pj);
  report.dram = joules(events.dram_bytes, table.dram_byte_pj);
  report.host = joules(events.host_cycles, table.host_cycle_pj);
  report.leakage = events.seconds * table.leakage_mw * 1e-3;
  return report;
}

[[nodiscard]] inline EnergyReport energy_of(const EnergyEvents& events, const Machine& machine) {
  return energy_of(events, energy_table(machine));
}

}  // namespace systole::hw
