#pragma once

#include "reproduce/dfx/dfx_runs.h"
#include "reproduce/reproduction.h"

/// The tables of `systole reproduce dfx`, one per published result.
namespace systole::testbench {

/// Runs that several tables share: GPT-2 345M on one core, and by cores, [64:64].
[[nodiscard]] std::vector<DfxRun> run_dfx_cores();

/// 345M by cores: what the machine is calibrated on.
[[nodiscard]] ReproductionSection dfx_cores_section(const std::vector<DfxRun>& by_cores);
/// 345M on one core by lengths of prompt and text.
[[nodiscard]] ReproductionSection dfx_lengths_section(const DfxRun& at_64);
/// How much of memory and multipliers that is.
[[nodiscard]] ReproductionSection dfx_efficiency_section(const DfxRun& one_core);
/// A prompt token by token, and together.
[[nodiscard]] ReproductionSection dfx_prompt_section();
/// The other sizes, and GPUs.
[[nodiscard]] ReproductionSection dfx_sizes_section();

/// Operations by kind.
[[nodiscard]] ReproductionSection dfx_operations_section();
/// Time by phase. `runs`: 345M on one core first, 1.5B on four last.
[[nodiscard]] ReproductionSection dfx_time_section(const std::vector<DfxRun>& runs);
/// The order of value, key and query.
[[nodiscard]] ReproductionSection dfx_order_section();

/// Bytes of a token and the time that they take.
[[nodiscard]] ReproductionSection dfx_roofline_section();
/// Cycles of the multipliers.
[[nodiscard]] ReproductionSection dfx_matrix_section();
/// Time of a layer's exchanges.
[[nodiscard]] ReproductionSection dfx_ring_section();
/// The same, simulated.
[[nodiscard]] ReproductionSection dfx_sync_section();
/// A machine without cost of control beside its bounds.
[[nodiscard]] ReproductionSection dfx_ideal_section();
/// What has to be exact: exchanges, and bytes over links and from memory.
[[nodiscard]] ReproductionSection dfx_traffic_section();

}  // namespace systole::testbench
