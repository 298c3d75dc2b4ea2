#include "hw/description/machine_parser.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"

namespace systole::hw {
namespace {

using Kind = MachineKey::Kind;
using Place = toml::source_position;

constexpr std::string_view kBase = "base";
constexpr std::size_t kMaxProblems = 100;     // reported one by one
constexpr std::size_t kMaxSyntaxBytes = 200;  // of the TOML parser's own message
constexpr std::uint32_t kMaxDots = 16;        // in one line

std::string at(const std::string& source, Place place) {
  return source + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

/// What a TOML value is, for "found ...".
std::string description(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return quoted_text(node.ref<std::string>());
    case toml::node_type::integer:
      return std::to_string(node.ref<std::int64_t>());
    case toml::node_type::floating_point:
      return real_text(node.ref<double>());
    case toml::node_type::boolean:
      return node.ref<bool>() ? "true" : "false";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

/// The value as the key's kind holds it; none if it has another type.
std::optional<KeyValue> convert(const MachineKey& key, const toml::node& node) {
  const auto* text = node.as_string();
  const auto* integer = node.as_integer();
  const auto* number = node.as_floating_point();
  switch (key.kind) {
    case Kind::kInteger:
    case Kind::kPowerOfTwo:
      if (integer != nullptr) return integer->get();
      break;
    case Kind::kNumber:
      if (number != nullptr) return number->get();
      if (integer != nullptr) return static_cast<double>(integer->get());
      break;
    case Kind::kName:
      if (text != nullptr) return text->get();
      break;
    case Kind::kWord:
      if (text != nullptr) return word_value(key, text->get());
      break;
  }
  return std::nullopt;
}

/// The text made safe for the TOML library (3.3), whose limits hostile input could pass:
/// - it and the destructor of its tree recurse for each level of dotted keys, so that a line of
/// dots
///   would exhaust the stack. No key of ours has more than one dot.
/// - its tables of non-ASCII spaces have undefined behaviour for U+00A1 to U+0499. Machines are
///   described in ASCII but for comments, so every other character becomes one '?'.
std::string prepared(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  std::string safe;
  Place place{1, 1};
  std::uint32_t dots = 0;
  for (const char c : text) {
    const unsigned byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xC0U) == 0x80U;
    if (c == '.' && ++dots > kMaxDots) {
      throw InputError(at(source, place) + "found more than " + std::to_string(kMaxDots) +
                       " dots in a line, expected keys of the form section.key");
    }
    if (!continues) {
      safe += byte < 0x80U ? c : '?';
      ++place.column;
    }
    if (c == '\n') {
      place = {place.line + 1, 1};
      dots = 0;
    }
  }
  return safe;
}

std::vector<std::string_view> sections() {
  std::vector<std::string_view> names;
  for (const MachineKey& key : machine_keys()) {
    const std::string_view section = section_of(key.path);
    if (!section.empty() && (names.empty() || names.back() != section)) names.push_back(section);
  }
  return names;
}

/// The keys of a section, or what may be outside the sections ("").
std::vector<std::string_view> keys_in(std::string_view section) {
  std::vector<std::string_view> names;
  for (const MachineKey& key : machine_keys()) {
    if (section_of(key.path) == section) names.push_back(key_of(key.path));
  }
  if (!section.empty()) return names;
  names.push_back(kBase);
  for (const std::string_view name : sections()) names.push_back(name);
  return names;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

/// Walks the tree of one file and gathers its machine and its problems.
class MachineReader {
 public:
  MachineReader(const std::string& source, const BaseLoader& load_base)
      : source_(source), load_base_(load_base) {}

  Machine read(const toml::table& root) {
    if (root.empty()) {
      throw InputError(source_ +
                       ": found no key, expected a machine: base = \"NAME\" of a preset, "
                       "or sections as [array] with their keys");
    }
    if (const toml::node* base = root.get(kBase)) read_base(*base);
    for (auto&& [key, node] : root) {
      if (key.str() != kBase) read_top(key, node);
    }
    // Rules would judge defaults that the base was to replace.
    if (!base_failed_) apply_rules();
    throw_problems();
    return machine_;
  }

 private:
  struct Problem {
    Place place;
    std::string text;
  };

  void add(Place place, std::string_view path, const std::string& text) {
    problems_.push_back({place, at(source_, place) + printable(path, kShownBytes) + ": " + text});
  }

  void read_base(const toml::node& node) {
    const auto* name = node.as_string();
    if (name != nullptr) {
      try {
        machine_ = load_base_(name->get());
        machine_.name = Machine{}.name;  // it is another machine than its base
        return;
      } catch (const InputError& error) {
        add(node.source().begin, kBase, error.what());
      }
    } else {
      add(node.source().begin, kBase,
          "found " + description(node) + ", expected the name of a machine preset in quotes");
    }
    base_failed_ = true;
  }

  void read_top(const toml::key& key, const toml::node& node) {
    const std::string_view name = key.str();
    const auto known = sections();
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      read_section(name, node);
    } else if (const MachineKey* entry = find_machine_key(name);
               entry && section_of(name).empty()) {
      read_value(*entry, node);
    } else if (node.is_table()) {
      add_unknown(key.source().begin, name, "section", nearest(name, known), joined(known));
    } else {
      add_unknown_key(key.source().begin, "", name);
    }
  }

  void read_section(std::string_view section, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return add(
          node.source().begin, section,
          "found " + description(node) + ", expected a section [" + std::string(section) + "]");
    }
    for (auto&& [key, value] : *table) {
      const std::string path = std::string(section) + "." + std::string(key.str());
      if (const MachineKey* entry = find_machine_key(path)) {
        read_value(*entry, value);
      } else {
        add_unknown_key(key.source().begin, section, path);
      }
    }
  }

  void read_value(const MachineKey& key, const toml::node& node) {
    const Place place = node.source().begin;
    const auto value = convert(key, node);
    if (value && accepts(key, *value)) {
      key.set(machine_, *value);
      places_[key.path] = place;
      return;
    }
    bad_.push_back(key.path);
    add(place, key.path, "found " + description(node) + ", expected " + expected(key));
  }

  void add_unknown_key(Place place, std::string_view section, std::string_view path) {
    // Looking for the nearest key of every one of very many would take long, to no use.
    const std::string_view meant =
        problems_.size() < kMaxProblems ? nearest_machine_key(path) : std::string_view();
    add_unknown(place, path, "key", meant, joined(keys_in(section)));
  }

  void add_unknown(Place place, std::string_view path, const std::string& kind,
                   std::string_view meant, const std::string& known) {
    add(place, path,
        "unknown " + kind +
            (meant.empty() ? ", expected one of " + known
                           : ", did you mean " + std::string(meant) + "?"));
  }

  void apply_rules() {
    for (const MachineProblem& problem : machine_problems(machine_, bad_)) {
      // Blame the key itself if the file sets it, else the first other key of the rule that it
      // sets.
      const auto set = std::find_if(problem.paths.begin(), problem.paths.end(),
                                    [&](std::string_view path) { return places_.count(path) > 0; });
      const Place place = set == problem.paths.end() ? Place{1, 1} : places_[*set];
      add(place, problem.paths.front(), problem.text);
    }
  }

  void throw_problems() {
    if (problems_.empty()) return;
    std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
    std::string lines;
    for (std::size_t i = 0; i < std::min(problems_.size(), kMaxProblems); ++i) {
      lines += (i == 0 ? "" : "\n") + problems_[i].text;
    }
    if (problems_.size() > kMaxProblems) {
      lines += "\n" + source_ + ": and " + std::to_string(problems_.size() - kMaxProblems) +
               " more errors";
    }
    throw InputError(lines);
  }

  const std::string& source_;
  const BaseLoader& load_base_;
  Machine machine_;
  bool base_failed_ = false;
  std::vector<Problem> problems_;
  std::vector<std::string_view> bad_;         // keys whose value was refused
  std::map<std::string_view, Place> places_;  // of the values that were taken
};

}  // namespace

Machine parse_machine(std::string_view text, const std::string& source_name,
                      const BaseLoader& load_base) {
  const std::string source = printable(source_name);
  if (text.size() > kMaxMachineFile) {
    throw InputError(source + ": found more than " + std::to_string(kMaxMachineFile) +
                     " bytes, expected a machine description");
  }
  const std::string safe = prepared(text, source);
  try {
    return MachineReader(source, load_base).read(toml::parse(safe));
  } catch (const toml::parse_error& error) {
    throw InputError(at(source, error.source().begin) +
                     "not valid TOML: " + printable(error.description(), kMaxSyntaxBytes));
  }
}

}  // namespace systole::hw
