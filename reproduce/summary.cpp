#include <fmt/format.h>

#include "reproduce/reproduction.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

/// All rows of all reproductions, as one that has no name.
Reproduction joined(const std::vector<Reproduction>& reproductions) {
  Reproduction all;
  all.name = "all";
  for (const Reproduction& one : reproductions) {
    all.wall_seconds += one.wall_seconds;
    all.sections.insert(all.sections.end(), one.sections.begin(), one.sections.end());
  }
  return all;
}

std::vector<std::string> summary_cells(const Reproduction& reproduction) {
  std::vector<std::string> cells{reproduction.name};
  for (std::size_t i = 0; i < kJudgedClaims; ++i) {
    const auto claim = static_cast<Claim>(i);
    const std::size_t passed = reproduction.count(Verdict::kPass, claim);
    const std::size_t judged = passed + reproduction.count(Verdict::kFail, claim);
    cells.push_back(fmt::format("{} of {}", passed, judged));
  }
  cells.push_back(fmt::format("{}", reproduction.count(Verdict::kFail)));
  cells.push_back(fmt::format("{}", reproduction.count(Verdict::kReference)));
  cells.push_back(fmt::format("{:.1f} s", reproduction.wall_seconds));
  return cells;
}

}  // namespace

std::string summary_text(const std::vector<Reproduction>& reproductions) {
  Table table("verdicts | >published | >calibrated | >follows | >fail | >reference | >time");
  for (const Reproduction& one : reproductions) table.add(summary_cells(one));
  table.add(summary_cells(joined(reproductions)));
  return table.text();
}

nlohmann::ordered_json summary_json(const std::vector<Reproduction>& reproductions) {
  const Reproduction all = joined(reproductions);
  nlohmann::ordered_json document{{"name", all.name},
                                  {"passed", all.count(Verdict::kPass)},
                                  {"failed", all.count(Verdict::kFail)},
                                  {"by_class", nlohmann::ordered_json::object()},
                                  {"wall_seconds", all.wall_seconds},
                                  {"reproductions", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < kJudgedClaims; ++i) {
    const auto claim = static_cast<Claim>(i);
    document["by_class"][std::string(claim_name(claim))] = {
        {"passed", all.count(Verdict::kPass, claim)}, {"failed", all.count(Verdict::kFail, claim)}};
  }
  for (const Reproduction& one : reproductions) {
    document["reproductions"].push_back(reproduction_json(one));
  }
  return document;
}

}  // namespace systole::testbench
