#include "testbench/estimate/report_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "testbench/common/text.h"
#include "testbench/report/measurement.h"
#include "testbench/report/operator_sums.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

std::string estimate_table(const std::vector<OperatorSum>& sums) {
  Table table("operator | >times | >array | >memory | >post-op | >expected | >bound by");
  for (const OperatorSum& sum : sums) {
    table.add({analysis::short_name(sum.name), std::to_string(sum.count),
               grouped_rounded(sum.bound.array), grouped_rounded(sum.bound.memory),
               grouped_rounded(sum.bound.postop), grouped(sum.expected),
               std::string(name_of(sum.bound.resource()))});
  }
  return table.text();
}

/// By how much a figure is above another one, in percent.
std::string percent_over(std::uint64_t value, double than) {
  // Some operators have no commands: others do their work in passing.
  if (than <= 0) return "-";
  return fmt::format("{:+.1f}", 100 * (static_cast<double>(value) / than - 1));
}

std::string macs_per_cycle(const OperatorSum& sum) {
  if (sum.macs == 0 || sum.simulated == 0) return "-";
  return fmt::format("{:.1f}", static_cast<double>(sum.macs) / static_cast<double>(sum.simulated));
}

std::string simulation_table(const std::vector<OperatorSum>& sums) {
  Table table("operator | >expected | >simulated | >% | >MAC/cycle | >to load | >loaded");
  for (const OperatorSum& sum : sums) {
    table.add({analysis::short_name(sum.name), grouped(sum.expected), grouped(sum.simulated),
               percent_over(sum.simulated, static_cast<double>(sum.expected)), macs_per_cycle(sum),
               grouped(sum.expected_loads), grouped(sum.loads)});
  }
  return table.text();
}

/// Causes by size, as parts of what the slowest unit takes.
std::string causes_text(const OperatorSum& sum) {
  if (sum.slowest == 0) return "-";
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kCauses; ++i) {
    if (std::abs(sum.causes[i]) >= 0.005 * sum.slowest) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(sum.causes[a]) > std::abs(sum.causes[b]);
  });
  std::string text;
  for (const std::size_t i : order) {
    text += fmt::format("{}{} {:+.1f}", text.empty() ? "" : ", ", name_of(static_cast<Cause>(i)),
                        100 * sum.causes[i] / sum.slowest);
  }
  return text.empty() ? "-" : text;
}

std::string causes_table(const std::vector<OperatorSum>& sums) {
  Table table("operator | >slowest | >simulated | >% | of which (% of slowest)");
  for (const OperatorSum& sum : sums) {
    table.add({analysis::short_name(sum.name), grouped_rounded(sum.slowest), grouped(sum.simulated),
               percent_over(sum.simulated, sum.slowest), causes_text(sum)});
  }
  return table.text();
}

}  // namespace

std::string estimate_text(const EstimateReport& report) {
  const std::vector<OperatorSum> sums = sum_operators(report.estimates, report.timings);
  std::string text = "cycles on " + report.machine +
                     ": each unit on its own, and as the mapper expects them\n" +
                     estimate_table(sums);
  if (report.timings.empty()) return text;
  FactList facts;
  facts.add("simulated",
            fmt::format("{} cycles from start to interrupt, {} of them before the "
                        "first command and after the last",
                        grouped(report.cycles), grouped(report.cycles - sums.back().simulated)));
  return text + "\ncycles and bytes beside the simulation\n" + simulation_table(sums) + "\n" +
         facts.text() + "\nwhat operators took beyond their slowest units\n" + causes_table(sums) +
         "\nwhere the units' time went; what stalls a running command is in \"commands\"\n" +
         block_table(report.blocks);
}

ordered_json estimate_json(const EstimateReport& report) {
  const std::vector<OperatorSum> sums = sum_operators(report.estimates, report.timings);
  const bool simulated = !report.timings.empty();
  ordered_json document{{"machine", report.machine},
                        {"mapped", ordered_json::array()},
                        {"mapped_total", to_json(sums.back(), simulated)}};
  for (std::size_t i = 0; i + 1 < sums.size(); ++i) {
    document["mapped"].push_back(to_json(sums[i], simulated));
  }
  if (simulated) document["cycles"] = report.cycles;
  return document;
}

}  // namespace systole::testbench
