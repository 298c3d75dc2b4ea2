#include "testbench/run/simulation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/network/tensors.h"
#include "testbench/run/result_rows.h"
#include "testbench/run/run_checks.h"
#include "testbench/run/tensor_file.h"
#include "tlm/common/observer.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

/// What a machine runs, and what it came from.
struct Subject {
  const hw::Program* program;
  std::uint64_t address;  ///< of its header
  const hw::MemoryImage* image;
  mapper::TensorPlace input, output;
  std::string name;
  const model::Graph* graph = nullptr;       ///< null: of a program file
  const mapper::Mapping* mapping = nullptr;  ///< of the graph

  void take(const mapper::Mapping& other) {
    mapping = &other;
    program = &other.program;
    address = other.program_address;
    image = &other.image;
    input = mapper::place_of(*graph, other, input_tensor(*graph));
    output = mapper::place_of(*graph, other, output_tensor(*graph));
  }
};

/// Ends the actions of a queue with this scope.
class QueueEnd {
 public:
  explicit QueueEnd(tlm_model::ValueQueue& queue) : queue_(queue) {}
  QueueEnd(const QueueEnd&) = delete;
  QueueEnd& operator=(const QueueEnd&) = delete;
  ~QueueEnd() { queue_.stop(); }

 private:
  tlm_model::ValueQueue& queue_;
};

/// A program of its own may keep on chip what that of another inference leaves in memory.
void require_left_in_memory(const std::vector<model::TensorId>& tensors, const model::Graph& graph,
                            const mapper::Mapping& mapping) {
  const std::vector<bool> left = written_tensors(graph, mapping);
  for (const model::TensorId tensor : tensors) {
    if (left[tensor]) continue;
    throw hw::InputError("--tensors: '" + graph.tensors[tensor].name +
                         "' stays on chip in some inferences, expected others");
  }
}

SimulationResult simulate(Subject subject, const hw::Machine& machine, tlm_model::Engines engines,
                          const std::vector<std::vector<std::uint8_t>>& inputs,
                          const SimulationOptions& options) {
  if (options.functional && !options.next_input) {
    check_input_sizes(inputs, subject.name, subject.input.bytes());
  }
  const hw::Program& first = *subject.program;
  const hw::MemoryImage later;
  tlm_model::System system("system", machine, std::move(engines), subject.address,
                           options.take_image ? later : *subject.image, first.host_functions,
                           options.functional);
  system.set_threads(options.threads);
  tlm_model::CommandProcessor& processor = system.core.processor;
  std::unique_ptr<Checker> checker;
  std::optional<model::Reference> reference;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<ResultRows> rows;
  if (options.functional && subject.graph != nullptr) {
    if (options.check) {
      checker = std::make_unique<Checker>();
      reference.emplace(*subject.graph, reference_options(*subject.graph));
    }
    if (!options.tensors.empty()) {
      recorder = std::make_unique<Recorder>(*subject.graph, options.tensors);
    }
  }
  // What is used beside the simulation must not go before it has ended.
  const QueueEnd queue_end(system.values);
  if (checker || recorder) {
    rows = std::make_unique<ResultRows>(*subject.graph, system, system.core);
    processor.observe([&](const tlm_model::CommandTrace& trace) {
      system.values.post([&, index = trace.index] {
        if (checker) checker->end_command(subject.program->commands[index].op);
        rows->read(index, [&](const WrittenRow& row) {
          if (checker) checker->compare(row);
          if (recorder) recorder->keep(row);
        });
      });
    });
  }
  SimulationResult result;
  std::size_t left = first.commands.size() - 1;
  const bool keep_traces = options.keep_traces || !options.wave.path.empty();
  if (keep_traces) result.traces.resize(left);
  auto sharing = std::make_unique<ClassSharing>(first, machine);
  hw::EnergyEvents by_host;  // up to its last command
  processor.observe([&](const tlm_model::CommandTrace& trace) {
    if (left == 0 || !sharing) return;
    --left;
    sharing->add(trace);
    if (!keep_traces) return;
    tlm_model::CommandTrace& kept = result.traces[trace.index] = trace;
    if (trace.unit != hw::Unit::kHost) return;
    const hw::EnergyEvents now = system.host_events();
    kept.events = now.since(by_host);
    by_host = now;
  });
  if (options.observer) processor.observe(options.observer);
  for (const auto& observer : options.bus_observers) system.bus.observe(observer);
  CommandCount count(options.progress, inputs.size());
  if (options.progress) {
    processor.observe([&](const tlm_model::CommandTrace&) { count.end_command(); });
  }

  hw::Program waved;  // the first, to the end
  std::unique_ptr<Wave> wave;
  std::size_t next = 0;
  std::vector<std::uint8_t> made;
  std::string fault;  // of the first inference that had one
  const auto prepare = [&](tlm_model::Host::Job& job) {
    system.values.await();  // what follows changes what they use
    if (next == inputs.size()) return false;
    if (options.next_input) {
      std::optional<std::vector<std::uint8_t>> bytes = options.next_input(result.outputs);
      if (!bytes) return false;
      made = std::move(*bytes);
    }
    if (options.next_step) {
      // Memory that is free by then need not be taken for the mapping.
      if (options.unread) {
        const auto [begin, end] = options.unread(next);
        system.forget(begin, end);
      }
      subject.take(options.next_step(next));
      system.exchange_program(options.take_image ? options.take_image() : *subject.image,
                              subject.program->host_functions);
    }
    count.begin(subject.program->commands.size(), inputs.size() - next);
    if (subject.graph != nullptr && options.bounds) {
      const bool same_graph = !options.next_step && !result.bounds.empty();
      result.bounds.push_back(same_graph ? result.bounds.back()
                                         : analysis::lower_bound(*subject.graph, machine).cycles());
    }
    const auto& input = options.next_input ? made : inputs[next];
    if (rows) rows->begin(*subject.mapping);
    if (recorder) {
      if (options.next_step)
        require_left_in_memory(options.tensors, *subject.graph, *subject.mapping);
      recorder->begin();
    }
    if (checker) {
      checker->begin(*subject.mapping, *reference, next);
      system.values.post([&] {
        run_reference(*reference, *subject.graph, input, [&](std::size_t nodes) {
          // Beside the simulation, its commands are what is counted.
          if (options.threads == 1) count.reference(nodes, subject.graph->nodes.size());
        });
      });
    }
    ++next;
    // Without values too: what the host moves takes time and leaves DRAM rows open.
    job.inputs = host_buffers(subject.input, options.functional ? &input : nullptr);
    job.outputs = host_buffers(subject.output, nullptr);
    return true;
  };
  const auto deliver = [&](const tlm_model::Host::Job& job) {
    if (result.cycles.empty()) {
      result.started = processor.start_cycle();
      result.finished = processor.finish_cycle();
      result.classes = sharing->share();
      sharing = nullptr;
    }
    if (fault.empty()) fault = processor.fault();
    result.cycles.push_back(job.cycles);
    if (result.cycles.size() == options.first_inferences) {
      result.first_events = system.energy_events();
    }
    if (!options.keep_outputs) result.outputs.clear();
    if (options.functional) result.outputs.push_back(bytes_of(job.outputs));
    result.commands += subject.program->commands.size();
    if (wave) wave->end_inference();
    count.end_inference();
  };
  system.host.set_work(prepare, deliver);

  if (!options.wave.path.empty()) {
    waved = first;
    wave = std::make_unique<Wave>(options.wave, waved, machine.core.clock_mhz);
  }
  static_cast<MachineRun&>(result) = run_machine(system);
  if (wave) {
    wave->open_on_first_operator(result.traces, machine.core.clock_mhz);
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  if (!fault.empty()) throw hw::InputError("program: " + fault);
  result.total_cycles = processor.cycle();
  result.traffic = system.core_traffic();
  result.events = system.energy_events();
  if (checker) result.check = checker->result();
  if (recorder) result.tensors = recorder->take();
  return result;
}

}  // namespace

SimulationResult simulate(const model::Graph& graph, const mapper::Mapping& mapping,
                          const hw::Machine& machine, tlm_model::Engines engines,
                          const std::vector<std::vector<std::uint8_t>>& inputs,
                          const SimulationOptions& options) {
  Subject subject{nullptr, 0, nullptr, {}, {}, graph.name, &graph};
  subject.take(mapping);
  return simulate(std::move(subject), machine, std::move(engines), inputs, options);
}

SimulationResult simulate(const mapper::LoadableProgram& loaded, tlm_model::Engines engines,
                          const std::vector<std::vector<std::uint8_t>>& inputs,
                          const SimulationOptions& options) {
  return simulate(
      {&loaded.program, loaded.address, &loaded.image, loaded.input, loaded.output, loaded.network},
      loaded.machine, std::move(engines), inputs, options);
}

}  // namespace systole::testbench
