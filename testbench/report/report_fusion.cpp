#include "testbench/report/report_fusion.h"

#include <fmt/format.h>

#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

/// Part of `before` that is not there any more; negative if there is more.
double saved(std::uint64_t before, std::uint64_t after) {
  if (before == 0) return 0.0;
  return 1.0 - static_cast<double>(after) / static_cast<double>(before);
}

std::string saving(const FusionComparison& comparison, std::size_t step) {
  const FusionRun &off = comparison.runs[0], &run = comparison.runs.at(step);
  std::string text =
      fmt::format("{:+.1f}% cycles, {:+.1f}% accesses", -100 * saved(off.cycles, run.cycles),
                  -100 * saved(off.accesses, run.accesses));
  if (comparison.simulated) {
    text += fmt::format(", {:+.1f}% bytes", -100 * saved(off.moved_bytes, run.moved_bytes));
  }
  return text;
}

}  // namespace

std::uint64_t FusionComparison::differing() const {
  auto count = static_cast<std::uint64_t>(differing_bytes(runs.data(), runs.size()));
  for (const FusionRun& run : runs) count += run.mismatches;
  return count;
}

std::string fusion_comparison_text(const FusionComparison& comparison) {
  Table table(comparison.simulated ? "fusion | >passes | >trips | >accesses | >bytes | >cycles"
                                   : "fusion | >passes | >trips | >accesses | >expected cycles");
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const FusionRun& run = comparison.runs.at(i);
    std::vector<std::string> row = {kFusionStepNames.at(i).name, grouped(run.passes),
                                    grouped(run.trips), grouped(run.accesses)};
    if (comparison.simulated) row.push_back(grouped(run.moved_bytes));
    row.push_back(grouped(run.cycles));
    table.add(std::move(row));
  }
  std::string text = table.text() + "\n";
  FactList facts;
  for (std::size_t i = 1; i < kFusionSteps; ++i) {
    facts.add(fmt::format("off to {}", kFusionStepNames.at(i).name), saving(comparison, i));
  }
  if (comparison.simulated) {
    facts.add("check", counted(comparison.differing(), "byte") + " differ");
  }
  text += facts.text();
  for (const std::string& note : comparison.notes) text += paragraph(note) + "\n";
  return text;
}

nlohmann::ordered_json fusion_comparison_json(const FusionComparison& comparison) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::object();
  nlohmann::ordered_json savings = nlohmann::ordered_json::object();
  const FusionRun& off = comparison.runs[0];
  for (std::size_t i = 0; i < kFusionSteps; ++i) {
    const FusionRun& run = comparison.runs.at(i);
    const char* const name = kFusionStepNames.at(i).name;
    nlohmann::ordered_json& step = steps[name];
    step = {{"passes", run.passes}, {"loop_trips", run.trips}, {"accesses", run.accesses}};
    step[comparison.simulated ? "cycles" : "expected_cycles"] = run.cycles;
    if (comparison.simulated) step["moved_bytes"] = run.moved_bytes;
    if (i == 0) continue;
    savings[name] = {{"cycles", saved(off.cycles, run.cycles)},
                     {"accesses", saved(off.accesses, run.accesses)}};
    if (comparison.simulated) {
      savings[name]["moved_bytes"] = saved(off.moved_bytes, run.moved_bytes);
    }
  }
  nlohmann::ordered_json document = {{"simulated", comparison.simulated},
                                     {"steps", steps},
                                     {"saved", savings},
                                     {"notes", comparison.notes}};
  if (comparison.simulated) document["differing_bytes"] = comparison.differing();
  return document;
}

}  // namespace systole::testbench
