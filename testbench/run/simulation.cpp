#include "testbench/run/simulation.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <systemc>
#include <utility>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "testbench/network/tensors.h"
#include "testbench/run/checker.h"
#include "testbench/run/energy_events.h"
#include "testbench/run/operator_timing.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

/// Passes everything on to each of its observers.
class Broadcast final : public tlm_model::Observer {
 public:
  void add(tlm_model::Observer* observer) {
    if (observer != nullptr) observers_.push_back(observer);
  }
  void on_command(const tlm_model::CommandTrace& trace) override {
    for (auto* observer : observers_) observer->on_command(trace);
  }
  void on_operator(std::uint32_t op, std::uint64_t cycle) override {
    for (auto* observer : observers_) observer->on_operator(op, cycle);
  }

 private:
  std::vector<tlm_model::Observer*> observers_;
};

/// Counts the operators of the reference, then the commands that have completed.
class CommandCount final : public tlm_model::Observer {
 public:
  CommandCount(const SimulationOptions& options, std::size_t inferences)
      : progress_(options.progress) {
    now_.all_inferences = inferences;
  }
  /// What runs next: `commands` in each of the `left` inferences to come.
  void begin(std::size_t commands, std::size_t left) {
    now_.all_commands = now_.commands + std::uint64_t{commands} * left;
  }
  /// Of the reference, before the commands.
  void reference(std::size_t done, std::size_t total) {
    now_.operators = done;
    now_.all_operators = total;
    if (progress_) progress_(now_);
    now_.all_operators = 0;
  }
  void end_inference() { ++now_.inferences; }
  void on_command(const tlm_model::CommandTrace&) override {
    ++now_.commands;
    if (progress_) progress_(now_);
  }
  void on_operator(std::uint32_t, std::uint64_t) override {}

 private:
  const std::function<void(const SimulationProgress&)>& progress_;
  SimulationProgress now_;
};

/// A tensor in DRAM as the host sees it: rows at a pitch.
std::vector<tlm_model::Host::Buffer> host_buffers(const model::Tensor& tensor,
                                                  const mapper::Location& location,
                                                  const std::vector<std::uint8_t>* bytes) {
  const std::size_t row_bytes = tensor.bytes() / tensor.rows;
  std::vector<tlm_model::Host::Buffer> buffers;
  for (std::uint32_t row = 0; row < tensor.rows; ++row) {
    std::vector<std::uint8_t> data(row_bytes);
    if (bytes != nullptr) std::copy_n(bytes->data() + row * row_bytes, row_bytes, data.begin());
    buffers.push_back({location.address + std::uint64_t{row} * location.pitch, std::move(data)});
  }
  return buffers;
}

}  // namespace

SimulationResult simulate(const model::Graph& graph, const mapper::Mapping& mapping,
                          const hw::Machine& machine, tlm_model::Engines engines,
                          const std::vector<std::vector<std::uint8_t>>& inputs,
                          const SimulationOptions& options) {
  const model::TensorId in = input_tensor(graph), out = output_tensor(graph);
  for (const auto& input : inputs) {
    if (options.functional && input.size() != graph.tensors[in].bytes()) {
      throw hw::InputError("input of " + std::to_string(input.size()) + " bytes: " + graph.name +
                           " takes " + std::to_string(graph.tensors[in].bytes()));
    }
  }
  tlm_model::System system("system", machine, std::move(engines), mapping.program,
                           mapping.program_address, mapping.image, options.functional);
  Broadcast observers;
  std::unique_ptr<Checker> checker;
  if (options.check && options.functional) {
    checker = std::make_unique<Checker>(graph, system);
    observers.add(checker.get());
  }
  TraceLog log(mapping.program);
  observers.add(&log);
  observers.add(options.observer);
  CommandCount count(options, inputs.size());
  if (options.progress) observers.add(&count);
  system.core.processor.set_observer(&observers);

  SimulationResult result;
  std::unique_ptr<Wave> wave;
  std::size_t next = 0;
  const mapper::Mapping* current = &mapping;
  const auto prepare = [&](tlm_model::Host::Job& job) {
    if (next == inputs.size()) return false;
    if (options.next_step) {
      current = &options.next_step(next);
      system.exchange_program(current->program, current->image.back());
    }
    count.begin(current->program.commands.size(), inputs.size() - next);
    const bool same_graph = !options.next_step && !result.bounds.empty();
    result.bounds.push_back(same_graph ? result.bounds.back()
                                       : analysis::lower_bound(graph, machine).cycles());
    const auto& input = inputs[next++];
    if (checker) {
      checker->begin(*current, input,
                     [&](std::size_t nodes) { count.reference(nodes, graph.nodes.size()); });
    }
    // Without values too: what the host moves takes time and leaves DRAM rows open.
    job.inputs =
        host_buffers(graph.tensors[in], mapping.tensors[in], options.functional ? &input : nullptr);
    job.outputs = host_buffers(graph.tensors[out], mapping.tensors[out], nullptr);
    return true;
  };
  const auto deliver = [&](const tlm_model::Host::Job& job) {
    result.cycles.push_back(job.cycles);
    std::vector<std::uint8_t> bytes;
    for (const auto& buffer : job.outputs) {
      bytes.insert(bytes.end(), buffer.bytes.begin(), buffer.bytes.end());
    }
    result.outputs.push_back(std::move(bytes));
    result.commands += current->program.commands.size();
    if (wave) wave->end_inference();
    count.end_inference();
  };
  system.host.set_work(prepare, deliver);

  if (!options.wave.path.empty()) {
    wave = std::make_unique<Wave>(options.wave, mapping.program, machine.core.clock_mhz);
  }
  const auto begin = std::chrono::steady_clock::now();
  sc_core::sc_start();
  result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.total_cycles = system.core.processor.cycle();
  result.kernel_events = sc_core::sc_delta_count();
  result.blocks = system.reports();
  std::vector<tlm_model::CommandTrace> traces = log.traces();
  traces.pop_back();
  result.classes = share_by_class(mapping.program, traces, machine);
  result.events = energy_events(system);
  if (checker) result.check = checker->result();
  return result;
}

}  // namespace systole::testbench
