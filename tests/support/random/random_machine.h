#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/description/machine_rules.h"
#include "hw/machine/machine.h"

/// Machines that validate() accepts, of every shape that a user may ask for.
namespace systole::test {

using Random = std::mt19937_64;

/// Uniform in [lowest, highest], the same with every library.
inline std::uint32_t between(Random& random, std::uint32_t lowest, std::uint32_t highest) {
  return lowest + static_cast<std::uint32_t>(random() % (highest - lowest + 1));
}
template <typename Value>
Value one_of(Random& random, const std::vector<Value>& values) {
  return values[random() % values.size()];
}
inline std::uint32_t power_of_two(Random& random, std::uint32_t lowest_log,
                                  std::uint32_t highest_log) {
  return std::uint32_t{1} << between(random, lowest_log, highest_log);
}

/// As many memories of a bank as its rows can be spread over, of four at most.
inline void spread_sums(hw::Machine& machine) {
  hw::Machine::Accumulator& sums = machine.accumulator;
  const std::uint64_t row_bytes = std::uint64_t{4} * machine.array.cols;
  sums.memories = 1U << machine.core.load_queue % 3;
  while (sums.memories > 1 && sums.bank_bytes() % (sums.memories * row_bytes) != 0) {
    sums.memories /= 2;
  }
}

/// What decides how a graph is cut into commands.
inline void randomise_core(hw::Machine& machine, Random& random) {
  machine.core.clock_mhz = between(random, 100, 2500);
  machine.core.load_queue = between(random, 1, 12);
  machine.core.compute_queue = between(random, 1, 20);
  machine.core.store_queue = between(random, 1, 6);
  machine.core.fetch_commands = between(random, 1, 40);
  machine.array.rows = power_of_two(random, 2, 6);
  machine.array.cols = power_of_two(random, 2, 6);
  machine.array.dataflow = one_of<hw::Dataflow>(
      random, {hw::Dataflow::kWeightStationary, hw::Dataflow::kOutputStationary});
  machine.array.overlap = one_of<hw::ArrayOverlap>(
      random, {hw::ArrayOverlap::kNone, hw::ArrayOverlap::kPreload, hw::ArrayOverlap::kFull});
  machine.scratchpad = {between(random, 2, 64), power_of_two(random, 0, 4), between(random, 1, 4)};
  if (between(random, 0, 3) == 0) machine.scratchpad.kib = between(random, 65, 512);
  machine.accumulator = {between(random, 1, 64), power_of_two(random, 0, 3),
                         std::max(between(random, 1, 4), 2U)};
  spread_sums(machine);
  machine.core.call_cycles = between(random, 0, 2) * 100;
  machine.core.loop_cycles = between(random, 0, 2) * 10;
  machine.mapper.strategy = one_of<hw::MappingStrategy>(
      random,
      {hw::MappingStrategy::kCost, hw::MappingStrategy::kGemmini, hw::MappingStrategy::kSearch});
  machine.mapper.objective = one_of<hw::MappingObjective>(
      random,
      {hw::MappingObjective::kCycles, hw::MappingObjective::kEnergy, hw::MappingObjective::kEdp});
  machine.postop.lanes = power_of_two(random, 0, 6);
  machine.postop.max_stages = between(random, 1, 10);
  machine.postop.row_statistics = between(random, 64, 2048);
  machine.postop.tensor_operands = between(random, 1, 8);
  machine.postop.operand_kib = between(random, 1, 64);
  machine.postop.divider = 1;
  machine.preop.lanes = between(random, 0, 1) == 0 ? 0 : power_of_two(random, 0, 6);
  machine.mapper.fusion = one_of<hw::FusionLevel>(
      random,
      {hw::FusionLevel::kAll, hw::FusionLevel::kAll, hw::FusionLevel::kAll, hw::FusionLevel::kPost,
       hw::FusionLevel::kLibrary, hw::FusionLevel::kNone, hw::FusionLevel::kOff});
}

/// What decides how long the way to memory takes.
inline void randomise_memory(hw::Machine& machine, Random& random) {
  machine.dma.request_bytes = power_of_two(random, 4, 8);
  machine.dma.outstanding_reads = between(random, 1, 32);
  machine.dma.outstanding_writes = between(random, 1, 32);
  machine.dma.slots =
      one_of<hw::SlotOrder>(random, {hw::SlotOrder::kIssue, hw::SlotOrder::kCompletion});
  if (between(random, 0, 1) == 0) machine.dma.row_bytes = between(random, 1, 200);
  if (between(random, 0, 2) == 0) {
    machine.tlb = {between(random, 1, 8), power_of_two(random, 8, 12), between(random, 0, 8),
                   between(random, 0, 3), between(random, 0, 20),      between(random, 0, 3)};
  }
  machine.bus.clock_mhz = between(random, 100, 2500);
  machine.bus.width_bytes = power_of_two(random, 0, 6);
  machine.bus.request_latency = between(random, 0, 30);
  machine.bus.response_latency = between(random, 0, 30);
  // Of a key that is gone: what follows is drawn as it was, which samples that tests count rest on.
  static_cast<void>(random());
  hw::Machine::Dram& dram = machine.dram;
  dram.mib = power_of_two(random, 4, 7);
  dram.channels = power_of_two(random, 0, 2);
  dram.bank_groups = power_of_two(random, 0, 2);
  dram.banks = dram.bank_groups * power_of_two(random, 0, 3);
  dram.row_bytes = power_of_two(random, 9, 13);
  dram.mega_transfers = between(random, 200, 6400);
  dram.bus_bytes = power_of_two(random, 0, 4);
  dram.burst_length = power_of_two(random, 1, 4);
  const auto ns = [&](std::uint32_t lowest, std::uint32_t highest) {
    return between(random, lowest * 100, highest * 100) / 100.0;
  };
  dram.t_cl_ns = ns(2, 30);
  dram.t_cwl_ns = ns(2, 30);
  dram.t_rcd_ns = ns(2, 30);
  dram.t_rp_ns = ns(2, 30);
  dram.t_ras_ns = dram.t_rcd_ns + ns(0, 30);
  dram.t_rtp_ns = ns(1, 15);
  dram.t_wr_ns = ns(1, 30);
  dram.t_wtr_ns = ns(1, 15);
  dram.t_ccd_l_ns = ns(1, 10);
  dram.t_rrd_s_ns = ns(1, 10);
  dram.t_rrd_l_ns = dram.t_rrd_s_ns + ns(0, 5);
  dram.t_faw_ns = ns(1, 60);
  dram.t_rfc_ns = ns(50, 500);
  dram.t_refi_ns = between(random, 0, 4) == 0 ? 0.0 : ns(3000, 9000);
  dram.controller_ns = ns(0, 60);
  Random of_queue = random;
  dram.write_queue = between(of_queue, 0, 3) == 0 ? 0 : between(of_queue, 1, 100);
  dram.write_high_percent = between(of_queue, 20, 100);
  dram.write_low_percent = between(of_queue, 0, dram.write_high_percent - 1);
  if (between(random, 0, 2) == 0) {
    hw::Machine::L2& l2 = machine.l2;
    l2.ways = between(random, 1, 9);
    l2.line_bytes = power_of_two(random, 4, 8);
    l2.kib = l2.ways * between(random, 1, 64);
    l2.banks = power_of_two(random, 0, 3);
    l2.bank_bytes = power_of_two(random, 0, 6);
    l2.hit_latency = between(random, 0, 30);
    l2.mshrs = between(random, 1, 24);
    l2.replacement =
        one_of<hw::Replacement>(random, {hw::Replacement::kLru, hw::Replacement::kRandom});
  }
  machine.host.mmio_ns = between(random, 0, 300);
  machine.host.interrupt_ns = between(random, 0, 900);
}

/// A mesh with nodes for `cores` cores, 16 at most.
inline void randomise_mesh(hw::Machine& machine, Random& random, std::uint32_t cores) {
  hw::Machine::Noc& noc = machine.noc;
  noc.columns = between(random, 1, 4);
  noc.rows = between(random, (cores + noc.columns - 1) / noc.columns, 4);
  noc.hop_cycles = between(random, 1, 6);
  noc.link_bytes = power_of_two(random, 1, 6);
  noc.header_bytes = between(random, 0, 16);
  noc.node = between(random, 0, noc.columns * noc.rows - cores);
}

/// Draws until the rules between the keys hold.
inline hw::Machine random_machine(Random& random) {
  for (;;) {
    hw::Machine machine;
    machine.name = "random";
    randomise_core(machine, random);
    randomise_memory(machine, random);
    if (hw::machine_problems(machine).empty()) return machine;
  }
}

/// For tests that map much: a search takes most of the time of a mapping.
inline hw::Machine random_machine_without_search(Random& random) {
  hw::Machine machine = random_machine(random);
  if (machine.mapper.strategy == hw::MappingStrategy::kSearch) {
    machine.mapper.strategy = hw::MappingStrategy::kCost;
  }
  return machine;
}

/// The same as random_machine() with memories for whole networks, arrays of any two sides, up to
/// eight channels.
inline hw::Machine random_network_machine(Random& random) {
  for (;;) {
    hw::Machine machine = random_machine(random);
    machine.array.rows = power_of_two(random, 1, 7);
    machine.array.cols = power_of_two(random, 1, 7);
    machine.scratchpad.kib = power_of_two(random, 5, 11);
    machine.accumulator.kib = power_of_two(random, 5, 10);
    machine.postop.operand_kib = 64;
    machine.dram.mib = 256;
    machine.dram.channels = power_of_two(random, 0, 3);
    // Half of them as fast as a machine that is well built.
    if (between(random, 0, 1) == 0) {
      machine.bus = {};
      machine.dram = {};
      machine.core.clock_mhz = 1000;
      machine.dram.channels = power_of_two(random, 0, 3);
      machine.bus.width_bytes = power_of_two(random, 4, 6);
      machine.tlb = {};
      machine.l2 = {};
    }
    if (hw::machine_problems(machine).empty()) return machine;
  }
}

}  // namespace systole::test
