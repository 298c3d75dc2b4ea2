#include "testbench/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, const char*>, 11> kTotals = {
    {{"cycles", "core cycles"},
     {"seconds", "s"},
     {"bound", "core cycles"},
     {"over_bound", ""},
     {"utilisation", ""},
     {"dram_read_bytes", "bytes"},
     {"dram_write_bytes", "bytes"},
     {"energy_joules", "J"},
     {"area_mm2", "mm2"},
     {"commands", "commands"},
     {"accuracy", ""}}};

/// A statistics document and where it came from. Every access says what is wrong with the file.
class Statistics {
 public:
  explicit Statistics(const std::string& path) : path_(path) {
    const hw::MappedFile file(path);
    try {
      document_ = ordered_json::parse(file.bytes());
    } catch (const ordered_json::exception&) {
      refuse("no JSON, expected the document of systole run --stats");
    }
    if (!document_.is_object() || !document_.contains("schema_version")) {
      refuse("no schema_version, expected the document of systole run --stats");
    }
    const ordered_json& version = document_["schema_version"];
    if (version != kStatisticsVersion) {
      refuse(
          fmt::format("schema_version: found {}, expected {}", shown(version), kStatisticsVersion));
    }
    for (const char* name : {"machine", "model"}) {
      if (!at(document_, name).is_string()) refuse_kind(name, document_[name], "a text");
    }
    for (const char* name : {"machine_keys", "blocks", "energy"}) object(document_, name);
    if (!at(document_, "operators").is_array()) {
      refuse_kind("operators", document_["operators"], "a list");
    }
    if (number(document_, "images").value_or(0) < 1) {
      refuse_kind("images", document_["images"], "a number from 1");
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw hw::InputError(hw::printable(path_) + ": " + why);
  }

  [[nodiscard]] const ordered_json& document() const { return document_; }
  [[nodiscard]] std::string text(const char* name) const {
    return document_.at(name).get<std::string>();
  }

  /// A member, which must be there.
  const ordered_json& at(const ordered_json& in, const std::string& name) const {
    if (!in.is_object() || !in.contains(name)) {
      refuse(
          fmt::format("no {}, expected the document of systole run --stats", hw::printable(name)));
    }
    return in[name];
  }
  const ordered_json& object(const ordered_json& in, const std::string& name) const {
    if (!at(in, name).is_object()) refuse_kind(name, in[name], "an object");
    return in[name];
  }
  /// Nothing for null.
  std::optional<double> number(const ordered_json& in, const std::string& name) const {
    const ordered_json& value = at(in, name);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number()) refuse_kind(name, value, "a number");
    return value.get<double>();
  }

  /// What must be the same for figures to be comparable.
  [[nodiscard]] ordered_json network() const {
    return {{"model", at(document_, "model")},
            {"seeded", at(document_, "seeded")},
            {"decode", at(document_, "decode")}};
  }

 private:
  static std::string shown(const ordered_json& value) {
    constexpr std::size_t kShown = 60;
    std::string text = value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
    if (text.size() > kShown) text = text.substr(0, kShown) + "...";
    return hw::printable(text);
  }
  [[noreturn]] void refuse_kind(const std::string& name, const ordered_json& found,
                                std::string_view expected) const {
    refuse(fmt::format("{}: found {}, expected {}", hw::printable(name), shown(found), expected));
  }

  std::string path_;
  ordered_json document_;
};

/// The line of that key; made if there is none.
template <typename Line, typename Is, typename Make>
Line& line_of(std::vector<Line>& lines, Is is, Make make) {
  const auto found = std::find_if(lines.begin(), lines.end(), is);
  if (found != lines.end()) return *found;
  lines.push_back(make());
  return lines.back();
}

void add_keys(Comparison& comparison, std::size_t side, const std::string& path,
              const ordered_json& value) {
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      add_keys(comparison, side, path.empty() ? name : path + "." + name, inner);
    }
  } else if (path != "summary" && path != "name") {
    line_of(
        comparison.keys, [&](const auto& key) { return key.name == path; },
        [&] {
          return Comparison::Key{path, {}};
        })
        .values[side] = value;
  }
}

void add_operators(Comparison& comparison, std::size_t side, const Statistics& statistics) {
  for (const ordered_json& op : statistics.document().at("operators")) {
    const ordered_json& name = statistics.at(op, "name");
    if (!name.is_string()) statistics.refuse("operators: a name is no text");
    Comparison::Operator& line = line_of(
        comparison.operators, [&](const auto& known) { return known.name == name; },
        [&] {
          return Comparison::Operator{name.get<std::string>(), {}, {}, {}};
        });
    line.cycles[side] = statistics.number(op, "simulated_cycles");
    line.joules[side] = statistics.number(op, "energy_joules");
    line.bytes[side] = statistics.number(op, "read_bytes").value_or(0) +
                       statistics.number(op, "written_bytes").value_or(0);
  }
}

void add_stalls(Comparison& comparison, std::size_t side, const Statistics& statistics) {
  const ordered_json& document = statistics.document();
  const double images = *statistics.number(document, "images");
  for (const auto& [name, block] : document.at("blocks").items()) {
    const ordered_json& unit = statistics.at(block, "unit");
    if (!unit.is_string()) statistics.refuse("blocks: a unit is no text");
    const auto add = [&, block_name = name](const std::string& cause, double time) {
      line_of(
          comparison.stalls,
          [&](const auto& stall) { return stall.block == block_name && stall.cause == cause; },
          [&] {
            return Comparison::Stall{block_name, cause, unit.get<std::string>(), {}};
          })
          .times[side] = time / images;
    };
    add("busy", statistics.number(block, "busy").value_or(0));
    const ordered_json& stalled = statistics.object(block, "stalled");
    for (const auto& [cause, time] : stalled.items()) {
      add(cause, statistics.number(stalled, cause).value_or(0));
    }
    add("idle", statistics.number(block, "idle").value_or(0));
  }
}

}  // namespace

Comparison compare_statistics(const std::array<std::string, 2>& paths) {
  const std::array<Statistics, 2> both = {Statistics(paths[0]), Statistics(paths[1])};
  const std::array<ordered_json, 2> networks = {both[0].network(), both[1].network()};
  for (const auto& [name, value] : networks[0].items()) {
    if (networks[1][name] == value) continue;
    const auto shown = [](const ordered_json& of) {
      return hw::printable(of.dump(-1, ' ', true, ordered_json::error_handler_t::replace));
    };
    both[1].refuse(fmt::format("{}: found {}, expected {} as in {}", name, shown(networks[1][name]),
                               shown(value), hw::printable(paths[0])));
  }
  Comparison comparison;
  comparison.model = both[0].text("model");
  comparison.paths = paths;
  for (const auto& [name, unit] : kTotals) comparison.totals.push_back({name, unit, {}});
  for (std::size_t side = 0; side < 2; ++side) {
    const Statistics& statistics = both[side];
    const ordered_json& document = statistics.document();
    comparison.machines[side] = statistics.text("machine");
    add_keys(comparison, side, "", document.at("machine_keys"));
    for (Comparison::Figure& total : comparison.totals) {
      total.values[side] = statistics.number(document, total.name);
    }
    add_operators(comparison, side, statistics);
    for (const auto& [name, joules] : document.at("energy").items()) {
      line_of(
          comparison.energy, [&, cause = name](const auto& line) { return line.name == cause; },
          [&, cause = name] {
            return Comparison::Figure{cause, "J", {}};
          })
          .values[side] = statistics.number(document.at("energy"), name);
    }
    add_stalls(comparison, side, statistics);
  }
  const auto same = [](const Comparison::Key& key) { return key.values[0] == key.values[1]; };
  comparison.keys.erase(std::remove_if(comparison.keys.begin(), comparison.keys.end(), same),
                        comparison.keys.end());
  return comparison;
}

}  // namespace systole::testbench
