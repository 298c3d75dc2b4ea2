#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "analysis/mapped_cost.h"
#include "base/printable.h"
#include "testbench/common/text.h"
#include "testbench/compare/comparison.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;
using Align = Table::Align;

bool differs(const Pair& pair) { return pair[0] != pair[1]; }

/// "+12.3%" from the first to the second, "new" and "gone" where one is 0, "-" where one is
/// unknown.
std::string change_of(const Pair& pair) {
  if (!pair[0] || !pair[1]) return "-";
  const double before = *pair[0], after = *pair[1];
  if (before == after) return "=";
  if (before == 0) return "new";
  if (after == 0) return "gone";
  return fmt::format("{:+.1f}%", 100 * (after / before - 1));
}

std::string count_of(const std::optional<double>& value) {
  return value ? grouped_rounded(*value) : "-";
}

std::string figure_of(const Comparison::Figure& figure, std::size_t side) {
  const std::optional<double>& value = figure.values[side];
  if (!value) return "-";
  if (figure.unit.empty()) return fmt::format("{:.4f}", *value);
  if (figure.unit == "mm2") return fmt::format("{:.2f} mm2", *value);
  if (figure.unit == "s" || figure.unit == "J") return with_prefix(*value, figure.unit);
  return count_of(value);
}

std::string value_of(const ordered_json& value) {
  if (value.is_null()) return "-";
  return hw::printable(value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true));
}

Table two_sided(const std::string& title) {
  return Table({{title}, {"a", Align::kRight}, {"b", Align::kRight}, {"change", Align::kRight}});
}

std::string keys_text(const Comparison& comparison) {
  if (comparison.keys.empty()) return "The machines have the same keys.\n";
  Table table("machine | >a | >b");
  for (const Comparison::Key& key : comparison.keys) {
    table.add({hw::printable(key.name), value_of(key.values[0]), value_of(key.values[1])});
  }
  return table.text();
}

std::string figures_text(const std::string& title, const std::vector<Comparison::Figure>& figures,
                         bool all) {
  Table table = two_sided(title);
  for (const Comparison::Figure& figure : figures) {
    if (!all && !differs(figure.values)) continue;
    table.add({hw::printable(figure.name), figure_of(figure, 0), figure_of(figure, 1),
               change_of(figure.values)});
  }
  return table.text();
}

std::string operators_text(const Comparison& comparison) {
  Table table("operator | >cycles a | >cycles b | >change | >bytes | >energy");
  for (const Comparison::Operator& op : comparison.operators) {
    table.add({hw::printable(analysis::short_name(op.name)), count_of(op.cycles[0]),
               count_of(op.cycles[1]), change_of(op.cycles), change_of(op.bytes),
               change_of(op.joules)});
  }
  return table.text();
}

/// The largest changes, as parts of their block's time; idle time aside.
std::string stalls_text(const Comparison& comparison) {
  constexpr std::size_t kLines = 15;
  std::map<std::string, Pair> totals;
  for (const Comparison::Stall& stall : comparison.stalls) {
    for (std::size_t side = 0; side < 2; ++side) {
      std::optional<double>& total = totals[stall.block][side];
      total = total.value_or(0) + stall.times[side].value_or(0);
    }
  }
  const auto size = [&](const Comparison::Stall& stall) {
    const Pair& total = totals[stall.block];
    return std::abs(stall.times[1].value_or(0) - stall.times[0].value_or(0)) /
           std::max({total[0].value_or(0), total[1].value_or(0), 1.0});
  };
  std::vector<Comparison::Stall> stalls;
  std::copy_if(comparison.stalls.begin(), comparison.stalls.end(), std::back_inserter(stalls),
               [](const auto& stall) { return stall.cause != "idle" && differs(stall.times); });
  std::stable_sort(stalls.begin(), stalls.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  const std::size_t more = stalls.size() - std::min(stalls.size(), kLines);
  stalls.resize(stalls.size() - more);
  Table table("block and cause | unit | >a | >b | >change");
  for (const Comparison::Stall& stall : stalls) {
    table.add({hw::printable(stall.block + "." + stall.cause), hw::printable(stall.unit),
               count_of(stall.times[0]), count_of(stall.times[1]), change_of(stall.times)});
  }
  return table.text() + (more == 0 ? "" : fmt::format("{} more differ less\n", more));
}

ordered_json to_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const Pair& pair) {
  return {{"a", to_json(pair[0])}, {"b", to_json(pair[1])}};
}

ordered_json to_json(const std::vector<Comparison::Figure>& figures) {
  ordered_json list = ordered_json::array();
  for (const Comparison::Figure& figure : figures) {
    list.push_back({{"name", figure.name}, {"unit", figure.unit}});
    list.back().update(to_json(figure.values));
  }
  return list;
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  FactList facts;
  facts.add("model", hw::printable(comparison.model));
  for (std::size_t side = 0; side < 2; ++side) {
    facts.add(side == 0 ? "a" : "b", fmt::format("{}: {}", hw::printable(comparison.paths[side]),
                                                 hw::printable(comparison.machines[side])));
  }
  std::string text = facts.text() + "\n" + keys_text(comparison) + "\n" +
                     figures_text("per inference", comparison.totals, true);
  if (!comparison.operators.empty()) text += "\n" + operators_text(comparison);
  return text + "\n" + figures_text("energy", comparison.energy, false) + "\n" +
         stalls_text(comparison);
}

ordered_json comparison_json(const Comparison& comparison) {
  ordered_json keys = ordered_json::array();
  for (const Comparison::Key& key : comparison.keys) {
    keys.push_back({{"key", key.name}, {"a", key.values[0]}, {"b", key.values[1]}});
  }
  ordered_json operators = ordered_json::array();
  for (const Comparison::Operator& op : comparison.operators) {
    operators.push_back({{"name", op.name},
                         {"cycles", to_json(op.cycles)},
                         {"bytes", to_json(op.bytes)},
                         {"energy_joules", to_json(op.joules)}});
  }
  ordered_json stalls = ordered_json::array();
  for (const Comparison::Stall& stall : comparison.stalls) {
    stalls.push_back({{"block", stall.block}, {"cause", stall.cause}, {"unit", stall.unit}});
    stalls.back().update(to_json(stall.times));
  }
  return {{"model", comparison.model},
          {"files", {{"a", comparison.paths[0]}, {"b", comparison.paths[1]}}},
          {"machines", {{"a", comparison.machines[0]}, {"b", comparison.machines[1]}}},
          {"machine_keys", std::move(keys)},
          {"totals", to_json(comparison.totals)},
          {"operators", std::move(operators)},
          {"energy", to_json(comparison.energy)},
          {"stalls", std::move(stalls)}};
}

}  // namespace systole::testbench
