#include "testbench/cores/cores_run.h"

#include <algorithm>
#include <utility>

#include "testbench/explain/critical_path.h"
#include "testbench/explain/explanation.h"
#include "testbench/network/tensors.h"
#include "testbench/wave/wave.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;
using tlm_model::Host;

/// Longer than any run: for the names of accounts.
constexpr std::uint64_t kNever = ~std::uint64_t{0} >> 1;

}  // namespace

CoresRun::CoresRun(const CorePlan& plan, const std::vector<std::vector<std::uint8_t>>& inputs,
                   const CoresOptions& options)
    : plan_(plan),
      inputs_(inputs),
      options_(options),
      count_(options.progress, inputs.size()),
      references_(*plan.graph, inputs, plan.move, count_),
      recorder_(*plan.graph, options.functional ? options.tensors : std::vector<model::TensorId>{},
                inputs.size()) {
  make_system();
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

void CoresRun::make_system() {
  std::vector<tlm_model::CorePlace> places;
  std::vector<tlm_model::System::Software> software;
  std::vector<const hw::MemoryImage*> images;
  for (const CoreProgram& program : plan_.programs) images.push_back(&program.mapping->image);
  for (std::size_t i = 0; i < plan_.system.cores.size(); ++i) {
    const hw::CoreSite& site = plan_.system.cores[i];
    places.push_back({site.name, site.machine,
                      options_.engines ? options_.engines(i) : tlm_model::make_models(site.machine),
                      site.registers, site.link_ns});
    const mapper::Mapping& first = *plan_.programs[first_program(i)].mapping;
    software.push_back({first.program_address, &first.program.host_functions});
  }
  if (options_.ring == nullptr) {
    system_ = std::make_unique<tlm_model::System>("system", plan_.system.machine, std::move(places),
                                                  software, std::move(images), options_.functional);
    system_->set_threads(options_.threads);  // a ring has direct access to memory
    return;
  }
  ring_ = std::make_unique<RingBeside>(*options_.ring, options_.functional);
  images.push_back(&ring_->image());
  auto mixed = std::make_unique<tlm_model::MixedSystem>(
      "system", plan_.system.machine, std::move(places), software, std::move(images),
      options_.functional, ring_->site());
  ring_->attach(*mixed);
  system_ = std::move(mixed);
}

std::vector<std::size_t> CoresRun::tasks_of(std::size_t index) const {
  if (index < states_.size()) return states_[index].tasks;
  return std::vector<std::size_t>(ring_->share().tasks);
}

void CoresRun::run_alone(std::size_t index, std::vector<std::size_t> tasks) {
  if (ring_) ring_->set_running(index == states_.size());
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

void CoresRun::run_all() {
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
      cores.push_back({states_.size() == 1 && !ring_ ? "" : name, &shown_[state.index].program()});
    }
    if (ring_) {
      for (WaveCore& core : ring_->wave_cores()) cores.push_back(std::move(core));
    }
    wave = std::make_unique<Wave>(options_.wave, std::move(cores),
                                  plan_.system.cores.front().machine.core.clock_mhz);
  }
  wave_ = wave.get();
  run_ = run_machine(*system_);
  wave_ = nullptr;
  if (!wave) return;
  wave->open_on_first_operator(states_.front().first.traces,
                               plan_.system.cores.front().machine.core.clock_mhz);
  wave->write();
  wave_is_cut_short_ = wave->is_cut_short();
}

void CoresRun::add_core(std::size_t index) {
  CoreState& state = states_.emplace_back();
  state.index = index;
  state.core = system_->cores[index].core.get();
  state.clock = &system_->cores[index].clock;
  state.names = state.core->reports(kNever);
  shown_.emplace_back(plan_, index);
  for (const CoreProgram& program : plan_.programs) {
    const bool own = options_.functional && program.core == index;
    state.checkers.push_back(own && options_.check ? std::make_unique<Checker>(program.origins)
                                                   : nullptr);
    state.rows.push_back(own && (options_.check || recorder_.keeps_any())
                             ? std::make_unique<ResultRows>(*program.graph, *system_, *state.core)
                             : nullptr);
  }
}

CoresRun::~CoresRun() {
  if (system_) system_->values.stop();
}

void CoresRun::await_checks() {
  if (options_.check || recorder_.keeps_any()) system_->values.await();
}

void CoresRun::observe(CoreState& state) {
  state.core->processor.observe([this, &state](const CommandTrace& trace) {
    state.traces[trace.index] = trace;
    const std::size_t at = static_cast<std::size_t>(state.program - plan_.programs.data());
    if (ResultRows* const rows = state.rows[at].get()) {
      system_->values.post([this, rows, checker = state.checkers[at].get(), op = trace.op,
                            index = trace.index, program = state.program,
                            inference = plan_.tasks[state.task].inference] {
        if (checker != nullptr) checker->end_command(op);
        rows->read(index, [&](const WrittenRow& row) {
          if (checker != nullptr) checker->compare(row);
          recorder_.keep(row, program->origins, inference);
        });
      });
    }
    if (options_.observer) options_.observer(state.index, trace);
    if (options_.progress) count_.end_command();
  });
}

std::optional<std::size_t> CoresRun::next_task(const CoreState& state) {
  for (std::size_t i = 0; i < plan_.tasks.size(); ++i) {
    if (taken_[i]) continue;
    const CoreTask& task = plan_.tasks[i];
    if (task.program && plan_.programs[*task.program].core != state.index) continue;
    taken_[i] = true;
    return i;
  }
  return std::nullopt;
}

void CoresRun::wait_for(CoreState& state, std::size_t index) {
  const std::uint64_t since = now_of(state);
  for (const std::size_t before : plan_.tasks[index].after) {
    while (!task_done_[before]) sc_core::wait(done_);
  }
  state.wait += now_of(state) - since;
}

std::uint64_t CoresRun::now_of(const CoreState& state) {
  return state.clock->cycle_from(sc_core::sc_time_stamp());
}

void CoresRun::begin(CoreState& state, std::size_t index, Host::Job& job) {
  await_checks();
  if (state.tasks.empty()) observe(state);
  const CoreTask& task = plan_.tasks[index];
  state.task = index;
  state.tasks.push_back(index);
  const std::size_t at = program_of(state, task);
  state.program = &plan_.programs[at];
  const mapper::Mapping& mapping = *state.program->mapping;
  if (options_.on_task) options_.on_task(state.index, mapping.program, task.inference);
  const ShownPrograms::Place& shown = shown_[state.index].place(at);
  state.core->processor.show_from(shown.op, shown.command);
  state.traces.assign(mapping.program.commands.size() - 1, {});
  if (ResultRows* const rows = state.rows[at].get()) rows->begin(mapping);
  if (Checker* const checker = state.checkers[at].get()) {
    checker->begin(mapping, references_.of(task.inference), task.inference);
  }
  if (task.program) job.program = mapping.program_address;
  system_->hosts[state.index]->set_functions(mapping.program.host_functions);
  if (state.program->input) {
    job.inputs = host_buffers(*state.program->input,
                              options_.functional ? &inputs_[task.inference] : nullptr);
  }
  if (state.program->output) job.outputs = host_buffers(*state.program->output, nullptr);
}

std::size_t CoresRun::program_of(const CoreState& state, const CoreTask& task) const {
  return task.program ? *task.program : first_program(state.index);
}

std::size_t CoresRun::first_program(std::size_t core) const {
  const auto found = std::find_if(plan_.programs.begin(), plan_.programs.end(),
                                  [&](const CoreProgram& one) { return one.core == core; });
  return static_cast<std::size_t>(found - plan_.programs.begin());
}

void CoresRun::deliver(CoreState& state, const Host::Job& job) {
  const std::size_t inference = plan_.tasks[state.task].inference;
  const tlm_model::CommandProcessor& processor = state.core->processor;
  const hw::Program& program = state.program->mapping->program;
  if (fault_.empty()) fault_ = processor.fault();
  state.running += job.cycles;
  const std::vector<PathStep> path =
      critical_path(state.traces, processor.start_cycle(), processor.finish_cycle());
  for (const PathCause& cause : causes_of(path, state.traces, state.names)) {
    state.path[{cause.unit, cause.cause, cause.meaning}] += cause.cycles;
  }
  for (const hw::Operator& op : program.operators) state.macs += op.macs;
  commands_ += program.commands.size();
  take_times(state, inference);
  if (inference == 0) {
    const ClassCycles classes =
        share_by_class(program, state.traces, plan_.system.cores[state.index].machine);
    for (std::size_t i = 0; i < kTimeClasses; ++i) classes_.cycles[i] += classes.cycles[i];
  }
  if (state.tasks.size() == 1) {
    state.first = {&program, state.traces, state.names, processor.start_cycle(),
                   processor.finish_cycle()};
  }
  if (state.program->output) take_output(*state.program, inference, job);
  task_done_[state.task] = true;
  done_.notify();
  if (--left_[inference] == 0) {
    await_checks();
    references_.end(inference);
    count_.end_inference();
    if (wave_ != nullptr) wave_->end_inference();
  }
}

void CoresRun::take_times(CoreState& state, std::size_t inference) {
  const tlm_model::CommandProcessor& processor = state.core->processor;
  const std::uint64_t begun = state.clock->edge_ps(processor.start_cycle());
  if (begun_ps_[inference] == 0 || begun < begun_ps_[inference]) begun_ps_[inference] = begun;
  ended_ps_[inference] =
      std::max(ended_ps_[inference], state.clock->edge_ps(processor.finish_cycle()));
}

void CoresRun::take_output(const CoreProgram& program, std::size_t inference,
                           const Host::Job& job) {
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

bool CoresRun::end(CoreState& state) {
  state.finished = now_of(state);
  return false;
}

}  // namespace systole::testbench
