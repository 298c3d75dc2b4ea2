#include "testbench/cores/cores_simulation.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <systemc>
#include <tuple>
#include <utility>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "testbench/cores/alone_run.h"
#include "testbench/explain/critical_path.h"
#include "testbench/explain/explanation.h"
#include "testbench/network/tensors.h"
#include "testbench/run/class_cycles.h"
#include "testbench/run/result_rows.h"
#include "testbench/run/run_checks.h"
#include "testbench/wave/wave.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;
using tlm_model::Host;

/// Longer than any run: for the names of accounts.
constexpr std::uint64_t kNever = ~std::uint64_t{0} >> 1;

/// The references of the inferences that are in flight, one run of each.
class References {
 public:
  References(const model::Graph& graph, const std::vector<std::vector<std::uint8_t>>& inputs,
             CommandCount& count)
      : graph_(graph), inputs_(inputs), count_(count) {}

  const model::Reference& of(std::size_t inference) {
    std::unique_ptr<model::Reference>& reference = running_[inference];
    if (reference) return *reference;
    if (free_.empty()) {
      reference = std::make_unique<model::Reference>(graph_, reference_options(graph_));
    } else {
      reference = std::move(free_.back());
      free_.pop_back();
    }
    run_reference(*reference, graph_, inputs_[inference],
                  [&](std::size_t nodes) { count_.reference(nodes, graph_.nodes.size()); });
    return *reference;
  }
  void end(std::size_t inference) {
    const auto found = running_.find(inference);
    if (found == running_.end()) return;
    free_.push_back(std::move(found->second));
    running_.erase(found);
  }

 private:
  const model::Graph& graph_;
  const std::vector<std::vector<std::uint8_t>>& inputs_;
  CommandCount& count_;
  std::map<std::size_t, std::unique_ptr<model::Reference>> running_;
  std::vector<std::unique_ptr<model::Reference>> free_;
};

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
  std::vector<CommandTrace> traces;
  std::map<PathKey, std::uint64_t> path;
  std::vector<std::unique_ptr<Checker>> checkers;     ///< by program, null: of another core
  std::vector<std::unique_ptr<ResultRows>> rows;      ///< likewise
  std::uint64_t running = 0, wait = 0, finished = 0;  ///< cycles; the last: when no task was left
  std::uint64_t macs = 0;
};

/// Runs tasks of a plan: all, or those of one core while the others sleep.
class Run {
 public:
  Run(const CorePlan& plan, const std::vector<std::vector<std::uint8_t>>& inputs,
      const CoresOptions& options)
      : plan_(plan),
        inputs_(inputs),
        options_(options),
        count_(options.progress, inputs.size()),
        references_(*plan.graph, inputs, count_) {
    std::vector<tlm_model::CorePlace> places;
    std::vector<tlm_model::System::Software> software;
    std::vector<const hw::MemoryImage*> images;
    for (const CoreProgram& program : plan.programs) images.push_back(&program.mapping->image);
    for (std::size_t i = 0; i < plan.system.cores.size(); ++i) {
      const hw::CoreSite& site = plan.system.cores[i];
      places.push_back({site.name, site.machine, tlm_model::make_models(site.machine),
                        site.registers, site.link_ns});
      const mapper::Mapping& first = *first_program(i).mapping;
      software.push_back({first.program_address, &first.program.host_functions});
    }
    system_ = std::make_unique<tlm_model::System>("system", plan.system.machine, std::move(places),
                                                  software, std::move(images), options.functional);
    taken_.resize(plan.tasks.size());
    task_done_.resize(plan.tasks.size());
    left_.resize(inputs.size());
    begun_ps_.resize(inputs.size());
    ended_ps_.resize(inputs.size());
    for (const CoreTask& task : plan.tasks) ++left_[task.inference];
    outputs_.resize(inputs.size());
    for (std::size_t i = 0; i < plan.system.cores.size(); ++i) add_core(i);
    std::uint64_t commands = 0;
    for (const CoreTask& task : plan.tasks) {
      commands += plan.programs[task.program.value_or(0)].mapping->program.commands.size() - 1;
    }
    count_.begin_all(commands);
    for (const auto& observer : options.bus_observers) system_->bus.observe(observer);
  }

  /// Only these tasks, all of core `index`, whatever they wait for.
  void run_alone(std::size_t index, std::vector<std::size_t> tasks) {
    for (CoreState& state : states_) {
      const bool runs = state.index == index;
      system_->hosts[state.index]->set_work(
          [this, runs, &state, tasks, next = std::size_t{0}](Host::Job& job) mutable {
            if (!runs || next == tasks.size()) return end(state);
            begin(state, tasks[next++], job);
            return true;
          },
          [this, &state](const Host::Job& job) { deliver(state, job); });
    }
    run_ = run_machine(*system_);
  }

  void run_all() {
    for (CoreState& state : states_) {
      system_->hosts[state.index]->set_work(
          [this, &state](Host::Job& job) {
            const std::optional<std::size_t> task = next_task(state);
            if (!task) return end(state);
            wait_for(state, *task);
            begin(state, *task, job);
            return true;
          },
          [this, &state](const Host::Job& job) { deliver(state, job); });
    }
    std::unique_ptr<Wave> wave;
    if (!options_.wave.path.empty()) {
      std::vector<WaveCore> cores;
      for (const CoreState& state : states_) {
        const std::string& name = plan_.system.cores[state.index].name;
        cores.push_back(
            {states_.size() == 1 ? "" : name, &first_program(state.index).mapping->program});
      }
      wave = std::make_unique<Wave>(options_.wave, std::move(cores),
                                    plan_.system.cores.front().machine.core.clock_mhz);
    }
    wave_ = wave.get();
    run_ = run_machine(*system_);
    wave_ = nullptr;
    if (!wave) return;
    wave->open_on_first_operator(traces_, plan_.system.cores.front().machine.core.clock_mhz);
    wave->write();
    wave_is_cut_short_ = wave->is_cut_short();
  }

  [[nodiscard]] CoresResult result();
  /// The tasks that a core took, in their order.
  [[nodiscard]] const std::vector<std::size_t>& tasks_of(std::size_t index) const {
    return states_[index].tasks;
  }
  /// For a run alone: cycles, times of requests and the path of a core, as text.
  [[nodiscard]] std::string summary(std::size_t index) const;

 private:
  [[nodiscard]] RequestTimes requests(std::size_t index) const;
  [[nodiscard]] CoreShare share(const CoreState& state) const;

  void add_core(std::size_t index) {
    CoreState& state = states_.emplace_back();
    state.index = index;
    state.core = system_->cores[index].core.get();
    state.clock = &system_->cores[index].clock;
    state.names = state.core->reports(kNever);
    for (const CoreProgram& program : plan_.programs) {
      const bool checks = options_.functional && options_.check && program.core == index;
      state.checkers.push_back(checks ? std::make_unique<Checker>(program.origins) : nullptr);
      state.rows.push_back(
          checks ? std::make_unique<ResultRows>(*program.graph, *system_, *state.core) : nullptr);
    }
  }

  /// The state's address must not change any more.
  void observe(CoreState& state) {
    state.core->processor.observe([this, &state](const CommandTrace& trace) {
      state.traces[trace.index] = trace;
      const std::size_t program = static_cast<std::size_t>(state.program - plan_.programs.data());
      if (Checker* const checker = state.checkers[program].get()) {
        checker->end_command(trace.op);
        state.rows[program]->read(trace, [&](const WrittenRow& row) { checker->compare(row); });
      }
      if (options_.observer) options_.observer(state.index, trace);
      if (options_.progress) count_.end_command();
    });
  }

  std::optional<std::size_t> next_task(const CoreState& state) {
    for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
      if (taken_[i]) continue;
      const CoreTask& task = plan_.tasks[i];
      if (task.program && plan_.programs[*task.program].core != state.index) continue;
      taken_[i] = true;
      return i;
    }
    return std::nullopt;
  }

  void wait_for(CoreState& state, std::size_t index) {
    const std::uint64_t since = now_of(state);
    for (const std::size_t before : plan_.tasks[index].after) {
      while (!task_done_[before]) sc_core::wait(done_);
    }
    state.wait += now_of(state) - since;
  }

  [[nodiscard]] static std::uint64_t now_of(const CoreState& state) {
    return state.clock->cycle_from(sc_core::sc_time_stamp());
  }

  void begin(CoreState& state, std::size_t index, Host::Job& job) {
    if (state.tasks.empty()) observe(state);
    const CoreTask& task = plan_.tasks[index];
    state.task = index;
    state.tasks.push_back(index);
    state.program = &program_of(state, task);
    state.traces.assign(state.program->mapping->program.commands.size() - 1, {});
    const std::size_t at = static_cast<std::size_t>(state.program - plan_.programs.data());
    if (Checker* const checker = state.checkers[at].get()) {
      state.rows[at]->begin(*state.program->mapping);
      checker->begin(*state.program->mapping, references_.of(task.inference), task.inference);
    }
    if (task.program) job.program = state.program->mapping->program_address;
    system_->hosts[state.index]->set_functions(state.program->mapping->program.host_functions);
    if (state.program->input) {
      job.inputs = host_buffers(*state.program->input,
                                options_.functional ? &inputs_[task.inference] : nullptr);
    }
    if (state.program->output) job.outputs = host_buffers(*state.program->output, nullptr);
  }

  [[nodiscard]] const CoreProgram& program_of(const CoreState& state, const CoreTask& task) const {
    return task.program ? plan_.programs[*task.program] : first_program(state.index);
  }

  [[nodiscard]] const CoreProgram& first_program(std::size_t core) const {
    return *std::find_if(plan_.programs.begin(), plan_.programs.end(),
                         [&](const CoreProgram& one) { return one.core == core; });
  }

  void deliver(CoreState& state, const Host::Job& job) {
    const std::size_t inference = plan_.tasks[state.task].inference;
    const tlm_model::CommandProcessor& processor = state.core->processor;
    state.running += job.cycles;
    const std::vector<PathStep> path =
        critical_path(state.traces, processor.start_cycle(), processor.finish_cycle());
    for (const PathCause& cause : causes_of(path, state.traces, state.names)) {
      state.path[{cause.unit, cause.cause, cause.meaning}] += cause.cycles;
    }
    for (const hw::Operator& op : state.program->mapping->program.operators) state.macs += op.macs;
    commands_ += state.program->mapping->program.commands.size();
    const std::uint64_t begun = state.clock->edge_ps(processor.start_cycle());
    if (begun_ps_[inference] == 0 || begun < begun_ps_[inference]) begun_ps_[inference] = begun;
    ended_ps_[inference] =
        std::max(ended_ps_[inference], state.clock->edge_ps(processor.finish_cycle()));
    if (inference == 0) {
      const ClassCycles classes = share_by_class(state.program->mapping->program, state.traces,
                                                 plan_.system.cores[state.index].machine);
      for (std::size_t i = 0; i < kTimeClasses; ++i) classes_.cycles[i] += classes.cycles[i];
    }
    if (state.index == 0 && state.tasks.size() == 1) {
      traces_ = state.traces;
      started_ = processor.start_cycle();
      first_finished_ = processor.finish_cycle();
    }
    if (state.program->output) take_output(*state.program, inference, job);
    task_done_[state.task] = true;
    done_.notify();
    if (--left_[inference] == 0) {
      references_.end(inference);
      count_.end_inference();
      if (wave_ != nullptr) wave_->end_inference();
    }
  }

  void take_output(const CoreProgram& program, std::size_t inference, const Host::Job& job) {
    const model::Tensor& tensor = plan_.graph->tensors[output_tensor(*plan_.graph)];
    std::vector<std::uint8_t>& to = outputs_[inference];
    to.resize(tensor.bytes());
    const std::size_t element = hw::bytes_of(tensor.type);
    const std::size_t row_bytes = tensor.cols * element;
    for (std::size_t row = 0; row < job.outputs.size(); ++row) {
      const std::vector<std::uint8_t>& bytes = job.outputs[row].bytes;
      std::copy(
          bytes.begin(), bytes.end(),
          to.begin() + static_cast<std::ptrdiff_t>(row * row_bytes + program.output_col * element));
    }
  }

  /// No task is left for this core.
  bool end(CoreState& state) {
    state.finished = now_of(state);
    return false;
  }

  const CorePlan& plan_;
  const std::vector<std::vector<std::uint8_t>>& inputs_;
  const CoresOptions& options_;
  CommandCount count_;
  References references_;
  std::unique_ptr<tlm_model::System> system_;
  std::deque<CoreState> states_;
  std::vector<bool> taken_, task_done_;
  std::vector<std::size_t> left_;  ///< by inference: tasks that are not done
  sc_core::sc_event done_;
  std::vector<std::vector<std::uint8_t>> outputs_;
  std::vector<std::uint64_t> begun_ps_, ended_ps_;  ///< by inference
  std::vector<CommandTrace> traces_;
  std::uint64_t started_ = 0, first_finished_ = 0, commands_ = 0;
  ClassCycles classes_;
  Wave* wave_ = nullptr;
  bool wave_is_cut_short_ = false;
  MachineRun run_;
};

RequestTimes Run::requests(std::size_t index) const {
  RequestTimes sum;
  for (const unsigned port : system_->cores[index].ports) {
    const tlm_model::BusCore::Initiator& of = system_->bus.core().initiators().at(port);
    sum.requests += of.reads + of.writes;
    sum.bytes += of.read_bytes + of.written_bytes;
    sum.request_wait += of.request_wait;
    sum.data_wait += of.data_wait;
    sum.target_time += of.target_time;
  }
  return sum;
}

CoreShare Run::share(const CoreState& state) const {
  CoreShare share;
  share.name = plan_.system.cores[state.index].name;
  share.tasks = state.tasks.size();
  share.running = share.alone = state.running;
  share.wait = state.wait;
  share.total = state.core->processor.cycle();
  share.done = share.total - state.finished;
  share.host = share.total - share.running - share.wait - share.done;
  share.macs = state.macs;
  share.traffic = system_->core_traffic(state.index);
  for (const auto& [key, cycles] : state.path) {
    share.path.push_back({key.unit, key.cause, key.meaning, cycles, cycles});
  }
  share.together_requests = share.alone_requests = requests(state.index);
  return share;
}

std::string Run::summary(std::size_t index) const {
  const CoreState& state = states_[index];
  const RequestTimes times = requests(index);
  std::ostringstream text;
  text << state.running << ' ' << times.requests << ' ' << times.bytes << ' ' << times.request_wait
       << ' ' << times.data_wait << ' ' << times.target_time << '\n';
  for (const auto& [key, cycles] : state.path) {
    text << key.unit << ' ' << key.cause << ' ' << cycles << ' ' << key.meaning << '\n';
  }
  return text.str();
}

CoresResult Run::result() {
  CoresResult result;
  for (const tlm_model::BoardCore& each : system_->cores) {
    if (const std::string& fault = each.core->processor.fault(); !fault.empty()) {
      throw hw::InputError("program: " + fault);
    }
  }
  static_cast<MachineRun&>(result) = run_;
  const tlm_model::Clock& clock = system_->cores.front().clock;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    result.cycles.push_back(clock.cycle_from_ps(ended_ps_[i]) - clock.cycle_from_ps(begun_ps_[i]));
  }
  if (plan_.split == Split::kBatch) {
    const hw::Machine& machine = plan_.system.cores.front().machine;
    result.bounds.assign(inputs_.size(), analysis::lower_bound(*plan_.graph, machine).cycles());
  }
  result.outputs = outputs_;
  result.total_cycles = system_->core.processor.cycle();
  result.seconds = sc_core::sc_time_stamp().to_seconds();
  for (const CoreState& state : states_) {
    result.cores.push_back(share(state));
    for (const auto& checker : state.checkers) {
      if (checker) result.check.add(checker->result());
    }
  }
  result.wave_is_cut_short = wave_is_cut_short_;
  result.traffic = system_->core_traffic();
  result.events = system_->energy_events();
  result.traces = traces_;
  result.started = started_;
  result.finished = first_finished_;
  result.classes = classes_;
  result.commands = commands_;
  return result;
}

/// Simulates one core of the plan alone: the order says which tasks, the result is a summary().
std::string simulate_alone(const CorePlan& plan,
                           const std::vector<std::vector<std::uint8_t>>& inputs, std::size_t core,
                           const std::string& order) {
  CoresOptions options;
  options.functional = false;
  Run run(plan, inputs, options);
  std::istringstream numbers(order);
  run.run_alone(core, {std::istream_iterator<std::size_t>(numbers), {}});
  return run.summary(core);
}

void take_alone(CoreShare& share, const std::string& summary) {
  std::istringstream text(summary);
  RequestTimes& times = share.alone_requests;
  text >> share.alone >> times.requests >> times.bytes >> times.request_wait >> times.data_wait >>
      times.target_time;
  for (PathShare& part : share.path) part.alone = 0;
  std::string unit, cause, meaning;
  for (std::uint64_t cycles = 0; text >> unit >> cause >> cycles;) {
    std::getline(text >> std::ws, meaning);
    const auto found = std::find_if(
        share.path.begin(), share.path.end(),
        [&](const PathShare& part) { return part.unit == unit && part.cause == cause; });
    if (found != share.path.end()) {
      found->alone = cycles;
    } else {
      share.path.push_back({unit, cause, meaning, 0, cycles});
    }
  }
  std::stable_sort(share.path.begin(), share.path.end(),
                   [](const PathShare& a, const PathShare& b) {
                     return static_cast<std::int64_t>(a.together - a.alone) >
                            static_cast<std::int64_t>(b.together - b.alone);
                   });
}

}  // namespace

CoresResult simulate(const CorePlan& plan, const std::vector<std::vector<std::uint8_t>>& inputs,
                     const CoresOptions& options) {
  const model::Graph& graph = *plan.graph;
  if (options.functional) {
    check_input_sizes(inputs, graph.name, graph.tensors[input_tensor(graph)].bytes());
  }
  const std::size_t count = plan.system.cores.size();
  std::deque<AloneRun> alone;
  if (options.alone && count > 1) {
    for (std::size_t core = 0; core < count; ++core) {
      alone.emplace_back([&, core](const std::string& order) {
        return simulate_alone(plan, inputs, core, order);
      });
    }
  }
  Run run(plan, inputs, options);
  run.run_all();
  CoresResult result = run.result();
  // Two at a time would do for two processors; there are at most as many as cores.
  for (std::size_t core = 0; core < alone.size(); ++core) {
    std::string order;
    for (const std::size_t task : run.tasks_of(core)) order += std::to_string(task) + " ";
    if (order.empty()) continue;
    alone[core].start(order);
  }
  for (std::size_t core = 0; core < alone.size(); ++core) {
    if (result.cores[core].tasks != 0) take_alone(result.cores[core], alone[core].result());
  }
  return result;
}

}  // namespace systole::testbench
