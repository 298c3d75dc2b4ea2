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
#include "tlm/common/observer.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

/// Compares every tile that leaves the post-op unit, as it is in simulated memory when its
/// command has completed, with the reference, byte for byte. Not later: as soon as the readers of a
/// tile are done, another operator may write over it, even before the last tile of this one is
/// complete.
class Checker {
 public:
  Checker(const model::Graph& graph, tlm_model::System& system);

  /// The next inference runs on this input, by the program of this mapping, which outlives it.
  /// `progress` as of the reference, which computes what is expected.
  void begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
             const std::function<void(std::size_t nodes)>& progress);
  void on_command(const tlm_model::CommandTrace& trace);
  [[nodiscard]] const CheckResult& result() const noexcept { return result_; }

 private:
  /// A row of a result from byte `first` on.
  void compare(std::uint32_t op, std::uint64_t row, std::uint64_t first, const std::uint8_t* found,
               const std::uint8_t* expected, std::size_t bytes);

  const model::Graph& graph_;
  const mapper::Mapping* mapping_ = nullptr;
  tlm_model::System& system_;
  model::Reference reference_;
  CheckResult result_;
  std::size_t inference_ = 0;
  std::vector<std::uint32_t> left_;       ///< by operator: commands that have not completed
  std::vector<std::uint64_t> ring_rows_;  ///< by operator whose result is a ring: rows so far
};

Checker::Checker(const model::Graph& graph, tlm_model::System& system)
    : graph_(graph), system_(system), reference_(graph, {graph_is_large(graph), false}) {}

void Checker::begin(const mapper::Mapping& mapping, const std::vector<std::uint8_t>& input,
                    const std::function<void(std::size_t nodes)>& progress) {
  mapping_ = &mapping;
  ring_rows_.assign(mapping.program.operators.size(), 0);
  left_.assign(mapping.program.operators.size(), 0);
  for (const hw::Command& command : mapping.program.commands) {
    if (command.opcode() != hw::Opcode::kEnd) ++left_[command.op];
  }
  const model::Tensor& tensor = graph_.tensors[input_tensor(graph_)];
  reference_.set_input(tensor.name, widen(input, tensor.type));
  reference_.run(progress);
  ++inference_;
}

namespace {

/// Where a command leaves its result.
struct WrittenTile {
  bool stays = false;  ///< in the scratchpad
  std::uint64_t begin = 0, rows = 0, row_bytes = 0;
};

/// Nothing: it leaves none. `element`: bytes of an element of the operator's result.
std::optional<WrittenTile> written_by(const hw::Command& command, const hw::Program& program,
                                      std::size_t element) {
  const auto tile = [](bool stays, std::uint64_t begin, const hw::WrittenRows& rows) {
    return WrittenTile{stays, begin, rows.rows, rows.bytes};
  };
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    return tile(false, store->to.address, hw::written_rows(*store, program));
  }
  if (const auto* const move = command.as<hw::cmd::Move>()) {
    return tile(true, move->to.address, hw::written_rows(*move, program));
  }
  if (const auto* const loop = command.as<hw::cmd::Loop>(); loop && loop->c.address != 0) {
    return tile(false, loop->c.address, hw::written_rows(*loop, program));
  }
  if (const auto* const attention = command.as<hw::cmd::Attention>()) {
    return tile(false, attention->out.address,
                {attention->queries, std::size_t{attention->heads} * attention->n * element});
  }
  if (const auto* const call = command.as<hw::cmd::HostCall>()) {
    return tile(false, call->out.address, {call->m, call->n * element});
  }
  return std::nullopt;
}

}  // namespace

void Checker::on_command(const tlm_model::CommandTrace& trace) {
  const hw::Command& command = mapping_->program.commands[trace.index];
  if (--left_[command.op] == 0) ++result_.operators;
  const hw::Operator& result = mapping_->program.operators[command.op];
  const model::View& view = mapping_->groups[command.op].written();
  const std::size_t element = hw::bytes_of(result.type);
  const std::optional<WrittenTile> written = written_by(command, mapping_->program, element);
  if (!written) return;
  const auto [stays, begin, rows, row_bytes] = *written;
  const std::size_t tensor_row_bytes = graph_.tensors[view.tensor].cols * element;
  const std::vector<std::uint8_t>& expected = reference_.bytes(view.tensor);
  std::vector<std::uint8_t> found(row_bytes);
  const auto first_of = [&](std::uint64_t at) {
    // A ring's first row tile need not have its lowest slot.
    const auto pitch = static_cast<std::int64_t>(result.pitch);
    const std::int64_t offset = static_cast<std::int64_t>(at - result.address) % pitch;
    return static_cast<std::uint64_t>(offset < 0 ? offset + pitch : offset);
  };
  // Rows of a ring arrive in order, from the first column on.
  const bool ring = result.place == hw::Operator::Place::kRing;
  std::uint64_t ring_row = 0;
  if (ring) {
    std::uint64_t& done = ring_rows_[command.op];
    if (first_of(begin) == 0) done += rows;
    ring_row = done - rows;
  }
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t at = begin + i * result.pitch;
    if (stays) {
      std::memcpy(found.data(), system_.core.memory.scratchpad.data() + at, row_bytes);
    } else {
      system_.peek(at, found.data(), row_bytes);
    }
    const std::uint64_t row = ring ? ring_row + i : (at - result.address) / result.pitch;
    const std::uint64_t first = first_of(at);
    const std::size_t offset = view.row * tensor_row_bytes + view.col * element +
                               row * view.pitch(graph_.tensors[view.tensor].cols) * element + first;
    compare(command.op, row, first, found.data(), &expected[offset], row_bytes);
  }
}

void Checker::compare(std::uint32_t op, std::uint64_t row, std::uint64_t first,
                      const std::uint8_t* found, const std::uint8_t* expected, std::size_t bytes) {
  result_.bytes += bytes;
  if (std::memcmp(found, expected, bytes) == 0) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (found[i] == expected[i]) continue;
    if (result_.mismatches++ == 0) {
      result_.first = "inference " + std::to_string(inference_ - 1) + ", " +
                      mapping_->program.operators[op].name + ", row " + std::to_string(row) +
                      ", byte " + std::to_string(first + i) + ": found " +
                      std::to_string(found[i]) + ", expected " + std::to_string(expected[i]);
    }
  }
}

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
    if (options.functional && input.size() != subject.input.bytes()) {
      throw hw::InputError("input of " + std::to_string(input.size()) + " bytes: " + subject.name +
                           " takes " + std::to_string(subject.input.bytes()));
    }
  }
  const hw::Program& first = *subject.program;
  tlm_model::System system("system", machine, std::move(engines), subject.address, *subject.image,
                           first.host_functions, options.functional);
  tlm_model::CommandProcessor& processor = system.core.processor;
  std::unique_ptr<Checker> checker;
  if (options.check && options.functional && subject.graph != nullptr) {
    checker = std::make_unique<Checker>(*subject.graph, system);
    processor.observe([&](const tlm_model::CommandTrace& trace) { checker->on_command(trace); });
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
  CommandCount count(options, inputs.size());
  if (options.progress) {
    processor.observe([&](const tlm_model::CommandTrace&) { count.end_command(); });
  }

  std::unique_ptr<Wave> wave;
  std::size_t next = 0;
  const auto prepare = [&](tlm_model::Host::Job& job) {
    if (next == inputs.size()) return false;
    if (options.next_step) {
      subject.take(options.next_step(next));
      system.exchange_program(*subject.image, subject.program->host_functions);
    }
    count.begin(subject.program->commands.size(), inputs.size() - next);
    if (subject.graph != nullptr) {
      const bool same_graph = !options.next_step && !result.bounds.empty();
      result.bounds.push_back(same_graph ? result.bounds.back()
                                         : analysis::lower_bound(*subject.graph, machine).cycles());
    }
    const auto& input = inputs[next++];
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
