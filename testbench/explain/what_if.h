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
  std::optional<Outcome> kept;  ///< the program of the machine as it is; nothing: it cannot run
  std::optional<Outcome> simulated;  ///< of the program that takes less time, if it was as a whole
  std::string refused;               ///< why this machine cannot be, or cannot run the network

  /// Whether the program of the machine as it is takes less time than one mapped again.
  [[nodiscard]] bool keeps_program() const { return kept && kept->seconds < predicted->seconds; }
  /// Of the program that takes less time, the best that is known.
  [[nodiscard]] const Outcome& outcome() const {
    if (simulated) return *simulated;
    return keeps_program() ? *kept : *predicted;
  }
};

/// Changes of a machine, and the machine as it is.
struct WhatIfs {
  std::vector<WhatIf> changes;
  double expected = 0;  ///< cycles of the machine as it is, by sample_run(); 0: no changes
};

/// Each resource of the machine doubled and each latency halved, one at a time, with the cycles
/// that sample_run() expects of the network mapped again, and of the program that the machine as it
/// is has, `subject`; the `confirm` with the least time are simulated as a whole, if they were not.
/// To be called before this process simulates anything, and with one thread: work runs side by side
/// in copies of it.
[[nodiscard]] WhatIfs what_if(const RunRequest& request, const RunSubject& subject,
                              const hw::Machine& machine, std::size_t confirm);

/// Relates the changes to the run as it was: predicted are its cycles times what is expected after
/// the change over what was expected of the run. The largest gain comes first, what was refused
/// last.
[[nodiscard]] std::vector<WhatIf> relate(WhatIfs found, const Explanation& run);

}  // namespace systole::testbench
