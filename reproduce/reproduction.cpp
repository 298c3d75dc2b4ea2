#include "reproduce/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "testbench/common/progress.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;
using Align = Table::Align;

/// As many digits as were printed; else three significant digits, or all of a whole number unless
/// it is a ratio.
std::string figure(const std::optional<double>& value, const ResultRow& row) {
  if (!value) return "";
  if (row.decimals) return fmt::format("{:.{}f}", *value, *row.decimals);
  const double size = std::fabs(*value);
  if (size >= 1000.0) {
    return (*value < 0.0 ? "-" : "") + grouped_rounded(size);
  }
  if (*value == std::round(*value) && row.unit != "x") return fmt::format("{:.0f}", *value);
  return fmt::format("{:.{}f}", *value, size < 10.0 ? 2 : size < 100.0 ? 1 : 0);
}

std::string difference_text(const ResultRow& row) {
  const std::optional<double> difference = row.difference();
  if (!difference) return "";
  if (std::fabs(*difference) < 0.0005) return "0.0%";
  return fmt::format("{:+.{}f}%", 100.0 * *difference, std::fabs(*difference) < 1.0 ? 1 : 0);
}

std::string published_text(const ResultRow& row) {
  const std::string text = figure(row.published, row);
  if (!row.tolerance) return text;
  switch (row.tolerance->kind) {
    case Tolerance::Kind::kAtMost:
      return "<= " + text;
    case Tolerance::Kind::kAtLeast:
      return ">= " + text;
    case Tolerance::Kind::kRelative:
    case Tolerance::Kind::kAbsolute:
      break;
  }
  return text;
}

/// ResultRow::bound() in as few characters as a table has room for; nothing if the row holds to the
/// last digit printed. "At most" and "at least" are in published_text().
std::string tolerance_text(const ResultRow& row) {
  constexpr double kRounding = 1e-9;
  if (!row.tolerance) return "";
  switch (row.tolerance->kind) {
    case Tolerance::Kind::kRelative:
      return row.tolerance->amount < kRounding ? " ="
                                               : fmt::format(" {:g}%", 100 * row.tolerance->amount);
    case Tolerance::Kind::kAbsolute: {
      const double amount = row.tolerance->amount;
      if (row.decimals && amount <= 1.01 * std::pow(10.0, -*row.decimals)) return "";
      if (row.unit == "%") return fmt::format(" {:g}pt", amount);
      const double published = std::fabs(row.published.value_or(0.0));
      if (published == 0.0) return fmt::format(" {:g}", amount);
      const double percent = 100 * amount / published;
      return fmt::format(" {:.{}f}%", percent, percent < 1 ? 1 : 0);
    }
    case Tolerance::Kind::kAtMost:
    case Tolerance::Kind::kAtLeast:
      break;
  }
  return "";
}

/// "published 5%", "FAILS follows =", "reference".
std::string verdict_text(const ResultRow& row) {
  const Verdict verdict = row.verdict();
  if (!is_judged(row.claim) && row.ours) return std::string(claim_name(row.claim));
  if (verdict == Verdict::kReference) return std::string(verdict_name(verdict));
  return fmt::format("{}{}{}", verdict == Verdict::kFail ? "FAILS " : "", claim_name(row.claim),
                     tolerance_text(row));
}

std::string sources_text(const ReproductionSection& section) {
  std::vector<std::string> sources;
  for (const ResultRow& row : section.rows) {
    if (row.source.empty()) continue;
    if (std::find(sources.begin(), sources.end(), row.source) == sources.end()) {
      sources.push_back(row.source);
    }
  }
  std::string text;
  for (const std::string& source : sources) text += (text.empty() ? "" : "; ") + source;
  return text;
}

std::string figures_text(const FigureTable& figures) {
  if (figures.lines.empty()) return "";
  std::vector<Table::Column> columns{{"", Align::kLeft}};
  for (const std::string& column : figures.columns) columns.push_back({column, Align::kRight});
  Table table(std::move(columns));
  for (const FigureTable::Line& line : figures.lines) {
    std::vector<std::string> cells{line.name};
    for (const std::uint64_t figure : line.figures) cells.push_back(grouped(figure));
    table.add(std::move(cells));
  }
  return table.text() + "\n";
}

ordered_json figures_json(const FigureTable& figures) {
  ordered_json lines = ordered_json::array();
  for (const FigureTable::Line& line : figures.lines) {
    lines.push_back({{"name", line.name}});
    for (std::size_t i = 0; i < figures.columns.size(); ++i) {
      lines.back()[figures.columns[i]] = line.figures.at(i);
    }
  }
  return lines;
}

std::string section_text(const ReproductionSection& section) {
  Table table(" | >ours | >published | unit | >differ | verdict");
  for (const ResultRow& row : section.rows) {
    table.add({row.name, figure(row.ours, row), published_text(row), row.unit, difference_text(row),
               verdict_text(row)});
  }
  std::string text = section.title + "\n" + std::string(section.title.size(), '-') + "\n";
  text += figures_text(section.figures) + table.text();
  for (const std::string& note : section.notes) text += paragraph(note) + "\n";
  const std::string sources = sources_text(section);
  if (!sources.empty()) text += paragraph("Published: " + sources + ".") + "\n";
  return text;
}

ordered_json optional_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

void Reproduction::add(ReproductionSection section) {
  sections.push_back(std::move(section));
  if (BatchProgress* const progress = BatchProgress::current()) {
    progress->complete(sections.back().title);
  }
}

std::size_t Reproduction::count(Verdict verdict) const {
  std::size_t rows = 0;
  for (std::size_t i = 0; i < kClaims; ++i) rows += count(verdict, static_cast<Claim>(i));
  return rows;
}

std::size_t Reproduction::count(Verdict verdict, Claim claim) const {
  std::size_t rows = 0;
  for (const ReproductionSection& section : sections) {
    rows += static_cast<std::size_t>(std::count_if(
        section.rows.begin(), section.rows.end(),
        [&](const ResultRow& row) { return row.verdict() == verdict && row.claim == claim; }));
  }
  return rows;
}

std::string reproduction_text(const Reproduction& reproduction) {
  FactList facts;
  facts.add("reproduces", reproduction.name);
  for (const auto& [label, text] : reproduction.inputs) facts.add(label, text);
  std::string verdicts;
  for (std::size_t i = 0; i < kJudgedClaims; ++i) {
    const auto claim = static_cast<Claim>(i);
    const std::size_t passed = reproduction.count(Verdict::kPass, claim);
    verdicts += fmt::format("{} {} of {}, ", claim_name(claim), passed,
                            passed + reproduction.count(Verdict::kFail, claim));
  }
  facts.add("verdicts",
            fmt::format("{}{} for reference", verdicts, reproduction.count(Verdict::kReference)));
  facts.add("time", with_prefix(reproduction.wall_seconds, "s"));
  std::string text = facts.text();
  for (const ReproductionSection& section : reproduction.sections) {
    text += "\n" + section_text(section);
  }
  return text;
}

ordered_json reproduction_json(const Reproduction& reproduction) {
  ordered_json document = {{"name", reproduction.name},
                           {"inputs", ordered_json::object()},
                           {"passed", reproduction.count(Verdict::kPass)},
                           {"failed", reproduction.count(Verdict::kFail)},
                           {"by_class", ordered_json::object()},
                           {"wall_seconds", reproduction.wall_seconds},
                           {"sections", ordered_json::array()},
                           {"rows", ordered_json::array()}};
  for (const auto& [label, text] : reproduction.inputs) document["inputs"][label] = text;
  for (std::size_t i = 0; i < kJudgedClaims; ++i) {
    const auto claim = static_cast<Claim>(i);
    document["by_class"][std::string(claim_name(claim))] = {
        {"passed", reproduction.count(Verdict::kPass, claim)},
        {"failed", reproduction.count(Verdict::kFail, claim)}};
  }
  for (const ReproductionSection& section : reproduction.sections) {
    document["sections"].push_back({{"title", section.title}, {"notes", section.notes}});
    if (!section.figures.lines.empty()) {
      document["sections"].back()["figures"] = figures_json(section.figures);
    }
    for (const ResultRow& row : section.rows) {
      document["rows"].push_back({{"section", section.title},
                                  {"name", row.name},
                                  {"ours", optional_json(row.ours)},
                                  {"published", optional_json(row.published)},
                                  {"unit", row.unit},
                                  {"difference", optional_json(row.difference())},
                                  {"bound", row.bound()},
                                  {"verdict", verdict_name(row.verdict())},
                                  {"class", claim_name(row.claim)},
                                  {"source", row.source}});
    }
  }
  return document;
}

}  // namespace systole::testbench
