#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace systole::testbench {

/// A line on standard error that says how far a long command is: only if that is a terminal, and
/// only once the work has taken longer than a second. Disappears at the end of its life.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether to draw it now. Costs a look at the clock, and without a terminal nothing.
  [[nodiscard]] bool due();
  /// Replaces what the line says, cut to kTextWidth.
  void draw(const std::string& text);
  /// Since it was made.
  [[nodiscard]] std::uint64_t seconds() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  const bool terminal_;
  const Time begin_;
  Time next_;  ///< when to draw
  bool drawn_ = false;
};

/// A bar of what is done of the `total`.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void update(std::size_t done);

 private:
  StatusLine line_;
  const std::size_t total_;
};

/// How far a simulation is.
struct SimulationProgress {
  std::size_t inferences = 0;  ///< completed
  std::size_t all_inferences = 0;
  std::uint64_t commands = 0;      ///< completed, of all inferences
  std::uint64_t all_commands = 0;  ///< if those to come have as many as the present one
  /// Of the reference, which computes what to expect before an inference begins; 0 of 0 afterwards.
  std::size_t operators = 0, all_operators = 0;
};

/// A bar of the commands, which moves within a long inference too.
class SimulationBar {
 public:
  void update(const SimulationProgress& progress);

 private:
  StatusLine line_;
};

/// How far a command is that runs many simulations in separate processes, section by section
/// of its result. While one lives, run_side_by_side(), ChildProcess and Reproduction report to it.
class BatchProgress {
 public:
  BatchProgress();
  ~BatchProgress();
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  /// That of this process, null without one: a copy of the process reports nothing.
  [[nodiscard]] static BatchProgress* current();

  /// A section is complete.
  void complete(const std::string& section);
  /// `done` of `total` simulations of the present batch have ended.
  void simulations(std::size_t done, std::size_t total);
  /// Time passes: what it says is drawn again if that is due.
  void tick();

 private:
  static BatchProgress* current_;

  StatusLine line_;
  const pid_t process_;
  std::size_t sections_ = 0, done_ = 0, total_ = 0;
  std::string last_;  ///< section
};

}  // namespace systole::testbench
