#pragma once

#include <cstdint>
#include <vector>

#include "hw/energy.h"
#include "hw/machine.h"
#include "testbench/attention_workload.h"
#include "testbench/simulation.h"
#include "tlm/attention_unit.h"
#include "tlm/core.h"
#include "tlm/report.h"

namespace systole::testbench {

struct AttentionResult {
  std::uint64_t cycles = 0;                                 ///< start to interrupt
  std::vector<tlm_model::AttentionUnit::HeadCycles> heads;  ///< layer by layer
  std::vector<tlm_model::BlockReport> blocks;
  hw::EnergyEvents events;
  CheckResult check;  ///< outputs in memory against masked_reference(), at the end
  double wall_seconds = 0.0;
};

/// Runs the workload once, with models of all blocks or with the engines given. One simulation per
/// process.
[[nodiscard]] AttentionResult simulate_attention(const AttentionWorkload& workload,
                                                 const hw::Machine& machine,
                                                 tlm_model::Engines engines, bool functional);
[[nodiscard]] AttentionResult simulate_attention(const AttentionWorkload& workload,
                                                 const hw::Machine& machine, bool functional);

}  // namespace systole::testbench
