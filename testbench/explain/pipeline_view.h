#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/program/program.h"
#include "testbench/explain/command_stages.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {

/// The way of every command of a run from its fetch to its last result, for Konata: a log in the
/// format "Kanata 0004" (docs/kanata-log-format.md of github.com/shioyadan/Konata), in core cycles
/// since the simulation began. A row is a command; lane 0 shows its stages, lane 1 its stalls by
/// cause, and an arrow leads from the command that cleared its last hazard. See docs/waveforms.md.
class PipelineView {
 public:
  /// Opened before the run, so that a path that cannot be written costs no time. Does nothing if
  /// the path is empty. Throws InputError if the file cannot be written.
  explicit PipelineView(const std::string& path);

  /// Puts the file in place: the first inference of `result`, whose program is `program`. Throws
  /// InputError if that fails.
  void write(const hw::Program& program, const SimulationResult& result);
  /// The same for several cores: a thread each, all rows in one log, in cycles of the first.
  void write(const std::vector<CoreCommands>& cores);

 private:
  std::optional<hw::AtomicFile> file_;
};

}  // namespace systole::testbench
