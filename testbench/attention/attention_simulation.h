#pragma once

#include <cstdint>
#include <vector>

#include "hw/energy.h"
#include "hw/machine/machine.h"
#include "model/format/safetensors_writer.h"
#include "testbench/attention/attention_workload.h"
#include "testbench/run/simulation.h"
#include "tlm/attention/attention_unit.h"
#include "tlm/core/core.h"

namespace systole::testbench {

struct AttentionResult : MachineRun {
  std::uint64_t cycles = 0;                                 ///< start to interrupt
  std::vector<tlm_model::AttentionUnit::HeadCycles> heads;  ///< layer by layer
  tlm_model::AttentionUnit::Work work;
  tlm_model::AttentionUnit::Traffic traffic;
  hw::EnergyEvents events;
  bool wave_is_cut_short = false;  ///< the waveform reached its size limit
  CheckResult check;               ///< outputs in memory against masked_reference(), at the end
  /// With values, by layer: query, key, value and output as memory has them at the end,
  /// [tokens, features of all heads], "layers.0.query" and so on.
  std::vector<model::TensorData> tensors;
};

/// Runs the workload once, with models of all blocks or with the engines given; `wave`: the
/// waveform to write. One simulation per process.
[[nodiscard]] AttentionResult simulate_attention(const AttentionWorkload& workload,
                                                 const hw::Machine& machine,
                                                 tlm_model::Engines engines, bool functional,
                                                 const WaveOptions& wave = {});
[[nodiscard]] AttentionResult simulate_attention(const AttentionWorkload& workload,
                                                 const hw::Machine& machine, bool functional);

}  // namespace systole::testbench
