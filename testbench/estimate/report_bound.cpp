#include "testbench/estimate/report_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/mapped_cost.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using analysis::LowerBound;
using analysis::OperatorBound;
using nlohmann::ordered_json;

/// Capacities of the curve: the machine's memories over 2^kSmaller to times 2^kLarger.
constexpr int kSmaller = 5, kLarger = 6;

double total_bytes(const LowerBound& bound) {
  double bytes = 0;
  for (const OperatorBound& op : bound.operators)
    bytes += op.loaded + op.operands + op.either + op.written;
  return bytes;
}

/// Operators of one general name.
struct BoundLine {
  OperatorBound sum;
  std::uint64_t count = 0;
};

std::vector<BoundLine> bound_lines(const LowerBound& bound) {
  std::vector<BoundLine> lines;
  for (const OperatorBound& op : bound.operators) {
    const std::string name = analysis::general_name(op.name);
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const BoundLine& other) { return other.sum.name == name; });
    if (line == lines.end()) {
      line = lines.emplace(lines.end());
      line->sum.name = name;
    }
    ++line->count;
    line->sum.array += op.array;
    line->sum.postop += op.postop;
    line->sum.host += op.host;
    line->sum.loaded += op.loaded;
    line->sum.operands += op.operands + op.either;
    line->sum.written += op.written;
  }
  return lines;
}

}  // namespace

BoundReport bound_report(const model::Graph& graph, const mapper::Mapping& mapping,
                         const hw::Machine& machine) {
  BoundReport report;
  report.machine = machine;
  report.model = graph.name;
  report.bound = analysis::lower_bound(graph, machine);
  for (const analysis::OperatorEstimate& estimate : analysis::estimate(mapping, machine)) {
    report.mapped_bytes += static_cast<double>(estimate.read_bytes + estimate.written_bytes);
  }
  for (int power = -kSmaller; power <= kLarger; ++power) {
    hw::Machine other = machine;
    const auto scaled = [power](std::uint32_t kib) {
      return static_cast<std::uint32_t>(std::ldexp(kib, power));
    };
    other.scratchpad.kib = scaled(machine.scratchpad.kib);
    other.accumulator.kib = scaled(machine.accumulator.kib);
    if (other.scratchpad.kib == 0 || other.accumulator.kib == 0) continue;
    report.curve.push_back({other.scratchpad.kib, other.accumulator.kib,
                            total_bytes(analysis::lower_bound(graph, other))});
  }
  return report;
}

std::string bound_text(const BoundReport& report) {
  Table table("least of any mapping | >times | >array | >post-op | >loaded | >operands | >written");
  for (const BoundLine& line : bound_lines(report.bound)) {
    table.add({analysis::short_name(line.sum.name), std::to_string(line.count),
               grouped_rounded(line.sum.array), grouped_rounded(line.sum.postop),
               grouped_rounded(line.sum.loaded), grouped_rounded(line.sum.operands),
               grouped_rounded(line.sum.written)});
  }
  const LowerBound& bound = report.bound;
  FactList facts;
  facts.add("array", grouped_rounded(bound.total.array) + " cycles");
  facts.add("memory", grouped_rounded(bound.total.memory) + " cycles");
  facts.add("post-op", grouped_rounded(bound.total.postop) + " cycles");
  facts.add("latency", grouped_rounded(bound.latency) + " cycles, what depends on each other");
  facts.add("bound",
            fmt::format("{} cycles, by {}", grouped_rounded(bound.cycles()), bound.bound_by()));
  facts.add("bytes", fmt::format("{} at least, {} as mapped", grouped_rounded(total_bytes(bound)),
                                 grouped_rounded(report.mapped_bytes)));
  return "cycles and bytes, each unit and each operator on its own\n" + table.text() + "\n" +
         facts.text();
}

ordered_json bound_json(const BoundReport& report) {
  ordered_json operators = ordered_json::array();
  for (const BoundLine& line : bound_lines(report.bound)) {
    operators.push_back({{"name", line.sum.name},
                         {"operators", line.count},
                         {"array_cycles", line.sum.array},
                         {"postop_cycles", line.sum.postop},
                         {"host_cycles", line.sum.host},
                         {"loaded_bytes", line.sum.loaded},
                         {"operand_bytes", line.sum.operands},
                         {"written_bytes", line.sum.written}});
  }
  ordered_json curve = ordered_json::array();
  for (const BoundReport::Point& point : report.curve) {
    curve.push_back({{"scratchpad_kib", point.scratchpad_kib},
                     {"accumulator_kib", point.accumulator_kib},
                     {"bytes", point.bytes}});
  }
  const LowerBound& bound = report.bound;
  return {{"bound", bound.cycles()},
          {"bound_array", bound.total.array},
          {"bound_memory", bound.total.memory},
          {"bound_postop", bound.total.postop},
          {"bound_host", bound.total.host},
          {"bound_latency", bound.latency},
          {"bound_by", bound.bound_by()},
          {"bound_bytes", total_bytes(bound)},
          {"mapped_bytes", report.mapped_bytes},
          {"bound_operators", std::move(operators)},
          {"bound_curve", std::move(curve)}};
}

Plot bound_plot(const BoundReport& report) {
  const hw::Machine& machine = report.machine;
  std::string data;
  for (const BoundReport::Point& point : report.curve) {
    data += fmt::format("{} {}\n", point.scratchpad_kib + point.accumulator_kib, point.bytes / 1e6);
  }
  const std::uint32_t capacity = machine.scratchpad.kib + machine.accumulator.kib;
  return {"bound.png", 1200, 700,
          data_block("curve", data) +
              data_block("machine", fmt::format("{} {}\n", capacity, report.mapped_bytes / 1e6)) +
              fmt::format("model = {}\nmachine = {}\n", gnuplot_quoted(report.model),
                          gnuplot_quoted(machine.name)),
          "bound"};
}

}  // namespace systole::testbench
