#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testbench/run/simulation.h"

namespace systole::testbench {

/// A part of a command's time, in core cycles.
struct CommandSpan {
  std::string name;
  std::uint64_t begin, end;
};

/// What the time of a command went to, from when the processor began on it until its results were
/// in memory. Spans are in order of time, none is empty.
struct CommandStages {
  std::vector<CommandSpan> stages;  ///< one after the other without a gap
  /// Waits for a hazard by the unit that cleared it, then stalls of the execution by cause. Which
  /// cycles of the execution a cause had is not recorded: they follow one another from its begin.
  std::vector<CommandSpan> stalls;
};

/// Commands of one core, as it ran a program the first time.
struct CoreCommands {
  std::string name;                      ///< empty: there is only one core
  const hw::Program* program = nullptr;  ///< null: it ran none
  const std::vector<tlm_model::CommandTrace>& traces;
  const std::vector<hw::BlockReport>& blocks;  ///< for the names of its accounts
  std::uint32_t clock_mhz = 1;                 ///< of its cycles
  std::uint64_t finished = 0;                  ///< its last cycle
  std::uint32_t link_ns = 0;                   ///< from its ports to the bus
};
/// Of the first inference of a machine of one core. Both must outlive it.
[[nodiscard]] inline CoreCommands commands_of(const hw::Program& program,
                                              const SimulationResult& result,
                                              std::uint32_t clock_mhz = 1) {
  return {"", &program, result.traces, result.blocks, clock_mhz, result.finished, 0};
}

/// Calls `visit` for every command of an inference, in the order of the program. `blocks` have the
/// names of the accounts.
void for_each_command(
    const std::vector<tlm_model::CommandTrace>& traces, const std::vector<hw::BlockReport>& blocks,
    const std::function<void(const tlm_model::CommandTrace&, const CommandStages&)>& visit);

}  // namespace systole::testbench
