#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "hw/program/program.h"
#include "tlm/common/observer.h"
#include "tlm/common/time.h"
#include "tlm/ring/compute_core.h"

namespace systole::testbench {

/// Writes Chrome trace events, for ui.perfetto.dev and chrome://tracing: processes with rows, and
/// slices and arrows in these. Times are those of the core's clock edges, rounded down to ns, so
/// that slices that touch still do.
class EventWriter {
 public:
  /// `out` outlives it.
  EventWriter(std::ostream& out, std::uint32_t core_mhz);

  struct Row {
    std::uint32_t process, row;
  };
  void name_process(std::uint32_t process, const std::string& name);
  /// `sorted`: shown by number, not by first slice.
  void name_row(Row at, const std::string& name, bool sorted = true);
  /// Cycles `begin` to `end`. `name` is a JSON string, quoted; `arguments` are members of a JSON
  /// object.
  void slice(Row at, std::uint64_t begin, std::uint64_t end, const std::string& name,
             const std::string& arguments);
  /// Binds to the slices around its ends.
  void arrow(Row from, std::uint64_t leaves, Row to, std::uint64_t arrives);
  /// The cycles to come are those of a clock of `core_mhz`.
  void use_clock(std::uint32_t core_mhz) { clock_ = tlm_model::Clock(core_mhz); }
  /// After the last event.
  void end();

 private:
  void put(const std::string& event);
  [[nodiscard]] static std::string us(std::uint64_t ns);
  [[nodiscard]] std::uint64_t ns(std::uint64_t cycle) const { return clock_.edge_ps(cycle) / 1000; }

  tlm_model::Clock clock_;
  std::uint64_t arrows_ = 0;
  bool first_ = true;
  std::ostream& out_;
};

/// Writes what a core did: per unit one row, with a slice for each command while it is in the unit,
/// one for each wait for a hazard, and an arrow from the command that cleared the last hazard; one
/// row with the inferences, and as many with the operators, from their first command to their last
/// result, as overlap. See docs/waveforms.md. Memory is needed for one inference.
class Timeline {
 public:
  /// Records `inferences` from the first on; 0: all. `out` and `program` must outlive the timeline.
  Timeline(std::ostream& out, std::uint64_t inferences, const hw::Program& program,
           std::uint32_t core_mhz);
  /// Of one core among several, as process number `process`. `events` and `program` must outlive
  /// the timeline; end() of `events` ends all of them.
  Timeline(EventWriter& events, std::uint32_t process, const std::string& name,
           std::uint32_t core_mhz, std::uint64_t inferences, const hw::Program& program);

  /// What the core runs next, of several programs; `inference` says when another one begins.
  /// `program` must outlive the timeline.
  void begin(const hw::Program& program, std::uint64_t inference);
  void add(const tlm_model::CommandTrace& trace);
  /// After the run, of a timeline that is the only one.
  void end() { events_.end(); }

 private:
  /// Names and arguments as of EventWriter::slice(), after the number of cycles.
  /// One of the first two is null.
  Timeline(std::unique_ptr<EventWriter> own, EventWriter* events, std::uint32_t process,
           std::uint32_t core_mhz, std::uint64_t inferences, const hw::Program& program);
  void name_rows(const std::string& name);
  void take(const hw::Program& program);
  void put_slice(std::uint32_t number, std::uint64_t begin, std::uint64_t end,
                 const std::string& name, const std::string& arguments);
  void put_inference();
  void put_commands();
  void put_operators();
  [[nodiscard]] std::string arguments(const tlm_model::CommandTrace& trace) const;

  const std::uint64_t recorded_;  ///< inferences; 0: all
  const hw::Program* program_ = nullptr;
  std::vector<std::string> names_;               ///< of the operators, as JSON strings
  std::vector<tlm_model::CommandTrace> traces_;  ///< of the current run, by command
  std::size_t expected_ = 0;                     ///< commands of a run
  std::size_t completed_ = 0;                    ///< of the current run
  std::uint64_t inferences_ = 0;                 ///< before the current one
  std::optional<std::uint64_t> inference_;       ///< of begin()
  std::uint32_t operator_rows_ = 0;              ///< that have a name
  std::unique_ptr<EventWriter> own_events_;
  EventWriter& events_;
  const std::uint32_t process_, core_mhz_;
};

/// Writes what the cores of a ring did: a row for each unit of each core, with a slice for each
/// instruction from its first operand to its last result. See docs/dfx.md.
class RingTimeline {
 public:
  /// `out` must outlive it.
  RingTimeline(std::ostream& out, std::uint32_t cores, std::uint32_t core_mhz);
  /// Of a ring beside other cores, as processes from number `process` on. `events` must outlive it,
  /// and its end() ends all.
  RingTimeline(EventWriter& events, std::uint32_t process, const std::string& name,
               std::uint32_t cores, std::uint32_t core_mhz);

  void add(const tlm_model::dfx::InstructionTrace& trace);
  void end() { events_.end(); }

 private:
  void name_rows(const std::string& name, std::uint32_t cores);

  std::unique_ptr<EventWriter> own_events_;
  EventWriter& events_;
  const std::uint32_t process_, core_mhz_;  ///< the first
};

}  // namespace systole::testbench
