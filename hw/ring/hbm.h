#pragma once

#include "hw/machine/machine.h"

namespace systole::hw::dfx {

/// Transfers of a burst (JESD235, HBM2).
inline constexpr std::uint32_t kHbmBurst = 4;

/// The channels of an HBM in lock-step, as one channel that is as wide as all of them: a tile of
/// weights is spread over all channels, so that they always do the same.
///
/// Of JESD235's HBM2: four bank groups, four activates in 16 ns, and the
/// times that hardly matter to streams of reads.
[[nodiscard]] inline Machine::Dram lock_step(const Hbm& hbm) {
  Machine::Dram dram;
  dram.mib = hbm.mib;
  dram.channels = 1;
  dram.banks = hbm.banks;
  dram.bank_groups = 4;
  dram.row_bytes = hbm.row_bytes * hbm.channels;
  dram.mega_transfers = hbm.mega_transfers;
  dram.bus_bytes = hbm.bus_bytes * hbm.channels;
  dram.burst_length = kHbmBurst;
  dram.t_cl_ns = hbm.t_cl_ns;
  dram.t_cwl_ns = hbm.t_cl_ns / 2;
  dram.t_rcd_ns = hbm.t_rcd_ns;
  dram.t_rp_ns = hbm.t_rp_ns;
  dram.t_ras_ns = hbm.t_ras_ns;
  dram.t_rtp_ns = 5.0;
  dram.t_wr_ns = 16.0;
  dram.t_wtr_ns = 7.5;
  dram.t_ccd_l_ns = 3.33;
  dram.t_rrd_s_ns = 3.33;
  dram.t_rrd_l_ns = 4.0;
  dram.t_faw_ns = 16.0;
  dram.t_rfc_ns = hbm.t_rfc_ns;
  dram.t_refi_ns = hbm.t_refi_ns;
  dram.controller_ns = hbm.controller_ns;
  return dram;
}

}  // namespace systole::hw::dfx
