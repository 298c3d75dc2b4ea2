#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/atomic_file.h"
#include "hw/program/program.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {

/// The commands of a run as transactions of their units, with their stalls as events inside them
/// and relations to what they waited for, in the format FTR (testbench/wave/ftr_file.h). See
/// docs/waveforms.md.
class TransactionView {
 public:
  /// Opened before the run, so that a path that cannot be written costs no time. Does nothing if
  /// the path is empty. Throws InputError if the file cannot be written.
  TransactionView(const std::string& path, std::uint32_t core_mhz);

  /// Puts the file in place: the first inference of `result`, whose program is `program`. Throws
  /// InputError if that fails.
  void write(const hw::Program& program, const SimulationResult& result);

 private:
  std::uint32_t core_mhz_;
  std::optional<hw::AtomicFile> file_;
};

}  // namespace systole::testbench
