#include "testbench/explain/report_explain.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/mapped_cost.h"
#include "hw/silicon/area.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// Below this part of the path a cause or an operator has no line of its own.
constexpr double kSmallest = 0.001;

/// "-12.3%" of a change from `base` to `value`.
std::string change_of(double value, double base) {
  return fmt::format("{:+.1f}%", 100 * (value / base - 1));
}

double share_of(std::uint64_t cycles, const Explanation& why) {
  return static_cast<double>(cycles) / static_cast<double>(why.cycles);
}

std::string causes_text(const Explanation& why) {
  Table table("critical path | >cycles | >% | meaning");
  std::uint64_t others = 0;
  for (const PathCause& cause : why.causes) {
    const double share = share_of(cause.cycles, why);
    if (share < kSmallest) {
      others += cause.cycles;
      continue;
    }
    table.add({cause.unit + "." + cause.cause, grouped(cause.cycles),
               fmt::format("{:.1f}", 100 * share), cause.meaning});
  }
  if (others != 0) {
    table.add({"others", grouped(others), fmt::format("{:.1f}", 100 * share_of(others, why)),
               fmt::format("each below {:.1f}%", 100 * kSmallest)});
  }
  return table.text();
}

std::string operators_text(const Explanation& why) {
  Table table("operator | >x | >cycles | >% | most of it");
  for (const PathOperator& op : why.operators) {
    if (share_of(op.cycles, why) < kSmallest) continue;
    std::vector<std::string> most;
    for (const PathCause& cause : op.most) {
      const double share = static_cast<double>(cause.cycles) / static_cast<double>(op.cycles);
      if (most.size() == 3 || (share < 0.05 && !most.empty())) break;
      most.push_back(fmt::format("{}.{} {:.0f}%", cause.unit, cause.cause, 100 * share));
    }
    table.add({analysis::short_name(op.name), std::to_string(op.times), grouped(op.cycles),
               fmt::format("{:.1f}", 100 * share_of(op.cycles, why)),
               fmt::format("{}", fmt::join(most, ", "))});
  }
  return table.text();
}

std::string limit_text(double least, double cycles) {
  return fmt::format("{} cycles, {:.1f}% of the run", grouped_rounded(least), 100 * least / cycles);
}

std::string what_if_text(const ExplainReport& report) {
  const Explanation& why = report.explanation;
  const auto cycles = static_cast<double>(why.cycles);
  const double seconds = cycles / (report.measurement.machine.core.clock_mhz * 1e6);
  const double joules = report.measurement.energy().total();
  Table table("what if | >on path % | >kept | >mapped | >simulated | >energy | >area");
  const double area = hw::area_of(report.measurement.machine).total();
  std::string refused;
  for (const WhatIf& change : report.changes) {
    const std::string name = fmt::format("{} x {}", change.key, change.factor);
    if (!change.predicted) {
      refused += paragraph(fmt::format("{}: {}", name, change.refused)) + "\n";
      continue;
    }
    table.add({name,
               change.on_path ? fmt::format("{:.1f}", 100 * share_of(*change.on_path, why)) : "-",
               change.kept ? change_of(change.kept->seconds, seconds) : "",
               change_of(change.predicted->seconds, seconds),
               change.simulated ? change_of(change.simulated->seconds, seconds) : "",
               change.simulated ? change_of(*change.simulated->joules, joules) : "",
               change_of(hw::area_of(change.machine).total(), area)});
  }
  return table.text() + (refused.empty() ? "" : "\n" + refused);
}

ordered_json to_json(const PathCause& cause) {
  return {{"unit", cause.unit}, {"cause", cause.cause}, {"cycles", cause.cycles}};
}

ordered_json to_json(const std::vector<PathCause>& causes) {
  ordered_json list = ordered_json::array();
  for (const PathCause& cause : causes) list.push_back(to_json(cause));
  return list;
}

ordered_json to_json(const WhatIf& change) {
  ordered_json json = {
      {"key", change.key},           {"factor", change.factor},
      {"on_path", nullptr},          {"kept", nullptr},
      {"predicted", nullptr},        {"simulated", nullptr},
      {"kept_seconds", nullptr},     {"predicted_seconds", nullptr},
      {"program", nullptr},          {"simulated_seconds", nullptr},
      {"simulated_joules", nullptr}, {"area_mm2", hw::area_of(change.machine).total()}};
  if (change.on_path) json["on_path"] = *change.on_path;
  if (change.kept) {
    json["kept"] = change.kept->cycles;
    json["kept_seconds"] = change.kept->seconds;
  }
  if (change.predicted) {
    json["predicted"] = change.predicted->cycles;
    json["predicted_seconds"] = change.predicted->seconds;
    json["program"] = change.keeps_program() ? "kept" : "mapped";
  }
  if (change.simulated) {
    json["simulated"] = change.simulated->cycles;
    json["simulated_seconds"] = change.simulated->seconds;
    json["simulated_joules"] = *change.simulated->joules;
  }
  if (!change.refused.empty()) json["refused"] = change.refused;
  return json;
}

}  // namespace

ExplainReport explain_run(Measurement measurement, const hw::Program& program,
                          analysis::LowerBound bound) {
  Explanation explanation = explain(program, measurement.result);
  return {std::move(measurement), std::move(bound), std::move(explanation), {}};
}

std::string explain_text(const ExplainReport& report) {
  const Explanation& why = report.explanation;
  const auto cycles = static_cast<double>(why.cycles);
  FactList facts;
  facts.add("machine", report.measurement.machine.name);
  facts.add("model", report.measurement.model);
  facts.add("cycles", fmt::format("{} in {} steps, one after the other", grouped(why.cycles),
                                  grouped(why.path.size())));
  facts.add("array", limit_text(report.bound.total.array, cycles) + ", at least");
  facts.add("memory", limit_text(report.bound.total.memory, cycles) + ", at least");
  facts.add("post-op", limit_text(report.bound.total.postop, cycles) + ", at least");
  if (report.bound.total.host > 0) {
    facts.add("host", limit_text(report.bound.total.host, cycles) + ", at least");
  }
  facts.add("bound", fmt::format("{}, by {}", limit_text(report.bound.cycles(), cycles),
                                 report.bound.bound_by()));
  std::string text = facts.text() + "\n" + causes_text(why) + "\n" + operators_text(why);
  if (!report.changes.empty()) text += "\n" + what_if_text(report);
  return text;
}

ordered_json explain_json(const ExplainReport& report) {
  const Explanation& why = report.explanation;
  ordered_json path = ordered_json::array();
  for (const PathStep& step : why.path) {
    path.push_back({{"begin", step.begin - why.path.front().begin},
                    {"cycles", step.cycles()},
                    {"command", step.command},
                    {"stage", name_of(step.stage)}});
  }
  ordered_json operators = ordered_json::array();
  for (const PathOperator& op : why.operators) {
    operators.push_back({{"name", op.name},
                         {"operators", op.times},
                         {"cycles", op.cycles},
                         {"causes", to_json(op.most)}});
  }
  ordered_json changes = ordered_json::array();
  for (const WhatIf& change : report.changes) changes.push_back(to_json(change));
  const analysis::LowerBound& bound = report.bound;
  return {{"machine", report.measurement.machine.name},
          {"model", report.measurement.model},
          {"cycles", why.cycles},
          {"critical_path_cycles", why.path_cycles()},
          {"energy_joules", report.measurement.energy().total()},
          {"area_mm2", hw::area_of(report.measurement.machine).total()},
          {"bound", bound.cycles()},
          {"bound_by", bound.bound_by()},
          {"bound_array", bound.total.array},
          {"bound_memory", bound.total.memory},
          {"bound_postop", bound.total.postop},
          {"causes", to_json(why.causes)},
          {"operators", std::move(operators)},
          {"what_if", std::move(changes)},
          {"path", std::move(path)}};
}

}  // namespace systole::testbench
