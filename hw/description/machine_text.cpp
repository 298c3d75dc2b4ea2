#include "hw/description/machine_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/printable.h"
#include "hw/description/machine_rules.h"

namespace systole::hw {
namespace {

using Kind = MachineKey::Kind;

std::string words_text(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " or ";
    text += quoted_text(words[i]);
  }
  return text;
}

std::string range_text(const MachineKey& key) {
  const std::string range = number_text(key.min) + " to " + number_text(key.max);
  return key.unit.empty() ? range : std::string(key.unit) + ", " + range;
}

/// Least number of insertions, deletions and replacements that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string table_row(const MachineKey& key) {
  const bool is_word = key.kind == Kind::kWord;
  std::string range =
      is_word ? words_text(key.words) : number_text(key.min) + " to " + number_text(key.max);
  if (key.kind == Kind::kPowerOfTwo) range += ", power of two";
  return "| `" + std::string(key.path) + "` | " + std::string(key.unit) + " | " + range + " | " +
         value_text(key, Machine{}) + " | " + std::string(key.meaning) + " | " +
         std::string(key.source) + " |\n";
}

}  // namespace

std::string quoted_text(std::string_view text) { return '"' + printable(text, kShownBytes) + '"'; }

std::string number_text(double value) {
  if (std::fabs(value) < 1e15 && value == std::trunc(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string real_text(double value) {
  const std::string text = number_text(value);
  const bool looks_integer = text.find_first_not_of("-0123456789") == std::string::npos;
  return looks_integer ? text + ".0" : text;
}

std::string value_text(const MachineKey& key, const KeyValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return real_text(*number);
  if (const auto* name = std::get_if<std::string>(&value)) return quoted_text(*name);
  const std::int64_t integer = std::get<std::int64_t>(value);
  if (key.kind == Kind::kWord && accepts(key, value)) {
    return quoted_text(key.words[static_cast<std::size_t>(integer)]);
  }
  return std::to_string(integer);
}

std::string value_text(const MachineKey& key, const Machine& machine) {
  return value_text(key, key.get(machine));
}

std::optional<KeyValue> word_value(const MachineKey& key, std::string_view word) {
  const auto found = std::find(key.words.begin(), key.words.end(), word);
  if (found == key.words.end()) return std::nullopt;
  return static_cast<std::int64_t>(found - key.words.begin());
}

std::string expected(const MachineKey& key) {
  switch (key.kind) {
    case Kind::kInteger:
      return "an integer (" + range_text(key) + ")";
    case Kind::kPowerOfTwo:
      return "a power of two (" + range_text(key) + ")";
    case Kind::kNumber:
      return "a number (" + range_text(key) + ")";
    case Kind::kName:
      return "a name of letters, digits, '.', '_' and '-' (" + range_text(key) + ")";
    case Kind::kWord:
      break;
  }
  return words_text(key.words);
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  // A name far longer than any candidate is near to none; the bound keeps hostile input cheap.
  constexpr std::size_t kLongest = 64;
  if (name.size() > kLongest) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string_view nearest_machine_key(std::string_view path) {
  std::vector<std::string_view> whole, after_dot;
  for (const MachineKey& key : machine_keys()) {
    whole.push_back(key.path);
    after_dot.push_back(key_of(key.path));
  }
  const std::string_view best = nearest(path, whole);
  if (!best.empty()) return best;
  const std::string_view wanted = nearest(key_of(path), after_dot);
  const auto found = std::find(after_dot.begin(), after_dot.end(), wanted);
  return found == after_dot.end() ? std::string_view()
                                  : whole[static_cast<std::size_t>(found - after_dot.begin())];
}

std::string memory_advice(std::string_view path, std::uint64_t needed) {
  const auto most = static_cast<std::uint64_t>(find_machine_key(path)->max);
  if (needed > most) return "; " + std::string(path) + " is " + std::to_string(most) + " at most";
  std::uint64_t size = 1;
  while (size < needed) size *= 2;
  return "; --set " + std::string(path) + "=" + std::to_string(size);
}

std::string to_toml(const Machine& machine) {
  std::string text;
  std::string_view section;
  for (const MachineKey& key : machine_keys()) {
    if (section_of(key.path) != section) {
      section = section_of(key.path);
      text += "\n[" + std::string(section) + "]\n";
    }
    text += std::string(key_of(key.path)) + " = " + value_text(key, machine) + "  # " +
            std::string(key.meaning) + ": " + expected(key) + "\n";
  }
  return text;
}

std::string describe_machine_keys() {
  std::string text =
      "| key | unit | allowed | default | meaning | source of the default |\n"
      "|---|---|---|---|---|---|\n";
  for (const MachineKey& key : machine_keys()) text += table_row(key);
  text += "\nRules that join several keys:\n\n";
  for (const MachineRule& rule : machine_rules()) {
    text += "- `" + std::string(rule.paths.front()) + "`: " + std::string(rule.expected) + "\n";
  }
  return text;
}

}  // namespace systole::hw
