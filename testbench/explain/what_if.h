#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/explain/explanation.h"
#include "testbench/network/run_subject.h"

namespace systole::testbench {

/// One key of a machine changed by a factor, and what becomes of a run.
struct WhatIf {
  /// What a run takes.
  struct Outcome {
    double cycles = 0;
    double seconds = 0;
    std::optional<double> joules;  ///< of a simulation
  };
  std::string key;    ///< "dram.channels"
  double factor = 0;  ///< 2 or 0.5
  hw::Machine machine;
  /// Cycles of the critical path that the key acts on: what it can take off without another
  /// program; nothing for a memory's size or a queue, which act through the program and the order.
  std::optional<std::uint64_t> on_path;
  std::optional<Outcome> predicted;  ///< mapped again: see relate()
  std::optional<Outcome> simulated;
  std::string refused;  ///< why this machine cannot be, or cannot run the network

  /// The best that is known.
  [[nodiscard]] const Outcome& outcome() const { return simulated ? *simulated : *predicted; }
};

/// Each resource of the machine doubled and each latency halved, one at a time, with the cycles
/// that the mapper expects; the `confirm` with the least time are simulated as well. To be called
/// before this process simulates anything, and with one thread: work runs side by side in copies of
/// it.
[[nodiscard]] std::vector<WhatIf> what_if(const RunRequest& request, const hw::Machine& machine,
                                          std::size_t confirm);

/// Relates the changes to the run as it was: predicted are its cycles times what the mapper expects
/// after the change over `expected`, what it expected of the run. The largest gain comes first,
/// what was refused last.
void relate(std::vector<WhatIf>& changes, const Explanation& run, double expected);

}  // namespace systole::testbench
