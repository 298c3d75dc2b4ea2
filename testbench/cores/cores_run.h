#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <tuple>
#include <vector>

#include "testbench/cores/core_plan.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/part_recorder.h"
#include "testbench/cores/reference_runs.h"
#include "testbench/cores/ring_beside.h"
#include "testbench/run/class_cycles.h"
#include "testbench/run/result_rows.h"
#include "testbench/run/run_checks.h"
#include "tlm/system.h"

namespace systole::testbench {

/// Runs tasks of a plan: all, or those of one core while the others sleep. One simulation per
/// process.
class CoresRun {
 public:
  /// All must outlive it. `options.engines` are not used without values.
  CoresRun(const CorePlan& plan, const std::vector<std::vector<std::uint8_t>>& inputs,
           const CoresOptions& options);
  CoresRun(const CoresRun&) = delete;
  CoresRun& operator=(const CoresRun&) = delete;
  ~CoresRun();

  /// Only these tasks, all of core `index`, whatever they wait for; of the one after the plan's
  /// cores, the ring, all that it does.
  void run_alone(std::size_t index, std::vector<std::size_t> tasks);
  void run_all();

  /// Of all cores, without what needs runs alone. Throws InputError if one met a bad program.
  [[nodiscard]] CoresResult result();
  /// The tasks that a core took, in their order; of the ring its passes.
  [[nodiscard]] std::vector<std::size_t> tasks_of(std::size_t index) const;
  /// For a run alone: cycles, times of requests and the path of a core, as text.
  [[nodiscard]] std::string summary(std::size_t index) const;

 private:
  struct PathKey {
    std::string unit, cause, meaning;
    [[nodiscard]] bool operator<(const PathKey& other) const {
      return std::tie(unit, cause) < std::tie(other.unit, other.cause);
    }
  };

  /// What one core does, task after task.
  struct CoreState {
    std::size_t index = 0;
    tlm_model::Core* core = nullptr;
    const tlm_model::Clock* clock = nullptr;
    std::vector<hw::BlockReport> names;  ///< of the core's accounts
    const CoreProgram* program = nullptr;
    std::size_t task = 0;
    std::vector<std::size_t> tasks;  ///< that it took
    std::vector<tlm_model::CommandTrace> traces;
    std::map<PathKey, std::uint64_t> path;
    std::vector<std::unique_ptr<Checker>> checkers;     ///< by program, null: nothing to check
    std::vector<std::unique_ptr<ResultRows>> rows;      ///< by program, null: nobody reads them
    std::uint64_t running = 0, wait = 0, finished = 0;  ///< cycles; the last: no task was left
    std::uint64_t macs = 0;
    FirstTask first;
  };

  void make_system();
  void add_core(std::size_t index);
  /// The state's address must not change any more.
  void observe(CoreState& state);
  /// Before what checks of earlier commands use is changed.
  void await_checks();
  std::optional<std::size_t> next_task(const CoreState& state);
  void wait_for(CoreState& state, std::size_t index);
  void begin(CoreState& state, std::size_t index, tlm_model::Host::Job& job);
  void deliver(CoreState& state, const tlm_model::Host::Job& job);
  void take_times(CoreState& state, std::size_t inference);
  void take_output(const CoreProgram& program, std::size_t inference,
                   const tlm_model::Host::Job& job);
  /// No task is left for this core.
  static bool end(CoreState& state);

  [[nodiscard]] static std::uint64_t now_of(const CoreState& state);
  [[nodiscard]] std::size_t program_of(const CoreState& state, const CoreTask& task) const;
  [[nodiscard]] std::size_t first_program(std::size_t core) const;
  [[nodiscard]] RequestTimes requests(std::size_t index) const;
  [[nodiscard]] CoreShare share(const CoreState& state) const;

  const CorePlan& plan_;
  const std::vector<std::vector<std::uint8_t>>& inputs_;
  const CoresOptions& options_;
  CommandCount count_;
  ReferenceRuns references_;
  PartRecorder recorder_;
  std::unique_ptr<RingBeside> ring_;  ///< null: there is none
  std::unique_ptr<tlm_model::System> system_;
  std::deque<CoreState> states_;
  std::vector<bool> taken_, task_done_;
  std::vector<std::size_t> left_;  ///< by inference: tasks that are not done
  sc_core::sc_event done_;
  std::vector<std::vector<std::uint8_t>> outputs_;
  std::vector<std::uint64_t> begun_ps_, ended_ps_;  ///< by inference
  std::uint64_t commands_ = 0;
  ClassCycles classes_;
  std::deque<ShownPrograms> shown_;  ///< by core
  Wave* wave_ = nullptr;
  std::string fault_;  ///< of the first task that had one; each program of a core begins anew
  bool wave_is_cut_short_ = false;
  MachineRun run_;
};

}  // namespace systole::testbench
