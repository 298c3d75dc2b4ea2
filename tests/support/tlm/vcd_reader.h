#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace systole::test {

/// A value change dump, read strictly: what is no well-formed VCD of binary variables throws.
struct Vcd {
  /// No number: the variable had none (z).
  using Value = std::optional<std::uint64_t>;
  struct Change {
    std::uint64_t time;
    Value value;
  };
  struct Variable {
    unsigned width;
    std::vector<Change> changes;  ///< the first is its value at the beginning
  };

  std::map<std::string, Variable> variables;  ///< by dotted path
  std::uint64_t begin = 0, end = 0;

  [[nodiscard]] const std::vector<Change>& changes(const std::string& path) const {
    return variables.at(path).changes;
  }
  [[nodiscard]] Value last(const std::string& path) const { return changes(path).back().value; }
  /// Value at `time` in [begin, end].
  [[nodiscard]] Value at(const std::string& path, std::uint64_t time) const {
    const auto& all = changes(path);
    auto after = std::upper_bound(all.begin(), all.end(), time,
                                  [](auto t, const Change& change) { return t < change.time; });
    return (after - 1)->value;
  }
  /// How long the variable held `value`, in ps.
  [[nodiscard]] std::uint64_t time_at(const std::string& path, Value value) const {
    const auto& all = changes(path);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t until = i + 1 < all.size() ? all[i + 1].time : end;
      if (all[i].value == value) total += until - all[i].time;
    }
    return total;
  }
};

namespace vcd_detail {

[[noreturn]] inline void fail(const std::string& line, const char* what) {
  throw std::runtime_error("VCD: " + std::string(what) + ": '" + line + "'");
}

/// Reads `$scope` and `$var` up to `$enddefinitions`; returns paths by identifier.
inline std::map<std::string, std::string> read_header(std::istream& in, Vcd& vcd) {
  std::map<std::string, std::string> paths;
  std::vector<std::string> scopes;
  bool timescale = false;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string keyword, kind, name, id;
    words >> keyword;
    if (keyword == "$enddefinitions") {
      if (!scopes.empty() || !timescale) fail(line, "open scope or no timescale");
      return paths;
    }
    if (keyword == "$timescale") {
      timescale = line == "$timescale 1 ps $end";
    } else if (keyword == "$scope") {
      words >> kind >> name;
      scopes.push_back(name);
    } else if (keyword == "$upscope") {
      if (scopes.empty()) fail(line, "no scope is open");
      scopes.pop_back();
    } else if (keyword == "$var") {
      unsigned width = 0;
      words >> kind >> width >> id >> name;
      std::string path;
      for (const std::string& scope : scopes) path += scope + ".";
      path += name;
      if (width == 0 || !paths.emplace(id, path).second) fail(line, "bad width or identifier");
      if (!vcd.variables.emplace(path, Vcd::Variable{width, {}}).second) fail(line, "twice");
    } else if (keyword != "$version") {
      fail(line, "unknown keyword");
    }
  }
  throw std::runtime_error("VCD: no end of the header");
}

inline Vcd::Value parse_value(const std::string& digits, unsigned width, const std::string& line) {
  if (digits == "z") return std::nullopt;
  if (digits.empty() || digits.size() > width || digits.find_first_not_of("01") != digits.npos) {
    fail(line, "not a binary number of the variable's width");
  }
  if (digits.size() > 1 && digits[0] == '0') fail(line, "leading zeros");
  return std::stoull(digits, nullptr, 2);
}

}  // namespace vcd_detail

inline Vcd parse_vcd(const std::string& text) {
  using vcd_detail::fail;
  Vcd vcd;
  std::istringstream in(text);
  const auto paths = vcd_detail::read_header(in, vcd);
  std::unordered_map<std::string, Vcd::Variable*> by_id;
  for (const auto& [id, path] : paths) by_id[id] = &vcd.variables.at(path);
  bool begun = false, dumping = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) fail(line, "empty line");
    if (line[0] == '#') {
      const std::uint64_t time = std::stoull(line.substr(1));
      if (begun && time <= vcd.end) fail(line, "time does not move forward");
      if (!begun) vcd.begin = time;
      begun = true;
      vcd.end = time;
      continue;
    }
    if (line == "$dumpvars" || line == "$end") {
      dumping = line == "$dumpvars";
      continue;
    }
    const std::size_t space = line.find(' ');
    const bool vector = line[0] == 'b';
    if (vector != (space != line.npos)) fail(line, "neither a scalar nor a vector");
    const std::string id = vector ? line.substr(space + 1) : line.substr(1);
    const std::string digits = vector ? line.substr(1, space - 1) : line.substr(0, 1);
    const auto known = by_id.find(id);
    if (known == by_id.end() || !begun) fail(line, "unknown variable, or no time");
    Vcd::Variable& variable = *known->second;
    const Vcd::Value value = vcd_detail::parse_value(digits, variable.width, line);
    if (dumping != variable.changes.empty()) fail(line, "not in the first dump, or twice in it");
    if (!dumping && variable.changes.back().value == value) fail(line, "no change");
    variable.changes.push_back({vcd.end, value});
  }
  for (const auto& [path, variable] : vcd.variables) {
    if (variable.changes.empty()) throw std::runtime_error("VCD: no value of " + path);
  }
  return vcd;
}

}  // namespace systole::test
