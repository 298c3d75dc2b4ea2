#include "testbench/run/simulation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
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
#include "tlm/common/observer.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

/// Compares every tile that leaves the post-op unit with the reference, byte for byte.
class Checker {
 public:
  explicit Checker(const model::Graph& graph)
      : graph_(graph), reference_(graph, {graph_is_large(graph), false}) {}

  /// The next inference runs on this input, by the program of this mapping, which outlives it.
  /// `progress` as of the reference, which computes what is expected.
  void begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
             const std::function<void(std::size_t nodes)>& progress);
  void end_command(std::uint32_t op);
  void compare(const ResultRow& row);
  [[nodiscard]] const CheckResult& result() const noexcept { return result_; }

 private:
  const model::Graph& graph_;
  const mapper::Mapping* mapping_ = nullptr;
  model::Reference reference_;
  CheckResult result_;
  std::size_t inference_ = 0;
  std::vector<std::uint64_t> left_;  ///< by operator: commands that have not completed
};

void Checker::begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
                    const std::function<void(std::size_t nodes)>& progress) {
  mapping_ = &mapping;
  left_.assign(mapping.program.operators.size(), 0);
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode() != hw::Opcode::kEnd) ++left_[command.op];
  }
  const model::Tensor& tensor = graph_.tensors[input_tensor(graph_)];
  reference_.set_input(tensor.name, widen(input, tensor.type));
  reference_.run(progress);
  ++inference_;
}

void Checker::end_command(std::uint32_t op) {
  if (--left_[op] == 0) ++result_.operators;
}

void Checker::compare(const ResultRow& row) {
  const std::size_t bytes = row.bytes.size();
  const std::uint8_t* const expected = reference_.bytes(row.tensor).data() + row.offset;
  result_.bytes += bytes;
  if (std::memcmp(row.bytes.data(), expected, bytes) == 0) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (row.bytes[i] == expected[i]) continue;
    if (result_.mismatches++ == 0) {
      result_.first = "inference " + std::to_string(inference_ - 1) + ", " +
                      mapping_->program.operators[row.op].name + ", row " +
                      std::to_string(row.row) + ", byte " + std::to_string(row.first + i) +
                      ": found " + std::to_string(row.bytes[i]) + ", expected " +
                      std::to_string(expected[i]);
    }
  }
}

/// Keeps tensors as commands leave them in memory, inference after inference.
class Recorder {
 public:
  Recorder(const model::Graph& graph, const std::vector<model::TensorId>& tensors)
      : kept_(tensors.size()), index_(graph.tensors.size(), tensors.size()) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      index_.at(tensors[i]) = i;
      const model::Tensor& tensor = graph.tensors[tensors[i]];
      bytes_.push_back(std::size_t{tensor.rows} * tensor.cols * hw::bytes_of(tensor.type));
    }
  }

  void begin() {
    for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i].emplace_back(bytes_[i]);
  }
  void keep(const ResultRow& row) {
    const std::size_t i = index_[row.tensor];
    if (i == kept_.size()) return;
    std::copy(row.bytes.begin(), row.bytes.end(),
              kept_[i].back().begin() + static_cast<std::ptrdiff_t>(row.offset));
  }
  [[nodiscard]] std::vector<std::vector<std::vector<std::uint8_t>>> take() {
    return std::move(kept_);
  }

 private:
  std::vector<std::vector<std::vector<std::uint8_t>>> kept_;  ///< by tensor and inference
  std::vector<std::size_t> index_;  ///< in `kept_`, by tensor of the graph
  std::vector<std::size_t> bytes_;  ///< of each tensor kept
};

/// Counts the operators of the reference, then the commands that have completed.
class CommandCount {
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
  void end_command() {
    ++now_.commands;
    if (progress_) progress_(now_);
  }

 private:
  const std::function<void(const SimulationProgress&)>& progress_;
  SimulationProgress now_;
};

/// A tensor in DRAM as the host sees it: rows at a pitch.
std::vector<tlm_model::Host::Buffer> host_buffers(const mapper::TensorPlace& place,
                                                  const std::vector<std::uint8_t>* bytes) {
  const std::size_t row_bytes = place.row_bytes();
  std::vector<tlm_model::Host::Buffer> buffers;
  for (std::uint32_t row = 0; row < place.rows; ++row) {
    std::vector<std::uint8_t> data(row_bytes);
    if (bytes != nullptr) std::copy_n(bytes->data() + row * row_bytes, row_bytes, data.begin());
    buffers.push_back({place.address + std::uint64_t{row} * place.pitch, std::move(data)});
  }
  return buffers;
}

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

SimulationResult simulate(Subject subject, const hw::Machine& machine, tlm_model::Engines engines,
                          const std::vector<std::vector<std::uint8_t>>& inputs,
                          const SimulationOptions& options) {
  for (const auto& input : inputs) {
    if (options.functional && !options.next_input && input.size() != subject.input.bytes()) {
      throw hw::InputError("input of " + std::to_string(input.size()) + " bytes: " + subject.name +
                           " takes " + std::to_string(subject.input.bytes()));
    }
  }
  const hw::Program& first = *subject.program;
  tlm_model::System system("system", machine, std::move(engines), subject.address, *subject.image,
                           first.host_functions, options.functional);
  tlm_model::CommandProcessor& processor = system.core.processor;
  std::unique_ptr<Checker> checker;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<ResultRows> rows;
  if (options.functional && subject.graph != nullptr) {
    if (options.check) checker = std::make_unique<Checker>(*subject.graph);
    if (!options.tensors.empty()) {
      recorder = std::make_unique<Recorder>(*subject.graph, options.tensors);
    }
  }
  if (checker || recorder) {
    rows = std::make_unique<ResultRows>(*subject.graph, system);
    processor.observe([&](const tlm_model::CommandTrace& trace) {
      if (checker) checker->end_command(subject.program->commands[trace.index].op);
      rows->read(trace, [&](const ResultRow& row) {
        if (checker) checker->compare(row);
        if (recorder) recorder->keep(row);
      });
    });
  }
  SimulationResult result;
  result.traces.resize(first.commands.size() - 1);
  std::size_t left = result.traces.size();
  processor.observe([&](const tlm_model::CommandTrace& trace) {
    if (left == 0) return;
    result.traces[trace.index] = trace;
    --left;
  });
  if (options.observer) processor.observe(options.observer);
  for (const auto& observer : options.bus_observers) system.bus.observe(observer);
  CommandCount count(options, inputs.size());
  if (options.progress) {
    processor.observe([&](const tlm_model::CommandTrace&) { count.end_command(); });
  }

  std::unique_ptr<Wave> wave;
  std::size_t next = 0;
  std::vector<std::uint8_t> made;
  const auto prepare = [&](tlm_model::Host::Job& job) {
    if (next == inputs.size()) return false;
    if (options.next_input) {
      std::optional<std::vector<std::uint8_t>> bytes = options.next_input(result.outputs);
      if (!bytes) return false;
      made = std::move(*bytes);
    }
    if (options.next_step) {
      subject.take(options.next_step(next));
      system.exchange_program(*subject.image, subject.program->host_functions);
    }
    count.begin(subject.program->commands.size(), inputs.size() - next);
    if (subject.graph != nullptr && options.bounds) {
      const bool same_graph = !options.next_step && !result.bounds.empty();
      result.bounds.push_back(same_graph ? result.bounds.back()
                                         : analysis::lower_bound(*subject.graph, machine).cycles());
    }
    const auto& input = options.next_input ? made : inputs[next];
    ++next;
    if (rows) rows->begin(*subject.mapping);
    if (recorder) recorder->begin();
    if (checker) {
      checker->begin(*subject.mapping, input, [&](std::size_t nodes) {
        count.reference(nodes, subject.graph->nodes.size());
      });
    }
    // Without values too: what the host moves takes time and leaves DRAM rows open.
    job.inputs = host_buffers(subject.input, options.functional ? &input : nullptr);
    job.outputs = host_buffers(subject.output, nullptr);
    return true;
  };
  const auto deliver = [&](const tlm_model::Host::Job& job) {
    if (result.cycles.empty()) {
      result.started = processor.start_cycle();
      result.finished = processor.finish_cycle();
    }
    result.cycles.push_back(job.cycles);
    std::vector<std::uint8_t> bytes;
    for (const auto& buffer : job.outputs) {
      bytes.insert(bytes.end(), buffer.bytes.begin(), buffer.bytes.end());
    }
    result.outputs.push_back(std::move(bytes));
    result.commands += subject.program->commands.size();
    if (wave) wave->end_inference();
    count.end_inference();
  };
  system.host.set_work(prepare, deliver);

  if (!options.wave.path.empty()) {
    wave = std::make_unique<Wave>(options.wave, first, machine.core.clock_mhz);
  }
  static_cast<MachineRun&>(result) = run_machine(system);
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  if (const std::string& fault = processor.fault(); !fault.empty()) {
    throw hw::InputError("program: " + fault);
  }
  result.total_cycles = processor.cycle();
  result.traffic = system.core_traffic();
  result.classes = share_by_class(first, result.traces, machine);
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
