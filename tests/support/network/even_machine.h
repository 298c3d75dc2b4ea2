#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"

/// Cores on a memory whose time is easily predicted.
namespace systole::test {

/// The memory serves a request in any cycle, after the same time for all.
inline hw::Machine with_even_memory(hw::Machine machine, double controller_ns) {
  machine.dram.bus_bytes = 256;
  machine.dram.row_bytes = 65536;
  machine.dram.mega_transfers = 20000;
  machine.dram.t_refi_ns = 0;
  // What is left of the row buffers does not add up to a cycle.
  for (double* time : {&machine.dram.t_rcd_ns, &machine.dram.t_rp_ns, &machine.dram.t_ras_ns,
                       &machine.dram.t_rtp_ns, &machine.dram.t_wr_ns, &machine.dram.t_wtr_ns,
                       &machine.dram.t_ccd_l_ns, &machine.dram.t_rrd_s_ns, &machine.dram.t_rrd_l_ns,
                       &machine.dram.t_faw_ns}) {
    *time = 0.1;
  }
  machine.dram.controller_ns = controller_ns;
  machine.dma.outstanding_reads = machine.dma.outstanding_writes = 64;
  return machine;
}

/// The 16 x 16 preset on it.
inline hw::Machine even_machine(double controller_ns) {
  return with_even_memory(hw::Machine{}, controller_ns);
}

/// Cycles of a request of `bytes`, from its issue to its last byte or its acknowledgement.
struct RequestLatency {
  std::uint64_t read, write;
};

/// As the load unit sees them, and a store of one row. No module may be alive.
inline RequestLatency latency_on(const hw::Machine& machine, std::uint32_t bytes) {
  fresh_kernel();
  CoreRig rig(machine, false);
  RequestLatency latency{};
  rig.run([&] {
    rig.execute({load_command(0, 0, bytes)});
    latency.read = rig[0].completed - rig[0].started;
    rig.set(CoreRig::Core::kControl, CoreRig::Core::kAcknowledge);
    sc_core::wait(rig.interrupt.negedge_event());
    rig.execute({store_command(0, 0, 1, bytes)}, {kNoStages});
    // The unit is free in the cycle after it issued the write.
    latency.write = rig[0].completed - (rig[0].released - 1);
  });
  return latency;
}

}  // namespace systole::test
