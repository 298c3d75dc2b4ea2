#include "testbench/wave/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "hw/dma/sum_loads.h"
#include "testbench/wave/wave_signals.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

// Rows from top to bottom. There are as many operator rows as overlap.
constexpr std::uint32_t kInferenceRow = 0;
constexpr std::uint32_t kUnitRows = 1;
constexpr std::uint32_t kOperatorRows = kUnitRows + hw::kUnits;

constexpr std::array<const char*, hw::kUnits> kUnitNames = {"load", "array", "post-op and store",
                                                            "host", "loop unroller"};
constexpr std::array<const char*, hw::dfx::kUnits> kRingUnitNames = {"matrix", "vector", "dma",
                                                                     "router"};

std::uint32_t row_of(hw::Unit unit) { return kUnitRows + static_cast<std::uint32_t>(unit); }

/// Quoted; bytes that are no UTF-8 become replacement characters.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What a command moves between memory and the core, tensor operands of its chain aside; or the
/// host. Rows that attention engines fetch depend on the mask: 0.
std::uint64_t moved_bytes(const hw::Command& command, const hw::Program& program) {
  const hw::CommandShape shape = hw::shape_of(command);
  const std::uint64_t elements = shape.m * shape.n;
  const auto bytes_of = [](const hw::WrittenRows& rows) { return rows.rows * rows.bytes; };
  if (const auto* const load = command.as<hw::cmd::Load>()) {
    const hw::ReadRows read = hw::read_rows(*load);
    return read.rows * read.bytes;
  }
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    return bytes_of(hw::written_rows(*store, program));
  }
  if (const auto* const loop = command.as<hw::cmd::Loop>()) {
    std::uint64_t bytes = shape.k * (shape.m + shape.n);
    if (loop->d.address != 0) bytes += elements * sizeof(std::int32_t);
    if (loop->c.address != 0) bytes += bytes_of(hw::written_rows(*loop, program));
    return bytes;
  }
  if (const auto* const call = command.as<hw::cmd::HostCall>()) {
    const hw::HostFunction& function = program.host_functions[call->function];
    const std::size_t second = hw::operands_of(function.op) > 1 ? hw::bytes_of(function.tensor) : 0;
    return elements * (hw::bytes_of(function.in) + second + hw::bytes_of(function.out));
  }
  return 0;
}

/// Tensor operands of the command's chain, from memory.
std::uint64_t operand_bytes(const hw::Command& command, const hw::Program& program) {
  const hw::ChainUse* const use = hw::chain_use(command);
  if (use == nullptr) return 0;
  const hw::CommandShape shape = hw::shape_of(command);
  std::uint64_t bytes = 0;
  for (const hw::DType type : hw::tensor_types(hw::chain_of(*use, program))) {
    bytes += shape.m * shape.n * hw::bytes_of(type);
  }
  return bytes;
}

}  // namespace

EventWriter::EventWriter(std::ostream& out, std::uint32_t core_mhz) : clock_(core_mhz), out_(out) {
  out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void EventWriter::put(const std::string& event) {
  out_ << (first_ ? "\n" : ",\n") << event;
  first_ = false;
}

void EventWriter::name_process(std::uint32_t process, const std::string& name) {
  put(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", process,
                  name));
}

void EventWriter::name_row(Row at, const std::string& name, bool sorted) {
  put(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                  at.process, at.row, name));
  if (!sorted) return;
  put(fmt::format(
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
      at.process, at.row));
}

std::string EventWriter::us(std::uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void EventWriter::slice(Row at, std::uint64_t begin, std::uint64_t end, const std::string& name,
                        const std::string& arguments) {
  put(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}})",
                  at.process, at.row, us(ns(begin)), us(ns(end) - ns(begin)), name, arguments));
}

void EventWriter::arrow(Row from, std::uint64_t leaves, Row to, std::uint64_t arrives) {
  const auto end = [&](const char* kind, Row at, std::uint64_t cycle) {
    put(fmt::format(R"({{{},"pid":{},"tid":{},"ts":{},"id":{},"name":"hazard","cat":"hazard"}})",
                    kind, at.process, at.row, us(ns(cycle)), arrows_));
  };
  end(R"("ph":"s")", from, leaves);
  end(R"("ph":"f","bp":"e")", to, arrives);
  ++arrows_;
}

void EventWriter::end() { out_ << "\n]}\n"; }

Timeline::Timeline(std::ostream& out, std::uint64_t inferences, const hw::Program& program,
                   std::uint32_t core_mhz)
    : Timeline(std::make_unique<EventWriter>(out, core_mhz), nullptr, 0, core_mhz, inferences,
               program) {
  name_rows("core 0");
}

Timeline::Timeline(EventWriter& events, std::uint32_t process, const std::string& name,
                   std::uint32_t core_mhz, std::uint64_t inferences, const hw::Program& program)
    : Timeline(nullptr, &events, process, core_mhz, inferences, program) {
  name_rows(name);
}

Timeline::Timeline(std::unique_ptr<EventWriter> own, EventWriter* events, std::uint32_t process,
                   std::uint32_t core_mhz, std::uint64_t inferences, const hw::Program& program)
    : recorded_(inferences),
      own_events_(std::move(own)),
      events_(events == nullptr ? *own_events_ : *events),
      process_(process),
      core_mhz_(core_mhz) {
  take(program);
}

void Timeline::take(const hw::Program& program) {
  program_ = &program;
  traces_.assign(program.commands.size(), {});
  expected_ = static_cast<std::size_t>(
      std::count_if(program.commands.begin(), program.commands.end(),
                    [](const auto& c) { return c.opcode() != hw::Opcode::kEnd; }));
  names_.clear();
  for (const hw::Operator& op : program.operators) names_.push_back(json_string(op.name));
}

void Timeline::begin(const hw::Program& program, std::uint64_t inference) {
  if (inference_ && *inference_ != inference) ++inferences_;
  inference_ = inference;
  if (program_ != &program) take(program);
}

void Timeline::name_rows(const std::string& name) {
  events_.name_process(process_, name);
  events_.name_row({process_, kInferenceRow}, "inferences");
  for (std::uint32_t unit = 0; unit < hw::kUnits; ++unit) {
    events_.name_row({process_, kUnitRows + unit}, kUnitNames[unit]);
  }
}

void Timeline::put_slice(std::uint32_t number, std::uint64_t begin, std::uint64_t end,
                         const std::string& name, const std::string& arguments) {
  events_.slice({process_, number}, begin, end, name,
                fmt::format(R"("cycles":{}{})", end - begin, arguments));
}

std::string Timeline::arguments(const CommandTrace& trace) const {
  const hw::Command& command = program_->commands[trace.index];
  const hw::CommandShape shape = hw::shape_of(command);
  std::string text = fmt::format(R"(,"command":{},"what":"{}","m":{},"n":{})", trace.index,
                                 describe(command), shape.m, shape.n);
  if (command.opcode() == hw::Opcode::kMatmul) {
    text += fmt::format(R"(,"k":{},"macs":{})", shape.k, shape.m * shape.n * shape.k);
  } else {
    text += fmt::format(R"(,"bytes":{})", moved_bytes(command, *program_));
  }
  if (const std::uint64_t bytes = operand_bytes(command, *program_); bytes != 0) {
    text += fmt::format(R"(,"operand_bytes":{})", bytes);
  }
  text += fmt::format(R"(,"dispatched_cycle":{},"started_cycle":{},"completed_cycle":{})",
                      trace.dispatched, trace.started, trace.completed);
  if (command.opcode() == hw::Opcode::kLoadAccumulator) {
    text += fmt::format(R"(,"arrived_cycle":{})", trace.completed - hw::kSumLoadCycles);
  }
  return text;
}

void Timeline::add(const CommandTrace& trace) {
  if (recorded_ != 0 && inferences_ == recorded_) return;
  traces_[trace.index] = trace;
  if (++completed_ < expected_) return;
  events_.use_clock(core_mhz_);
  put_inference();
  put_commands();
  put_operators();
  completed_ = 0;
  if (!inference_) ++inferences_;
}

void Timeline::put_inference() {
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_->commands[i].opcode() == hw::Opcode::kEnd) continue;
    begin = std::min(begin, traces_[i].dispatched);
    end = std::max(end, traces_[i].completed);
  }
  put_slice(kInferenceRow, begin, end, fmt::format("\"inference {}\"", inferences_), "");
}

void Timeline::put_commands() {
  std::array<std::uint64_t, hw::kUnits> free{};  // when the unit released its previous command
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_->commands[i].opcode() == hw::Opcode::kEnd) continue;
    const CommandTrace& trace = traces_[i];
    std::uint64_t& unit_free = free[static_cast<std::size_t>(trace.unit)];
    const std::uint64_t taken = std::max(unit_free, trace.dispatched);
    if (trace.was_blocked && trace.started > taken) {
      const CommandTrace& blocker = traces_[trace.blocker];
      put_slice(row_of(trace.unit), taken, trace.started,
                fmt::format("\"wait for {}\"", kUnitNames[static_cast<std::size_t>(blocker.unit)]),
                fmt::format(R"(,"command":{},"for_command":{},"for_operator":{})", trace.index,
                            trace.blocker, names_[blocker.op]));
      // It leaves before the slice of the blocker is over, and before what it leads to.
      const std::uint64_t over = trace.blocker_released
                                     ? std::min(blocker.released, blocker.operands_read)
                                     : blocker.released;
      events_.arrow({process_, row_of(blocker.unit)},
                    over > blocker.started ? over - 1 : blocker.started,
                    {process_, row_of(trace.unit)}, trace.started);
    }
    put_slice(row_of(trace.unit), trace.started, trace.released, names_[trace.op],
              arguments(trace));
    unit_free = trace.released;
  }
}

void Timeline::put_operators() {
  struct Span {
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    std::uint32_t op = 0, commands = 0;
  };
  std::vector<Span> spans(program_->operators.size());
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_->commands[i].opcode() == hw::Opcode::kEnd) continue;
    Span& span = spans[traces_[i].op];
    span.op = traces_[i].op;
    ++span.commands;
    span.begin = std::min(span.begin, traces_[i].started);
    span.end = std::max(span.end, traces_[i].completed);
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<std::uint64_t> rows;  // end of the last slice of each row
  for (const Span& span : spans) {
    if (span.commands == 0) continue;
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](auto end) { return end <= span.begin; });
    const auto row = static_cast<std::uint32_t>(found - rows.begin());
    if (found == rows.end()) rows.push_back(0);
    rows[row] = span.end;
    for (; operator_rows_ <= row; ++operator_rows_) {
      events_.name_row({process_, kOperatorRows + operator_rows_}, "operators");
    }
    put_slice(kOperatorRows + row, span.begin, span.end, names_[span.op],
              fmt::format(R"(,"commands":{},"macs":{})", span.commands,
                          program_->operators[span.op].macs));
  }
}

RingTimeline::RingTimeline(std::ostream& out, std::uint32_t cores, std::uint32_t core_mhz)
    : own_events_(std::make_unique<EventWriter>(out, core_mhz)),
      events_(*own_events_),
      process_(0),
      core_mhz_(core_mhz) {
  name_rows("core", cores);
}

RingTimeline::RingTimeline(EventWriter& events, std::uint32_t process, const std::string& name,
                           std::uint32_t cores, std::uint32_t core_mhz)
    : events_(events), process_(process), core_mhz_(core_mhz) {
  name_rows(name, cores);
}

void RingTimeline::name_rows(const std::string& name, std::uint32_t cores) {
  for (std::uint32_t core = 0; core < cores; ++core) {
    events_.name_process(process_ + core, fmt::format("{} {}", name, core));
    for (std::uint32_t unit = 0; unit < hw::dfx::kUnits; ++unit) {
      events_.name_row({process_ + core, unit}, kRingUnitNames[unit], false);
    }
  }
}

void RingTimeline::add(const tlm_model::dfx::InstructionTrace& trace) {
  const hw::dfx::Instruction& instruction = *trace.instruction;
  const auto& times = trace.times;
  std::string what = fmt::format(R"("phase":"{}","begin_cycle":{},"result_cycle":{})",
                                 hw::dfx::name_of(instruction.phase), times.begin, times.end);
  if (instruction.weights.k_tiles != 0) {
    what += fmt::format(R"(,"k_tiles":{},"slices":{})", instruction.weights.k_tiles,
                        instruction.weights.slices);
  } else if (instruction.elements != 0) {
    what += fmt::format(R"(,"elements":{})", instruction.elements);
  }
  events_.use_clock(core_mhz_);
  const auto unit = static_cast<std::uint32_t>(hw::dfx::unit_of(instruction.op));
  events_.slice({process_ + trace.core, unit}, times.begin, times.released,
                json_string(std::string(hw::dfx::name_of(instruction.op))), what);
}

}  // namespace systole::testbench
