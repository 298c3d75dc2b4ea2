/// Keys of what a machine's events, memories and logic cost.

#include "hw/description/key_table.h"

namespace systole::hw::key_table {
namespace {

constexpr Text kCacti = "0: by size, from CACTI 7.0 at 45 nm (estimate)";
constexpr Text kCells = "this project's RTL in cells of Nangate 45 nm (estimate)";

using Energy = Machine::Energy;
using Area = Machine::Area;

template <auto kMember>
MachineKey energy(Text path, Text unit, Text meaning, Text source) {
  return number<&Machine::energy, kMember>(path, unit, 0, 1000000, meaning, source);
}

template <auto kMember>
MachineKey area(Text path, Text unit, Text meaning, Text source) {
  return number<&Machine::area, kMember>(path, unit, 0, 1000000, meaning, source);
}

}  // namespace

void append_cost_keys(std::vector<MachineKey>& keys) {
  const std::vector<MachineKey> more = {
      energy<&Energy::mac_pj>("energy.mac_pj", "pJ", "multiply-accumulate of the array",
                              "survey Fig. 15 (45 nm): mult 8b 0.2 + add 32b 0.1"),
      energy<&Energy::mac_int4_pj>("energy.mac_int4_pj", "pJ",
                                   "multiply-accumulate of an int4 weight (array.split)",
                                   "0: half of energy.mac_pj (estimate)"),
      energy<&Energy::mac_int4_int4_pj>(
          "energy.mac_int4_int4_pj", "pJ",
          "multiply-accumulate of an int4 activation by an int4 weight (array.split)",
          "0: a quarter of energy.mac_pj (estimate)"),
      energy<&Energy::postop_pj>("energy.postop_pj", "pJ",
                                 "one element through one stage of the post-op chain",
                                 "survey Fig. 15 (45 nm): mult 32b 3.1 + two add 32b 0.1"),
      energy<&Energy::scratchpad_byte_pj>("energy.scratchpad_byte_pj", "pJ",
                                          "scratchpad byte read or written", kCacti),
      energy<&Energy::accumulator_byte_pj>("energy.accumulator_byte_pj", "pJ",
                                           "accumulator byte read or written", kCacti),
      energy<&Energy::l2_byte_pj>("energy.l2_byte_pj", "pJ",
                                  "byte that a bank of the L2 cache reads or writes", kCacti),
      energy<&Energy::bus_byte_pj>("energy.bus_byte_pj", "pJ", "byte over the system bus",
                                   "assumed: the survey gives no figure for wires"),
      energy<&Energy::noc_byte_hop_pj>("energy.noc_byte_hop_pj", "pJ",
                                       "byte of a packet through a router and over a link (noc)",
                                       "no figure at 45 nm"),
      energy<&Energy::dram_byte_pj>("energy.dram_byte_pj", "pJ", "DRAM byte read or written",
                                    "survey Fig. 15 (45 nm): 32b DRAM read 640 / 4"),
      energy<&Energy::host_cycle_pj>(
          "energy.host_cycle_pj", "pJ", "cycle that the host computes in",
          "Horowitz, ISSCC 2014 (45 nm): 70 an instruction of an in-order core"),
      energy<&Energy::leakage_mw>("energy.leakage_mw", "mW", "static power of core and L2 cache",
                                  "0: by area (estimate)"),
      energy<&Energy::logic_leakage_mw_mm2>(
          "energy.logic_leakage_mw_mm2", "mW/mm2", "static power of logic, by its area",
          "Nangate 45 nm, typical: NAND2_X1 17.4 nW / 0.798 um2 (estimate)"),
      energy<&Energy::sram_leakage_mw_mm2>(
          "energy.sram_leakage_mw_mm2", "mW/mm2", "static power of memories, by their area",
          "macro fakeram45_512x64 of OpenROAD: 0.823 mW / 0.0173 mm2 (estimate)"),

      area<&Area::pe_um2>("area.pe_um2", "um2", "a PE of the array", kCells),
      area<&Area::split_pe_um2>("area.split_pe_um2", "um2", "a PE whose multiplier splits",
                                "area.pe_um2 and 15 %, as this project's RTL in cells (estimate)"),
      area<&Area::int4_pe_um2>("area.int4_pe_um2", "um2", "a PE whose multiplier splits for both",
                               "area.pe_um2 and 48 %, as this project's RTL in cells (estimate)"),
      area<&Area::sum_um2>("area.sum_um2", "um2", "adder and ports of a column of the accumulator",
                           kCells),
      area<&Area::stage_um2>("area.stage_um2", "um2",
                             "a lane of one stage of a chain: a requantiser", kCells),
      area<&Area::gelu_um2>("area.gelu_um2", "um2", "a lane of the GELU unit", kCells),
      area<&Area::softmax_um2>("area.softmax_um2", "um2", "a lane of the softmax unit", kCells),
      area<&Area::norm_um2>("area.norm_um2", "um2", "a lane of the LayerNorm unit", kCells),
      area<&Area::divider_um2>("area.divider_um2", "um2",
                               "a lane of the divider: a serial one, unrolled", kCells),
      area<&Area::mix_um2>("area.mix_um2", "um2", "a MAC of the encoder or decoder lines", kCells),
      area<&Area::mac_um2>("area.mac_um2", "um2", "a MAC of a streaming core",
                           "survey Fig. 15 (45 nm): mult 8b 282 + add 32b 137"),
      area<&Area::latch_um2>("area.latch_um2", "um2", "a bit of a streaming core's weight buffers",
                             "Nangate 45 nm: DLH_X1"),
      area<&Area::scratchpad_mm2>("area.scratchpad_mm2", "mm2", "scratchpad", kCacti),
      area<&Area::accumulator_mm2>("area.accumulator_mm2", "mm2", "memory of the accumulator",
                                   kCacti),
      area<&Area::l2_mm2>("area.l2_mm2", "mm2", "L2 cache", kCacti),
      area<&Area::rest_mm2>("area.rest_mm2", "mm2", "what has no model: control, DMA, bus",
                            "no figure"),
  };
  keys.insert(keys.end(), more.begin(), more.end());
}

}  // namespace systole::hw::key_table
