#pragma once

#include <optional>
#include <string>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "testbench/run/simulation.h"
#include "testbench/trace/trace_text.h"

namespace systole::testbench {

/// The commands of a run's first inference as a table: when each was dispatched, began and ended,
/// and what it waited for. docs/traces.md has the columns.
class CommandTraceWriter {
 public:
  /// Opened before the run. Does nothing if the path is empty. Throws InputError for a path that
  /// cannot be written, or does not end in .csv or .csv.gz.
  CommandTraceWriter(const std::string& path, const hw::Machine& machine);

  /// Puts the file in place. Throws InputError if that fails.
  void write(const hw::Program& program, const SimulationResult& result);

 private:
  std::optional<TraceText> text_;
};

}  // namespace systole::testbench
