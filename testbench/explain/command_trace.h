#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/explain/command_stages.h"
#include "testbench/trace/trace_text.h"

namespace systole::testbench {

/// The commands of a run's first inference as a table: when each was dispatched, began and ended,
/// and what it waited for; of several cores those of the first run of each, core after core.
/// docs/traces.md has the columns.
class CommandTraceWriter {
 public:
  /// Opened before the run. Does nothing if the path is empty. Throws InputError for a path that
  /// cannot be written, or does not end in .csv or .csv.gz.
  CommandTraceWriter(const std::string& path, const hw::Machine& machine);

  /// Puts the file in place: of one core without a name, or of several. Throws InputError if that
  /// fails.
  void write(const std::vector<CoreCommands>& cores);

 private:
  void add(const CoreCommands& core);

  const std::string machine_;
  std::optional<TraceText> text_;
};

}  // namespace systole::testbench
