#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/machine/machine.h"
#include "testbench/explain/command_stages.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/common/time.h"

namespace systole::testbench {

/// The commands of a run as transactions of their units, with their stalls as events inside them
/// and relations to what they waited for and to what they moved over the bus, in the format FTR
/// (testbench/wave/ftr_file.h). See docs/waveforms.md.
class TransactionView {
 public:
  /// Opened before the run, so that a path that cannot be written costs no time. Does nothing if
  /// the path is empty. Throws InputError if the file cannot be written.
  TransactionView(const std::string& path, const hw::Machine& machine);

  /// Adds an observer that keeps each transaction, and refers to this object, if there is a file.
  void observe(std::vector<tlm_model::BusObserver>& observers);

  /// Puts the file in place: of one core without a name, or of several. Throws InputError if that
  /// fails.
  void write(const std::vector<CoreCommands>& cores);

 private:
  const tlm_model::Clock bus_clock_;
  std::optional<hw::AtomicFile> file_;
  std::vector<tlm_model::BusTransaction> transactions_;
  std::vector<std::string> initiators_;  ///< names, by number
};

}  // namespace systole::testbench
