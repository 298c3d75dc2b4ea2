#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "hw/description/core_system.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/ring_options.h"
#include "testbench/cli/common/run_options.h"
#include "testbench/common/progress.h"
#include "testbench/cores/core_plan.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/head_split.h"
#include "testbench/cores/layer_split.h"
#include "testbench/cores/part_recorder.h"
#include "testbench/cores/report_cores.h"
#include "testbench/explain/command_trace.h"
#include "testbench/explain/pipeline_view.h"
#include "testbench/explain/transaction_view.h"
#include "testbench/generation/report_generation.h"
#include "testbench/network/networks.h"
#include "testbench/network/run_subject.h"
#include "testbench/network/tensors.h"
#include "testbench/page/report_page.h"
#include "testbench/report/action_counts.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/tensor_file.h"
#include "testbench/trace/bus_trace.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {
namespace {

/// A network on each core that has its own keys.
class Subjects {
 public:
  Subjects(const RunRequest& request, const hw::CoreSystem& system) {
    for (std::size_t i = 0; i < system.cores.size(); ++i) {
      const hw::Machine& machine = system.cores[i].machine;
      std::size_t found = 0;
      while (found < machines_.size() && !hw::same_keys(*machines_[found], machine)) ++found;
      if (found == machines_.size()) {
        machines_.push_back(&machine);
        runs_.push_back(std::make_shared<RunSubject>(request, hw::mapped_machine(system, i)));
      }
      of_core_.push_back(found);
    }
  }
  [[nodiscard]] const RunSubject& first() const { return *runs_.front(); }
  /// It lives as long as the run.
  [[nodiscard]] std::shared_ptr<const model::Graph> first_graph() const {
    return {runs_.front(), &first().graph()};
  }
  /// Of subjects with a program.
  [[nodiscard]] std::vector<CoreSubject> by_core() const {
    std::vector<CoreSubject> subjects;
    for (const std::size_t index : of_core_) {
      const std::shared_ptr<const RunSubject>& run = runs_[index];
      // They live as long as the run.
      subjects.push_back({{run, &run->graph()}, {run, &run->mapping()}});
    }
    return subjects;
  }

 private:
  std::vector<const hw::Machine*> machines_;
  std::vector<std::shared_ptr<const RunSubject>> runs_;
  std::vector<std::size_t> of_core_;
};

/// Tile cores first.
hw::CoreSystem system_of(const RunOptions& options) {
  hw::CoreSystem system = load_system(options.machine);
  std::stable_partition(system.cores.begin(), system.cores.end(),
                        [](const hw::CoreSite& core) { return !hw::is_ring(core); });
  if (options.cores != 0) {
    if (!system.cores.empty()) {
      throw hw::InputError(
          fmt::format("--cores: {} describes {} cores, expected a machine of one core",
                      options.machine.machine, system.cores.size()));
    }
    if (options.cores > hw::kMaxCores) {
      throw hw::InputError(
          fmt::format("--cores: found {}, expected 1 to {}", options.cores, hw::kMaxCores));
    }
    system = hw::equal_cores(system.machine, options.cores);
    if (const std::string problem = hw::mesh_problem(system); !problem.empty()) {
      throw hw::InputError(fmt::format("--cores {}: {}", options.cores, problem));
    }
  }
  require_equal_results(hw::tiles_of(system));
  return system;
}

/// A token needs the one before it, so neither whole tokens nor layers of them can overlap.
void check_decode(const RunOptions& options, const hw::CoreSystem& system) {
  if (!options.size.decode || system.cores.size() == 1) return;
  if (options.split == name_of(Split::kHeads)) return;
  throw hw::InputError(
      fmt::format("--decode: by {} all cores but one would wait, since each token needs the one "
                  "before it, expected --split heads",
                  options.split.empty() ? name_of(Split::kBatch) : options.split));
}

CorePlan plan_of(const RunOptions& options, const hw::CoreSystem& system,
                 const Subjects& subjects) {
  const std::size_t inferences = subjects.first().inputs().size();
  const MoveGraph move = subjects.first().move();  // of steps, which follow one another
  if (options.split == name_of(Split::kHeads) || move) {
    return plan_heads(system, subjects.first_graph(), inferences, move);
  }
  if (options.split == name_of(Split::kLayers)) {
    return plan_layers(system, subjects.first_graph(), inferences);
  }
  return plan_batch(system, subjects.by_core(), inferences);
}

/// The timeline of all cores, one process each.
class CoresTimeline {
 public:
  CoresTimeline(std::ostream& out, const CorePlan& plan, const hw::CoreSite* ring,
                std::uint64_t inferences)
      : events_(out, plan.system.cores.front().machine.core.clock_mhz), recorded_(inferences) {
    for (std::size_t i = 0; i < plan.system.cores.size(); ++i) {
      const hw::CoreSite& site = plan.system.cores[i];
      const auto program = std::find_if(plan.programs.begin(), plan.programs.end(),
                                        [&](const CoreProgram& one) { return one.core == i; });
      cores_.emplace_back(events_, static_cast<std::uint32_t>(i), site.name,
                          site.machine.core.clock_mhz, inferences, program->mapping->program);
    }
    if (ring == nullptr) return;
    ring_.emplace(events_, static_cast<std::uint32_t>(cores_.size()), ring->name,
                  ring->machine.dfx.cores, ring->machine.core.clock_mhz);
  }
  /// Of the ring, in a pass from 1 on.
  void add(const tlm_model::dfx::InstructionTrace& trace, std::size_t pass) {
    if (recorded_ == 0 || pass <= recorded_) ring_->add(trace);
  }
  void begin(std::size_t core, const hw::Program& program, std::size_t inference) {
    cores_[core].begin(program, inference);
  }
  void add(std::size_t core, const tlm_model::CommandTrace& trace) { cores_[core].add(trace); }
  void end() { events_.end(); }

 private:
  EventWriter events_;
  const std::uint64_t recorded_;  ///< inferences or passes; 0: all
  std::deque<Timeline> cores_;
  std::optional<RingTimeline> ring_;
};

/// Of --timeline and, of the first run of each core, in the page of --report.
class Recordings {
 public:
  Recordings(const RunOptions& options, const CorePlan& plan, const hw::CoreSite* ring,
             ReportPage& page) {
    if (!options.timeline.empty()) {
      file_.emplace(options.timeline);
      timelines_.emplace_back(file_->stream(), plan, ring, options.timeline_inferences);
    }
    if (page.wanted()) timelines_.emplace_back(page.timeline(), plan, ring, 1);
  }
  /// Of the ring the first passes, as many as inferences of the others.
  void observe(RingPart& part) {
    if (timelines_.empty()) return;
    part.task.progress = [this](std::size_t pass) { pass_ = pass; };
    part.task.observer = [this](const tlm_model::dfx::InstructionTrace& trace) {
      for (CoresTimeline& timeline : timelines_) timeline.add(trace, pass_);
    };
  }
  void observe(CoresOptions& options) {
    if (timelines_.empty()) return;
    options.on_task = [this](std::size_t core, const hw::Program& program, std::size_t inference) {
      for (CoresTimeline& timeline : timelines_) timeline.begin(core, program, inference);
    };
    options.observer = [this](std::size_t core, const tlm_model::CommandTrace& trace) {
      for (CoresTimeline& timeline : timelines_) timeline.add(core, trace);
    };
  }
  void write() {
    for (CoresTimeline& timeline : timelines_) timeline.end();
    if (file_) file_->commit();
  }

 private:
  std::optional<hw::AtomicFile> file_;
  std::deque<CoresTimeline> timelines_;
  std::size_t pass_ = 0;  ///< of the ring, from 1
};

void write_core_outputs(const RunOptions& options, const RunSubject& subject, const CorePlan& plan,
                        const std::vector<model::TensorId>& kept, const SimulationResult& result) {
  if (options.outputs.empty()) return;
  const model::Graph& graph = *plan.graph;
  const auto tensor = [&](model::TensorId id,
                          const std::vector<std::vector<std::uint8_t>>& inferences) {
    const model::Tensor& of = graph.tensors[id];
    return tensor_of_inferences(of.name, of.type, of.rows, of.cols, inferences);
  };
  std::vector<model::TensorData> tensors{tensor(input_tensor(graph), subject.inputs()),
                                         tensor(output_tensor(graph), result.outputs)};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (graph.tensors[kept[i]].kind == model::Tensor::Kind::kOutput) continue;  // is there
    tensors.push_back(tensor(kept[i], result.tensors[i]));
  }
  add_classes(subject, result.outputs, tensors);
  model::write_safetensors(options.outputs, tensors);
}

std::vector<CoreCommands> commands_of(const hw::CoreSystem& system,
                                      const std::vector<FirstTask>& tasks) {
  std::vector<CoreCommands> cores;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    cores.push_back({tasks.size() == 1 ? "" : system.cores[i].name, tasks[i].program,
                     tasks[i].traces, tasks[i].accounts, system.cores[i].machine.core.clock_mhz,
                     tasks[i].finished, system.cores[i].link_ns});
  }
  return cores;
}

}  // namespace

void check_recordings(const RunOptions& options, const RunSubject& subject) {
  const bool several = options.wave.inferences != 1 || options.timeline_inferences != 1;
  if (several && subject.next_step()) {
    throw hw::InputError(
        fmt::format("--wave-images and --timeline-images: each {} has its own program, expected 1",
                    options.size.decode ? "token" : "text with padding"));
  }
}

int run_cores(const RunOptions& options) {
  const hw::CoreSystem all = system_of(options);
  const hw::CoreSystem system = hw::tiles_of(all);
  const hw::CoreSite* const ring_site = hw::ring_of(all);
  if (ring_site == nullptr) require_no_ring_options(options.ring);
  check_decode(options, system);
  std::optional<SimulationBar> bar(std::in_place);
  const bool in_parts =
      options.split == name_of(Split::kHeads) || options.split == name_of(Split::kLayers);
  const Subjects subjects(
      {options.model, options.size, options.input, options.limit, options.functional,
       options.min_accuracy.has_value(), options.mask, !in_parts},
      system);
  const RunSubject& subject = subjects.first();
  check_recordings(options, subject);
  if (subject.next_step() && !options.size.decode) {
    throw hw::InputError(
        "--input: texts with padding have a program each, expected texts of one length on several "
        "cores");
  }
  if (!options.tensors.empty() && subject.next_step()) {
    throw hw::InputError(
        "--tensors: each token has its own program on each core, expected one core");
  }
  const CorePlan plan = plan_of(options, system, subjects);
  std::unique_ptr<RingWork> ring;
  if (ring_site != nullptr)
    ring = std::make_unique<RingWork>(options.ring, options.functional, all, *ring_site);
  JsonOutput stats(options.stats);
  std::optional<hw::AtomicFile> actions;
  if (!options.actions.empty()) actions.emplace(options.actions);
  PipelineView pipeline(options.views.pipeline);
  CommandTraceWriter commands(options.views.commands, system.machine);
  TransactionView transactions(options.views.transactions, system.machine);
  BusTraceWriter trace(options.views.trace, system.machine);
  ReportPage page(options.report);
  Recordings recordings(options, plan, ring_site, page);
  CoresOptions how;
  how.functional = options.functional;
  how.check = options.check;
  how.threads = options.threads;
  how.wave = options.wave;
  if (!options.tensors.empty()) how.tensors = find_tensors(options.tensors, plan);
  RtlReport rtl;
  RtlWaves rtl_waves(options.wave.path, all);
  how.engines = [&](std::size_t core) {
    RtlOptions rtl_options = rtl_waves.options(core);
    add_own_rtl(options.machine.rtl, rtl_options);
    return make_engines(system.cores[core].machine, rtl_options, rtl);
  };
  trace.observe(how.bus_observers);
  transactions.observe(how.bus_observers);
  recordings.observe(how);
  if (ring) {
    recordings.observe(ring->part());
    ring->part().rtl = [&rtl_waves, tiles = system.cores.size()](std::uint32_t core) {
      return rtl_waves.options(tiles + core);
    };
    how.ring = &ring->part();
  }
  how.progress = [&bar](const SimulationProgress& now) { bar->update(now); };
  CoresResult result = simulate(plan, subject.inputs(), how);
  bar.reset();
  rtl_waves.write();

  CoresMeasurement run;
  run.system = all;
  run.split = plan.split;
  run.cores = std::move(result.cores);
  if (ring) {
    run.ring = ring->report(options.functional, std::move(*result.ring));
    run.ring_check = result.ring_check;
  }
  run.seconds = result.seconds;
  const std::vector<FirstTask> first_tasks = std::move(result.first_tasks);
  const std::vector<hw::EnergyEvents> core_events = std::move(result.core_events);
  SimulationOptions simulation;
  simulation.functional = options.functional;
  simulation.check = options.check;
  run.measurement = measure(system.cores.front().machine, subject.network().name, subject.macs(),
                            simulation, std::move(static_cast<SimulationResult&>(result)));
  run.measurement.size = subject.network().size;
  run.measurement.past = subject.past();
  run.measurement.rtl = rtl;
  if (run.ring) {  // blocks of another kind
    run.measurement.rtl.insert(run.ring->generation.rtl.begin(), run.ring->generation.rtl.end());
  }
  if (options.functional) {
    run.measurement.accuracy = subject.accuracy(run.measurement.result.outputs);
  }
  const nlohmann::ordered_json document = to_json(run);
  stats.write(document);
  if (actions) {
    actions->stream() << action_counts_yaml(system, core_events, run.measurement.result.events);
    actions->commit();
  }
  recordings.write();
  const std::vector<CoreCommands> of_cores = commands_of(system, first_tasks);
  pipeline.write(of_cores);
  transactions.write(of_cores);
  commands.write(of_cores);
  if (page.wanted()) page.write(run.measurement.machine, document);
  trace.commit();
  write_core_outputs(options, subject, plan, how.tensors, run.measurement.result);
  if (options.json) {
    print_json(document);
  } else {
    print_text(
        report_text(run, {options.stats, options.actions, options.wave.path, options.timeline,
                          options.report, options.views.pipeline, options.views.transactions,
                          options.views.trace, options.views.commands, options.outputs}));
  }
  const Measurement& measured = run.measurement;
  const bool accurate = !options.min_accuracy || *measured.accuracy >= *options.min_accuracy;
  const bool same = measured.mismatches() == 0 && run.ring_check.mismatches == 0;
  return accurate && same ? kExitOk : kExitCheckFailed;
}

}  // namespace systole::testbench
