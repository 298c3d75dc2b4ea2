#include "hw/description/machine_file.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_presets.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "hw/description/toml_text.h"

namespace systole::hw {
namespace {

using Kind = MachineKey::Kind;

constexpr std::string_view kMachineSuffix = ".toml";

/// Returns the machine that a preset describes, or throws InputError.
using BaseLoader = std::function<Machine(const std::string& preset)>;
using Place = toml::source_position;

constexpr std::string_view kBase = "base";
constexpr std::size_t kMaxProblems = 100;  // reported one by one

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
    problems_.push_back(
        {place, toml_place(source_, place) + printable(path, kShownBytes) + ": " + text});
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
          "found " + found_text(node) + ", expected the name of a machine preset in quotes");
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
          "found " + found_text(node) + ", expected a section [" + std::string(section) + "]");
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
    add(place, key.path, "found " + found_text(node) + ", expected " + expected(key));
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

/// Presets that are being read, innermost last: a preset may have a base itself.
using BaseChain = std::vector<std::string>;

std::string read_text(const std::string& path) {
  return read_toml(path, kMaxMachineFile, "a machine file");
}

Machine parse(std::string_view text, const std::string& source_name, const BaseChain& chain);

Machine load_preset(const std::string& name, BaseChain chain) {
  if (std::find(chain.begin(), chain.end(), name) != chain.end()) {
    throw InputError("found " + quoted_text(name) + ", which is its own base");
  }
  const std::string path = machine_preset_path(name);
  if (path.empty()) {
    throw InputError("found " + quoted_text(name) + ", expected " + list_of_machine_presets());
  }
  chain.push_back(name);
  return parse(read_text(path), path, chain);
}

Machine parse(std::string_view text, const std::string& source_name, const BaseChain& chain) {
  const std::string source = printable(source_name);
  const toml::table root = parse_toml(text, source, kMaxMachineFile, "a machine description");
  return MachineReader(source, [&](const std::string& base) { return load_preset(base, chain); })
      .read(root);
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos ||
         (text.size() >= kMachineSuffix.size() &&
          text.compare(text.size() - kMachineSuffix.size(), kMachineSuffix.size(),
                       kMachineSuffix) == 0);
}

template <typename Number>
std::optional<KeyValue> from_text(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<KeyValue> convert(const MachineKey& key, std::string_view text) {
  switch (key.kind) {
    case Kind::kInteger:
    case Kind::kPowerOfTwo:
      return from_text<std::int64_t>(text);
    case Kind::kNumber:
      return from_text<double>(text);
    case Kind::kName:
      return std::string(text);
    case Kind::kWord:
      break;
  }
  return word_value(key, text);
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& source_name) {
  return parse(text, source_name, {});
}

Machine load_machine(const std::string& path) { return parse(read_text(path), path, {}); }

Machine find_machine(const std::string& name_or_path) {
  if (is_path(name_or_path)) return load_machine(name_or_path);
  if (machine_preset_path(name_or_path).empty()) {
    throw InputError("machine: found " + quoted_text(name_or_path) + ", expected " +
                     list_of_machine_presets() + ", or a path to a .toml file");
  }
  return load_preset(name_or_path, {});
}

void set_key(Machine& machine, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw InputError("--set " + quoted_text(assignment) + ": expected section.key=value");
  }
  const std::string_view path = assignment.substr(0, equals);
  const std::string_view text = assignment.substr(equals + 1);
  const std::string where = "--set " + printable(path, kShownBytes) + ": ";
  const MachineKey* key = find_machine_key(path);
  if (key == nullptr) {
    const std::string_view meant = nearest_machine_key(path);
    throw InputError(where + "unknown key" +
                     (meant.empty() ? ", expected section.key of a machine description"
                                    : ", did you mean " + std::string(meant) + "?"));
  }
  const auto value = convert(*key, text);
  if (!value || !accepts(*key, *value)) {
    throw InputError(where + "found " + quoted_text(text) + ", expected " + expected(*key));
  }
  key->set(machine, *value);
}

}  // namespace systole::hw
