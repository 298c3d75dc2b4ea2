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

std::uint32_t row_of(hw::Unit unit) { return kUnitRows + static_cast<std::uint32_t>(unit); }

/// Quoted; bytes that are no UTF-8 become replacement characters.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What a command moves between memory and the core, without a tensor operand; or the host.
std::uint64_t moved_bytes(const hw::Command& command, const hw::Program& program) {
  const std::uint64_t elements = std::uint64_t{command.m} * command.n;
  switch (command.opcode) {
    case hw::Opcode::kLoad:
    case hw::Opcode::kLoadAccumulator:
      return elements * hw::bytes_of(command.type);
    case hw::Opcode::kStore:
      return elements * hw::bytes_of(program.chains[command.chain].out);
    case hw::Opcode::kHost: {
      const hw::HostFunction& function = program.host_functions[command.chain];
      const std::size_t second =
          hw::operands_of(function.op) > 1 ? hw::bytes_of(function.tensor) : 0;
      return elements * (hw::bytes_of(function.in) + second + hw::bytes_of(function.out));
    }
    default:
      return 0;
  }
}

}  // namespace

Timeline::Timeline(const TimelineOptions& options, const hw::Program& program,
                   std::uint32_t core_mhz)
    : options_(options),
      program_(program),
      clock_(core_mhz),
      traces_(program.commands.size()),
      expected_(static_cast<std::size_t>(
          std::count_if(program.commands.begin(), program.commands.end(),
                        [](const auto& c) { return c.opcode != hw::Opcode::kEnd; }))),
      file_(options.path) {
  for (const hw::Operator& op : program.operators) names_.push_back(json_string(op.name));
  file_.stream() << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  put(R"({"ph":"M","pid":0,"name":"process_name","args":{"name":"core 0"}})");
  name_row(kInferenceRow, "inferences");
  for (std::uint32_t unit = 0; unit < hw::kUnits; ++unit) {
    name_row(kUnitRows + unit, kUnitNames[unit]);
  }
}

void Timeline::put(const std::string& event) {
  file_.stream() << (first_event_ ? "\n" : ",\n") << event;
  first_event_ = false;
}

void Timeline::name_row(std::uint32_t row, const std::string& name) {
  put(fmt::format(R"({{"ph":"M","pid":0,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                  row, name));
  put(fmt::format(
      R"({{"ph":"M","pid":0,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
      row));
}

std::string Timeline::time(std::uint64_t cycle) const {
  const std::uint64_t ns = clock_.edge_ps(cycle) / 1000;
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void Timeline::put_slice(const Slice& slice) {
  // The difference of the rounded times: slices that touch still do.
  const std::uint64_t begin = clock_.edge_ps(slice.begin) / 1000;
  const std::uint64_t length = clock_.edge_ps(slice.end) / 1000 - begin;
  put(fmt::format(
      R"({{"ph":"X","pid":0,"tid":{},"ts":{},"dur":{}.{:03},"name":{},"args":{{"cycles":{}{}}}}})",
      slice.row, time(slice.begin), length / 1000, length % 1000, slice.name,
      slice.end - slice.begin, slice.arguments));
}

// An arrow binds to the slices around its ends: it leaves before the first one is over.
void Timeline::put_arrow(const CommandTrace& from, const CommandTrace& to) {
  const std::uint64_t leaves = from.released > from.started ? from.released - 1 : from.started;
  put(fmt::format(R"({{"ph":"s","pid":0,"tid":{},"ts":{},"id":{},"name":"hazard","cat":"hazard"}})",
                  row_of(from.unit), time(leaves), arrows_));
  put(fmt::format(
      R"({{"ph":"f","bp":"e","pid":0,"tid":{},"ts":{},"id":{},"name":"hazard","cat":"hazard"}})",
      row_of(to.unit), time(to.started), arrows_));
  ++arrows_;
}

std::string Timeline::arguments(const CommandTrace& trace) const {
  const hw::Command& command = program_.commands[trace.index];
  std::string text = fmt::format(R"(,"command":{},"what":"{}","m":{},"n":{})", trace.index,
                                 describe(command), command.m, command.n);
  if (command.opcode == hw::Opcode::kMatmul) {
    text += fmt::format(R"(,"k":{},"macs":{})", command.k,
                        std::uint64_t{command.m} * command.n * command.k);
  } else {
    text += fmt::format(R"(,"bytes":{})", moved_bytes(command, program_));
  }
  text += fmt::format(R"(,"dispatched_cycle":{},"started_cycle":{},"completed_cycle":{})",
                      trace.dispatched, trace.started, trace.completed);
  return text;
}

void Timeline::on_command(const CommandTrace& trace) {
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
    if (program_.commands[i].opcode == hw::Opcode::kEnd) continue;
    begin = std::min(begin, traces_[i].dispatched);
    end = std::max(end, traces_[i].completed);
  }
  put_slice({kInferenceRow, begin, end, fmt::format("\"inference {}\"", inferences_), ""});
}

void Timeline::put_commands() {
  std::array<std::uint64_t, hw::kUnits> free{};  // when the unit released its previous command
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    if (program_.commands[i].opcode == hw::Opcode::kEnd) continue;
    const CommandTrace& trace = traces_[i];
    std::uint64_t& unit_free = free[static_cast<std::size_t>(trace.unit)];
    const std::uint64_t taken = std::max(unit_free, trace.dispatched);
    if (trace.was_blocked && trace.started > taken) {
      const CommandTrace& blocker = traces_[trace.blocker];
      put_slice({row_of(trace.unit), taken, trace.started,
                 fmt::format("\"wait for {}\"", kUnitNames[static_cast<std::size_t>(blocker.unit)]),
                 fmt::format(R"(,"command":{},"for_command":{},"for_operator":{})", trace.index,
                             trace.blocker, names_[blocker.op])});
      put_arrow(blocker, trace);
    }
    put_slice(
        {row_of(trace.unit), trace.started, trace.released, names_[trace.op], arguments(trace)});
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
    if (program_.commands[i].opcode == hw::Opcode::kEnd) continue;
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
      name_row(kOperatorRows + operator_rows_, "operators");
    }
    put_slice({kOperatorRows + row, span.begin, span.end, names_[span.op],
               fmt::format(R"(,"commands":{},"macs":{})", span.commands,
                           program_.operators[span.op].macs)});
  }
}

void Timeline::write() {
  file_.stream() << "\n]}\n";
  file_.commit();
}

}  // namespace systole::testbench
