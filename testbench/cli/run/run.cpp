#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "analysis/mapped_cost.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "hw/description/machine_file.h"
#include "mapper/program_file.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/run_options.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/common/child_process.h"
#include "testbench/common/progress.h"
#include "testbench/explain/command_trace.h"
#include "testbench/explain/pipeline_view.h"
#include "testbench/explain/report_explain.h"
#include "testbench/explain/transaction_view.h"
#include "testbench/network/networks.h"
#include "testbench/network/run_subject.h"
#include "testbench/network/tensors.h"
#include "testbench/page/report_page.h"
#include "testbench/report/action_counts.h"
#include "testbench/report/measurement.h"
#include "testbench/report/report_gates.h"
#include "testbench/rtl/engine/own_block.h"
#include "testbench/run/core_on_bus.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/tensor_file.h"
#include "testbench/trace/bus_trace.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {

void add_classes(const RunSubject& subject, const std::vector<std::vector<std::uint8_t>>& outputs,
                 std::vector<model::TensorData>& tensors) {
  if (!classifies(subject.network())) return;
  const std::vector<std::uint32_t>& labels = subject.labels();
  std::vector<std::int32_t> classes;
  for (const std::vector<std::uint8_t>& logits : outputs) {
    classes.push_back(class_of(subject.graph(), logits));
  }
  tensors.push_back(
      model::make_tensor("classes", model::FileDtype::kI32, {classes.size()}, classes));
  if (labels.empty()) return;
  const std::vector<std::int32_t> known(
      labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(classes.size()));
  tensors.push_back(model::make_tensor("labels", model::FileDtype::kI32, {known.size()}, known));
}

namespace {

void check_options(const RunOptions& options) {
  if (!options.functional && (options.check || options.min_accuracy || !options.outputs.empty())) {
    throw hw::InputError(
        "--functional off: --check, --min-accuracy and --outputs need values, expected "
        "--functional on");
  }
  if (options.exact && options.gates.empty()) {
    throw hw::InputError("--exact: compares with gates, expected --rtl core");
  }
  if (!options.gates.empty() && !options.functional) {
    throw hw::InputError("--functional off: --rtl core needs values, expected --functional on");
  }
  // Not the parser's range check, which lets "nan" pass.
  if (options.min_accuracy && !(*options.min_accuracy >= 0.0 && *options.min_accuracy <= 1.0)) {
    throw hw::InputError(
        fmt::format("--min-accuracy: found {}, expected 0 to 1", *options.min_accuracy));
  }
}

/// What is run, wherever it comes from.
struct Work {
  hw::Machine machine;
  std::string name;
  const hw::Program& program;  ///< of the first inference
  std::uint64_t address;       ///< of its header
  const hw::MemoryImage& image;
  std::uint64_t macs;
  mapper::TensorPlace input, output;
  const std::vector<std::vector<std::uint8_t>>& inputs;
  std::function<SimulationResult(tlm_model::Engines, const SimulationOptions&)> simulate;
  /// More tensors for --outputs; null: of a program file.
  std::function<void(const SimulationResult&, std::vector<model::TensorData>&)> add_outputs;
  /// The document of `systole explain`, without changes of the machine; null: of a program file.
  std::function<nlohmann::ordered_json(const Measurement&)> explain;
};

/// Timelines of a run: of --timeline and, of the first inference, in the page of --report.
class Recording {
 public:
  Recording(const RunOptions& options, const Work& work, ReportPage& page) {
    const std::uint32_t clock = work.machine.core.clock_mhz;
    if (!options.timeline.empty()) {
      file_.emplace(options.timeline);
      timelines_.emplace_back(file_->stream(), options.timeline_inferences, work.program, clock);
    }
    if (page.wanted()) timelines_.emplace_back(page.timeline(), 1, work.program, clock);
  }
  [[nodiscard]] tlm_model::Observer observer() {
    if (timelines_.empty()) return {};
    return [this](const tlm_model::CommandTrace& trace) {
      for (Timeline& timeline : timelines_) timeline.add(trace);
    };
  }
  void write() {
    for (Timeline& timeline : timelines_) timeline.end();
    if (file_) file_->commit();
  }

 private:
  std::optional<hw::AtomicFile> file_;
  std::deque<Timeline> timelines_;
};

void write_outputs(const std::string& path, const Work& work, const SimulationResult& result) {
  const auto tensor = [](const mapper::TensorPlace& place,
                         const std::vector<std::vector<std::uint8_t>>& inferences) {
    return tensor_of_inferences(place.name, place.type, place.rows, place.cols, inferences);
  };
  std::vector<model::TensorData> tensors{tensor(work.input, work.inputs),
                                         tensor(work.output, result.outputs)};
  if (work.add_outputs) work.add_outputs(result, tensors);
  model::write_safetensors(path, tensors);
}

/// Cycles that the waveform of a difference has before it. Behind it: CorePorts::kCyclesBehind.
constexpr std::uint64_t kCyclesBefore = 500;

/// When the model does what, without anything else of the run. In a child: SystemC elaborates once.
std::vector<CoreCommandTimes> times_of_model(const Work& work, const SimulationOptions& given) {
  SimulationOptions simulation;
  simulation.functional = given.functional;
  simulation.threads = given.threads;
  simulation.keep_traces = true;
  const Bytes bytes = run_in_child([&] {
    const std::vector<CoreCommandTimes> times =
        command_times(work.simulate(tlm_model::make_models(work.machine), simulation));
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(times.data());
    return Bytes(begin, begin + times.size() * sizeof(CoreCommandTimes));
  });
  std::vector<CoreCommandTimes> times(bytes.size() / sizeof(CoreCommandTimes));
  std::memcpy(times.data(), bytes.data(), bytes.size());
  return times;
}

/// The gates without a waveform.
GatesRun run_gates_alone(const Work& work, const GatesProgram& program, RtlOptions rtl) {
  rtl.places.clear();
  rtl.time = nullptr;
  return GatesBeside(work.machine, program, work.inputs, rtl).result();
}

/// What a waveform of a difference shows.
WaveOptions around(const GatesRun& run, WaveOptions wave) {
  const CommandDifference& difference = run.difference;
  const auto [first, last] = std::minmax(difference.found, difference.expected);
  wave.from_cycle = run.began + (first > kCyclesBefore ? first - kCyclesBefore : 0);
  wave.to_cycle = run.began + last + CorePorts::kCyclesBehind;
  return wave;
}

void report_difference(const RunOptions& options, const Work& work, const GatesRun& run) {
  const CommandDifference& difference = run.difference;
  if (options.json) {
    print_json({{"difference", difference_json(difference, work.program)}});
  } else {
    print_text(difference_text(difference, work.program));
  }
}

/// Runs it and reports. `complete` adds what only the caller knows to the measurement.
int measure_and_report(const RunOptions& options, const Work& work, SimulationOptions simulation,
                       std::optional<SimulationBar>& bar,
                       const std::function<void(Measurement&)>& complete) {
  JsonOutput stats(options.stats);
  std::optional<hw::AtomicFile> actions;
  if (!options.actions.empty()) actions.emplace(options.actions);
  PipelineView pipeline(options.views.pipeline);
  CommandTraceWriter commands(options.views.commands, work.machine);
  TransactionView transactions(options.views.transactions, work.machine);
  BusTraceWriter trace(options.views.trace, work.machine);
  trace.observe(simulation.bus_observers);
  transactions.observe(simulation.bus_observers);
  simulation.functional = options.functional;
  simulation.check = options.check;
  simulation.threads = options.threads;
  simulation.wave = options.wave;
  ReportPage page(options.report);
  Recording recording(options, work, page);
  simulation.observer = recording.observer();
  RtlReport rtl;
  RtlWaves rtl_waves(options.wave.path, work.machine, !options.gates.empty());
  RtlOptions rtl_options = rtl_waves.options();
  rtl_options.window = {options.wave.from_cycle, options.wave.to_cycle, options.wave.max_bytes};
  add_own_rtl(options.machine.rtl, rtl_options);
  tlm_model::Engines engines = make_engines(work.machine, rtl_options, rtl);
  GatesProgram program{work.program, work.address, work.image, work.input, work.output, nullptr};
  std::vector<CoreCommandTimes> times;  // that the gates have to have
  std::optional<GatesRun> exact;
  std::optional<GatesBeside> gates;
  if (!options.gates.empty()) {
    add_own_rtl(options.gates, rtl_options);
    require_gates(work.machine, work.program, rtl_options);
    simulation.keep_outputs = true;
    if (options.exact) {
      times = times_of_model(work, simulation);
      program.expected = &times;
      exact = run_gates_alone(work, program, rtl_options);
      if (exact->differs) {
        simulation.wave = around(*exact, options.wave);
        rtl_options.window.from_cycle = simulation.wave.from_cycle;
        rtl_options.window.to_cycle = simulation.wave.to_cycle;
      }
    }
    if (!exact || !options.wave.path.empty()) {
      gates.emplace(work.machine, program, work.inputs, rtl_options);
    }
  }
  simulation.progress = [&bar](const SimulationProgress& now) { bar->update(now); };
  if (exact && exact->differs) {
    if (gates) {
      (void)work.simulate(std::move(engines), simulation);
      (void)gates->result();
      rtl_waves.write();
    }
    bar.reset();
    report_difference(options, work, *exact);
    return kExitCheckFailed;
  }
  Measurement measurement = measure(work.machine, work.name, work.macs, simulation,
                                    work.simulate(std::move(engines), simulation));
  if (gates || exact) {
    measurement.gates = compare_gates(gates ? gates->result() : *exact, measurement.result);
    rtl[kCoreInRtl] = measurement.gates->counts();
    if (measurement.gates->run.wave_is_cut_short) measurement.result.wave_is_cut_short = true;
    for (const auto& [block, own] : rtl_options.own) rtl[block].source = own->folder;
  }
  bar.reset();
  measurement.rtl = rtl;
  rtl_waves.write();
  complete(measurement);

  const nlohmann::ordered_json document = to_json(measurement);
  stats.write(document);
  if (actions) {
    actions->stream() << action_counts_yaml(work.machine, measurement.result.events);
    actions->commit();
  }
  recording.write();
  if (page.wanted()) page.write(work.machine, document, work.explain(measurement));
  pipeline.write(work.program, measurement.result);
  const std::vector<CoreCommands> cores{
      commands_of(work.program, measurement.result, work.machine.core.clock_mhz)};
  transactions.write(cores);
  commands.write(cores);
  trace.commit();
  if (!options.outputs.empty()) write_outputs(options.outputs, work, measurement.result);
  std::vector<std::pair<std::string, std::string>> notes;
  if (measurement.result.wave_is_cut_short) {
    notes.push_back(cut_wave_note(options.wave));
  }
  if (options.json) {
    print_json(document);
  } else {
    print_text(report_text(measurement,
                           {options.stats, options.actions, options.wave.path, options.timeline,
                            options.report, options.views.pipeline, options.views.transactions,
                            options.views.trace, options.views.commands, options.outputs},
                           notes));
  }
  const bool accurate = !options.min_accuracy || *measurement.accuracy >= *options.min_accuracy;
  return accurate && measurement.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

int run_network(const RunOptions& options) {
  const hw::Machine machine = load_machine(options.machine);
  std::optional<SimulationBar> bar(std::in_place);  // its second begins with the work
  const RunSubject subject({options.model, options.size, options.input, options.limit,
                            options.functional, options.min_accuracy.has_value(), options.mask},
                           machine);
  check_recordings(options, subject);
  SimulationOptions simulation;
  simulation.next_step = subject.next_step(options.threads);
  if (!options.gates.empty() && simulation.next_step) {
    throw hw::InputError(
        "--rtl core: runs one program for all inputs, expected no --decode, and texts of one "
        "length");
  }
  const model::Graph& graph = subject.graph();
  const mapper::Mapping& mapping = subject.mapping();
  if (!options.tensors.empty()) {
    simulation.tensors = find_tensors(options.tensors, graph, mapping);
  }
  const std::vector<model::TensorId> tensors_kept = simulation.tensors;
  // Of the first inference: later ones may change graph and mapping.
  const std::vector<analysis::OperatorEstimate> estimates = analysis::estimate(mapping, machine);
  analysis::LowerBound bound;
  if (!options.report.empty()) bound = analysis::lower_bound(graph, machine);
  const Work work{machine,
                  subject.network().name,
                  mapping.program,
                  mapping.program_address,
                  mapping.image,
                  subject.macs(),
                  mapper::place_of(graph, mapping, input_tensor(graph)),
                  mapper::place_of(graph, mapping, output_tensor(graph)),
                  subject.inputs(),
                  [&](tlm_model::Engines engines, const SimulationOptions& how) {
                    return simulate(graph, mapping, machine, std::move(engines), subject.inputs(),
                                    how);
                  },
                  [&](const SimulationResult& result, std::vector<model::TensorData>& tensors) {
                    for (std::size_t i = 0; i < tensors_kept.size(); ++i) {
                      const model::Tensor& tensor = graph.tensors[tensors_kept[i]];
                      if (tensor.kind == model::Tensor::Kind::kOutput) continue;  // is there
                      tensors.push_back(tensor_of_inferences(tensor.name, tensor.type, tensor.rows,
                                                             tensor.cols, result.tensors[i]));
                    }
                    add_classes(subject, result.outputs, tensors);
                  },
                  [&](const Measurement& measurement) {
                    return explain_json(explain_run(measurement, mapping.program, bound));
                  }};
  simulation.keep_outputs = !options.outputs.empty() || subject.has_answers();
  return measure_and_report(options, work, std::move(simulation), bar,
                            [&](Measurement& measurement) {
                              measurement.estimates = estimates;
                              measurement.size = subject.network().size;
                              measurement.past = subject.past();
                              if (options.functional) {
                                measurement.accuracy = subject.accuracy(measurement.result.outputs);
                              }
                            });
}

/// Runs a program file, on the machine that it was made for unless another one is given.
int run_program(const RunOptions& options) {
  if (!options.model.empty() || options.check || options.min_accuracy || options.size.any() ||
      !options.mask.empty()) {
    throw hw::InputError(
        "--program: has no network to compare with or to change, expected no --model, --check, "
        "--min-accuracy, --mask, --decode or size");
  }
  const MachineOptions& given = options.machine;
  if (given.machine.empty() &&
      !(given.settings.empty() && given.rtl.empty() && given.strategy.empty())) {
    throw hw::InputError("--program: --set, --rtl and --strategy: expected with --machine");
  }
  if (options.functional == options.input.empty()) {
    throw hw::InputError(options.functional
                             ? "--program: expected --input with its values"
                             : "--functional off: takes no values, expected no --input");
  }
  std::optional<SimulationBar> bar(std::in_place);
  std::optional<hw::Machine> machine;
  if (!given.machine.empty()) machine = load_machine(given);
  const mapper::LoadableProgram loaded =
      mapper::read_program(options.program, machine ? &*machine : nullptr);
  const std::vector<std::vector<std::uint8_t>> inputs =
      options.functional
          ? read_values(options.input, loaded.input, options.limit)
          : std::vector<std::vector<std::uint8_t>>(std::max<std::size_t>(options.limit, 1));
  const Work work{loaded.machine,
                  loaded.network,
                  loaded.program,
                  loaded.address,
                  loaded.image,
                  loaded.macs,
                  loaded.input,
                  loaded.output,
                  inputs,
                  [&](tlm_model::Engines engines, const SimulationOptions& how) {
                    return simulate(loaded, std::move(engines), inputs, how);
                  },
                  nullptr,
                  [](const Measurement&) { return nullptr; }};
  return measure_and_report(options, work, {}, bar, [](Measurement&) {});
}

}  // namespace

int run_model(const RunOptions& given) {
  RunOptions options = given;
  options.gates = take_core_rtl(options.machine);
  check_options(options);
  if (!options.program.empty()) {
    if (options.cores != 0 || !options.split.empty()) {
      throw hw::InputError("--cores and --split: map a network, expected --model, no --program");
    }
    require_no_ring_options(options.ring);
    return run_program(options);
  }
  if (options.model.empty() || options.machine.machine.empty()) {
    throw hw::InputError("run: expected --machine and --model, or --program");
  }
  if (options.cores != 0 || !hw::find_system(options.machine.machine).cores.empty()) {
    if (!options.gates.empty()) {
      throw hw::InputError("--rtl core: is one core, expected a machine of one and no --cores");
    }
    return run_cores(options);
  }
  require_no_ring_options(options.ring);
  if (!options.split.empty()) {
    throw hw::InputError("--split: between several cores, expected --cores or [[core]] tables");
  }
  return run_network(options);
}

}  // namespace systole::testbench
