#include "reproduce/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_text.h"
#include "hw/description/toml_text.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// The text with its `{NAME}` filled, whose names are added to `used`.
std::string filled(const std::string& text, const TextArguments& arguments,
                   std::set<std::string>& used, const std::string& where) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      result += text[i];
      continue;
    }
    const std::string name = text.substr(i + 1, end - i - 1);
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
      throw hw::InputError(fmt::format("{}: found {{{}}}, which the program does not fill", where,
                                       hw::printable(name, hw::kShownBytes)));
    }
    used.insert(name);
    result += found->second;
    i = end;
  }
  return result;
}

template <typename Entry>
void expect_all_used(const std::map<std::string, Entry>& given, const std::set<std::string>& used,
                     const std::string& where) {
  for (const auto& [name, entry] : given) {
    if (used.count(name) != 0) continue;
    throw hw::InputError(fmt::format("{}: found no use of '{}', expected one", where, name));
  }
}

ResultRow beside(std::string name, std::optional<double> ours, const Published& published) {
  if (!published.source.text.empty()) return compare(std::move(name), ours, published);
  return measured(std::move(name), ours.value(), published.unit);
}

}  // namespace

const PublishedTable::Row& PublishedTable::row(std::string_view name) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& each) { return each.name == name; });
  if (found != rows.end()) return *found;
  throw hw::InputError(fmt::format("{}: found no row '{}', expected it", place, name));
}

const Published& PublishedTable::cell(std::string_view name, std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    throw hw::InputError(fmt::format("{}: found no column '{}', expected it", place, column));
  }
  const auto index = static_cast<std::size_t>(found - columns.begin());
  const Published& found_cell = row(name).cells[index];
  if (!std::isnan(found_cell.value)) return found_cell;
  throw hw::InputError(
      fmt::format("{}: found no number in row '{}', column '{}'", place, name, column));
}

std::vector<ResultRow> PublishedTable::compare_row(std::string_view name,
                                                   const std::vector<double>& ours,
                                                   std::string_view between) const {
  const Row& published = row(name);
  if (ours.size() != columns.size()) {
    throw hw::InputError(
        fmt::format("{}: found {} columns, expected {}", place, columns.size(), ours.size()));
  }
  std::vector<ResultRow> result;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    result.push_back(
        beside(fmt::format("{}{}{}", name, between, columns[i]), ours[i], published.cells[i]));
  }
  return result;
}

const PublishedPaper& PublishedPaper::load(const std::string& name) {
  static std::map<std::string, PublishedPaper> papers;
  const auto found = papers.find(name);
  if (found != papers.end()) return found->second;
  const std::string path = data_file("published/" + name + ".toml");
  return papers.emplace(name, parse(hw::read_toml(path, kMaxFile, kExpected), path)).first->second;
}

template <typename Entry>
const Entry& PublishedPaper::find(const ByKey<Entry>& entries, const char* kind,
                                  std::string_view key) const {
  const auto found = entries.find(key);
  if (found != entries.end()) return found->second;
  throw hw::InputError(fmt::format("{}: found no {}.{}, expected it", source_, kind, key));
}

const Published& PublishedPaper::figure(std::string_view key) const {
  const Published& found = find(figures_, "figures", key);
  if (!std::isnan(found.value)) return found;
  throw hw::InputError(fmt::format("{}: figures.{}: found no value, expected one", source_, key));
}

Published PublishedPaper::figure(std::string_view key, double value) const {
  Published result = find(figures_, "figures", key);
  result.value = value;
  return result;
}

const PublishedTable& PublishedPaper::table(std::string_view key) const {
  return find(tables_, "tables", key);
}

Reproduction PublishedPaper::reproduction() const {
  Reproduction result;
  result.name = std::filesystem::path(source_).stem().string();
  result.inputs = inputs_;
  return result;
}

ReproductionSection PublishedPaper::section(std::string_view key, const Metrics& metrics,
                                            const TextArguments& text) const {
  const Section& section = find(sections_, "sections", key);
  const std::string where = fmt::format("{}: sections.{}", source_, key);
  std::set<std::string> arguments_used, metrics_used;
  const auto fill = [&](const std::string& form) {
    return filled(form, text, arguments_used, where);
  };
  ReproductionSection result{fill(section.title), {}, {}, {}};
  for (const std::string& note : section.notes) result.notes.push_back(fill(note));
  const auto value_of = [&](const std::string& metric) {
    const auto found = metrics.find(metric);
    if (found == metrics.end()) {
      throw hw::InputError(fmt::format("{}: found metric '{}', which the program does not compute",
                                       where, hw::printable(metric, hw::kShownBytes)));
    }
    metrics_used.insert(metric);
    return found->second;
  };
  for (const Row& row : section.rows) {
    std::optional<double> ours;
    if (!row.metric.empty()) ours = value_of(row.metric);
    if (ours && std::isnan(*ours) && !row.figure.tolerance) {
      if (row.figure.source.text.empty()) continue;
      ours.reset();
    }
    Published published = row.figure;
    if (!row.value.empty()) published.value = value_of(row.value);
    result.rows.push_back(beside(fill(row.name), ours, published));
  }
  expect_all_used(text, arguments_used, where);
  expect_all_used(metrics, metrics_used, where);
  return result;
}

}  // namespace systole::testbench
