#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/program/program.h"
#include "tlm/common/observer.h"
#include "tlm/common/time.h"

namespace systole::testbench {

struct TimelineOptions {
  std::string path;              ///< JSON to write; empty: none
  std::uint64_t inferences = 1;  ///< recorded from the first on; 0: all
};

/// Writes what a core did as Chrome trace events, for ui.perfetto.dev and chrome://tracing: per
/// unit one row, with a slice for each command while it is in the unit, one for each wait for a
/// hazard, and an arrow from the command that cleared the last hazard; one row with the inferences,
/// and as many with the operators, from their first command to their last result, as overlap. See
/// docs/waveforms.md.
///
/// Times are those of the core's clock edges, rounded down to ns. Memory is needed for one
/// inference.
class Timeline final : public tlm_model::Observer {
 public:
  /// `program` must outlive the timeline. Throws InputError if the file cannot be written.
  Timeline(const TimelineOptions& options, const hw::Program& program, std::uint32_t core_mhz);

  void on_command(const tlm_model::CommandTrace& trace) override;

  /// Puts the file in place; without it there is none. Throws InputError if that fails.
  void write();

 private:
  struct Slice {
    std::uint32_t row;
    std::uint64_t begin, end;  ///< cycles
    std::string name;          ///< JSON string, quoted
    std::string arguments;     ///< members of a JSON object
  };

  void name_row(std::uint32_t row, const std::string& name);
  void put(const std::string& event);
  void put_slice(const Slice& slice);
  void put_arrow(const tlm_model::CommandTrace& from, const tlm_model::CommandTrace& to);
  [[nodiscard]] std::string time(std::uint64_t cycle) const;
  void put_inference();
  void put_commands();
  void put_operators();
  [[nodiscard]] std::string arguments(const tlm_model::CommandTrace& trace) const;

  const TimelineOptions options_;
  const hw::Program& program_;
  const tlm_model::Clock clock_;
  std::vector<std::string> names_;               ///< of the operators, as JSON strings
  std::vector<tlm_model::CommandTrace> traces_;  ///< of the current inference, by command
  std::size_t expected_;                         ///< commands of an inference
  std::size_t completed_ = 0;                    ///< of the current inference
  std::uint64_t inferences_ = 0;                 ///< written
  std::uint32_t operator_rows_ = 0;              ///< that have a name
  std::uint64_t arrows_ = 0;
  bool first_event_ = true;
  hw::AtomicFile file_;
};

}  // namespace systole::testbench
