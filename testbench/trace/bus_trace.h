#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "tlm/bus/bus_transaction.h"

/// Traces of bus transactions in files; docs/traces.md has the formats.
namespace systole::testbench {

/// By the name of the file, less ".gz".
enum class TraceFormat : std::uint8_t {
  kSystole,   ///< .csv: all that is known
  kDramsys,   ///< .stl: cycle, length, command, address
  kRamulator  ///< .trace: command and address
};
/// Throws InputError for a name with another ending.
[[nodiscard]] TraceFormat trace_format(const std::string& path);

struct BusTrace {
  std::string machine;          ///< on which it was recorded; empty: not known
  std::uint32_t clock_mhz = 0;  ///< of its cycles; 0: not known
  std::vector<std::string> initiators;
  bool has_answers = false;  ///< else `granted` and `answered` are 0
  std::vector<tlm_model::BusTransaction> transactions;
};

/// Reads a trace of any format, compressed or not, for `machine`: its bus transports what has no
/// length of its own, dma.request_bytes at once. Throws InputError, with the line, for what is
/// malformed, cut short, or not in the machine's memory.
[[nodiscard]] BusTrace read_bus_trace(const std::string& path, const hw::Machine& machine);

/// Writes a trace while a machine runs. The file appears when it is complete.
class BusTraceWriter {
 public:
  /// Opened before the run, so that a path that cannot be written costs no time. Does nothing if
  /// the path is empty. Throws InputError.
  BusTraceWriter(const std::string& path, const hw::Machine& machine);
  ~BusTraceWriter();
  BusTraceWriter(const BusTraceWriter&) = delete;
  BusTraceWriter& operator=(const BusTraceWriter&) = delete;

  /// Adds an observer that writes each transaction, and refers to this object, if there is a file.
  void observe(std::vector<tlm_model::BusObserver>& observers);
  /// Puts the file in place. Throws InputError if that fails.
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace systole::testbench
