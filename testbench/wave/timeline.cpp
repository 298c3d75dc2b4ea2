#include "testbench/wave/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

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

/// What a command moves between memory and the core, without a tensor operand; or the host.
std::uint64_t moved_bytes(const hw::Command& command, const hw::Program& program) {
  const hw::CommandShape shape = hw::shape_of(command);
  const std::uint64_t elements = shape.m * shape.n;
  if (const auto* const load = command.as<hw::cmd::Load>()) {
    return elements * hw::bytes_of(load->type);
  }
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    return elements * hw::bytes_of(hw::chain_of(store->chain, program).out);
  }
  if (const auto* const call = command.as<hw::cmd::HostCall>()) {
    const hw::HostFunction& function = program.host_functions[call->function];
    const std::size_t second = hw::operands_of(function.op) > 1 ? hw::bytes_of(function.tensor) : 0;
    return elements * (hw::bytes_of(function.in) + second + hw::bytes_of(function.out));
  }
  return 0;
}

}  // namespace

EventFile::EventFile(const std::string& path, std::uint32_t core_mhz)
    : clock_(core_mhz), file_(path) {
  file_.stream() << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void EventFile::put(const std::string& event) {
  file_.stream() << (first_ ? "\n" : ",\n") << event;
  first_ = false;
}

void EventFile::name_process(std::uint32_t process) {
  put(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"core {0}"}}}})",
                  process));
}

void EventFile::name_row(Row at, const std::string& name, bool sorted) {
  put(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                  at.process, at.row, name));
  if (!sorted) return;
  put(fmt::format(
      R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
      at.process, at.row));
}

std::string EventFile::us(std::uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void EventFile::slice(Row at, std::uint64_t begin, std::uint64_t end, const std::string& name,
                      const std::string& arguments) {
  put(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}})",
                  at.process, at.row, us(ns(begin)), us(ns(end) - ns(begin)), name, arguments));
}

void EventFile::arrow(Row from, std::uint64_t leaves, Row to, std::uint64_t arrives) {
  const auto end = [&](const char* kind, Row at, std::uint64_t cycle) {
    put(fmt::format(R"({{{},"pid":{},"tid":{},"ts":{},"id":{},"name":"hazard","cat":"hazard"}})",
                    kind, at.process, at.row, us(ns(cycle)), arrows_));
  };
  end(R"("ph":"s")", from, leaves);
  end(R"("ph":"f","bp":"e")", to, arrives);
  ++arrows_;
}

void EventFile::write() {
  file_.stream() << "\n]}\n";
  file_.commit();
}

Timeline::Timeline(const TimelineOptions& options, const hw::Program& program,
                   std::uint32_t core_mhz)
    : options_(options),
      program_(program),
      traces_(program.commands.size()),
      expected_(static_cast<std::size_t>(
          std::count_if(program.commands.begin(), program.commands.end(),
                        [](const auto& c) { return c.opcode() != hw::Opcode::kEnd; }))),
      file_(options.path, core_mhz) {
  for (const hw::Operator& op : program.operators) names_.push_back(json_string(op.name));
  file_.name_process(0);
  file_.name_row({0, kInferenceRow}, "inferences");
  for (std::uint32_t unit = 0; unit < hw::kUnits; ++unit) {
    file_.name_row({0, kUnitRows + unit}, kUnitNames[unit]);
  }
}

void Timeline::put_slice(std::uint32_t number, std::uint64_t begin, std::uint64_t end,
                         const std::string& name, const std::string& arguments) {
  file_.slice({0, number}, begin, end, name,
              fmt::format(R"("cycles":{}{})", end - begin, arguments));
}

std::string Timeline::arguments(const CommandTrace& trace) const {
  const hw::Command& command = program_.commands[trace.index];
  const hw::CommandShape shape = hw::shape_of(command);
  std::string text = fmt::format(R"(,"command":{},"what":"{}","m":{},"n":{})", trace.index,
                                 describe(command), shape.m, shape.n);
  if (command.opcode() == hw::Opcode::kMatmul) {
    text += fmt::format(R"(,"k":{},"macs":{})", shape.k, shape.m * shape.n * shape.k);
  } else {
    text += fmt::format(R"(,"bytes":{})", moved_bytes(command, program_));
  }
  text += fmt::format(R"(,"dispatched_cycle":{},"started_cycle":{},"completed_cycle":{})",
                      trace.dispatched, trace.started, trace.completed);
  return text;
}

void Timeline::add(const CommandTrace& trace) {
  if (options_.inferences != 0 && inferences_ == options_.inferences) return;
  traces_[trace.index] = trace;
  if (++completed_ < expected_) return;
  put_inference();
  put_commands();
  put_operators();
  completed_ = 0;
  ++inferences_;
}

void Timeline::put_inference() {
  std::uint64_t begin = ~std::uint64_t{0}, end = 0;
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_.commands[i].opcode() == hw::Opcode::kEnd) continue;
    begin = std::min(begin, traces_[i].dispatched);
    end = std::max(end, traces_[i].completed);
  }
  put_slice(kInferenceRow, begin, end, fmt::format("\"inference {}\"", inferences_), "");
}

void Timeline::put_commands() {
  std::array<std::uint64_t, hw::kUnits> free{};  // when the unit released its previous command
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_.commands[i].opcode() == hw::Opcode::kEnd) continue;
    const CommandTrace& trace = traces_[i];
    std::uint64_t& unit_free = free[static_cast<std::size_t>(trace.unit)];
    const std::uint64_t taken = std::max(unit_free, trace.dispatched);
    if (trace.was_blocked && trace.started > taken) {
      const CommandTrace& blocker = traces_[trace.blocker];
      put_slice(row_of(trace.unit), taken, trace.started,
                fmt::format("\"wait for {}\"", kUnitNames[static_cast<std::size_t>(blocker.unit)]),
                fmt::format(R"(,"command":{},"for_command":{},"for_operator":{})", trace.index,
                            trace.blocker, names_[blocker.op]));
      // It leaves before the slice of the blocker is over.
      const bool took_time = blocker.released > blocker.started;
      file_.arrow({0, row_of(blocker.unit)}, took_time ? blocker.released - 1 : blocker.started,
                  {0, row_of(trace.unit)}, trace.started);
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
  std::vector<Span> spans(program_.operators.size());
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_.commands[i].opcode() == hw::Opcode::kEnd) continue;
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
      file_.name_row({0, kOperatorRows + operator_rows_}, "operators");
    }
    put_slice(kOperatorRows + row, span.begin, span.end, names_[span.op],
              fmt::format(R"(,"commands":{},"macs":{})", span.commands,
                          program_.operators[span.op].macs));
  }
}

RingTimeline::RingTimeline(const std::string& path, std::uint32_t cores, std::uint32_t core_mhz)
    : file_(path, core_mhz) {
  for (std::uint32_t core = 0; core < cores; ++core) {
    file_.name_process(core);
    for (std::uint32_t unit = 0; unit < hw::dfx::kUnits; ++unit) {
      file_.name_row({core, unit}, kRingUnitNames[unit], false);
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
  file_.slice({trace.core, static_cast<std::uint32_t>(hw::dfx::unit_of(instruction.op))},
              times.begin, times.released,
              json_string(std::string(hw::dfx::name_of(instruction.op))), what);
}

}  // namespace systole::testbench
