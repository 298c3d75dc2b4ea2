#include "hw/description/machine_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_names.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "hw/description/toml_text.h"
#include "hw/ring/ring_map.h"

namespace systole::hw {
namespace {

using Place = toml::source_position;

constexpr std::string_view kCore = "core", kUse = "use", kKind = "kind", kRegisters = "registers",
                           kNode = "node";
/// A kind of core, with attention engines, and the preset of one.
constexpr std::string_view kEngines = "vitcod";
/// A ring of FP16 cores, the preset of one, and the key of what each has of the memory.
constexpr std::string_view kRing = "ring", kRingPreset = "dfx", kDdrMib = "ddr_mib";
/// The tables of GPT-2 medium are 102 MiB.
constexpr std::uint32_t kDefaultDdrMib = 128, kMaxDdrMib = 32768;
constexpr std::size_t kMaxProblems = 100;  // reported one by one
constexpr std::int64_t kMaxLinkNs = 1'000'000, kMaxNode = 255;

/// Whether its core is one of tiles.
bool has_tiles(const Machine& machine) {
  return machine.dfx.cores == 0 && machine.stream.units == 0 &&
         machine.dynamic.kind == DynamicKind::kNone;
}

/// Walks the tree of one file and gathers its machine and its problems.
class MachineReader {
 public:
  MachineReader(const std::string& source, const BaseLoader& load_base)
      : source_(source), load_base_(load_base) {}

  CoreSystem read(const toml::table& root) {
    if (root.empty()) {
      throw InputError(source_ +
                       ": found no key, expected a machine: base = \"NAME\" of a preset, "
                       "or sections as [array] with their keys");
    }
    if (const toml::node* base = root.get(kBaseKey)) read_base(*base);
    const toml::node* const cores = root.get(kCore);
    const bool has_cores = cores != nullptr && cores->is_array();
    for (auto&& [key, node] : root) {
      if (key.str() == kBaseKey || (has_cores && key.str() == kCore)) continue;
      read_top(key, node);
    }
    // Rules would judge defaults that the base was to replace.
    if (!base_failed_) apply_rules();
    CoreSystem system{machine_, {}, 0};
    // What is wrong with the machine would be repeated for each core.
    if (has_cores && problems_.empty()) read_cores(*cores->as_array(), system);
    throw_problems();
    return system;
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
        add(node.source().begin, kBaseKey, error.what());
      }
    } else {
      add(node.source().begin, kBaseKey,
          "found " + found_text(node) + ", expected the name of a machine preset in quotes");
    }
    base_failed_ = true;
  }

  void read_cores(const toml::array& tables, CoreSystem& system) {
    if (tables.empty() || tables.size() > kMaxCores) {
      return add(tables.source().begin, kCore,
                 "found " + std::to_string(tables.size()) + " tables, expected 1 to " +
                     std::to_string(kMaxCores));
    }
    for (const toml::node& node : tables) {
      const toml::table* const table = node.as_table();
      if (table == nullptr) {
        add(node.source().begin, kCore, "found " + found_text(node) + ", expected [[core]] tables");
        continue;
      }
      MachineReader reader(source_, load_base_);
      reader.machine_ = machine_;
      system.cores.push_back(reader.read_core(*table, system));
      problems_.insert(problems_.end(), reader.problems_.begin(), reader.problems_.end());
      const std::size_t index = system.cores.size() - 1;
      if (const std::string problem = address_problem(system, index); !problem.empty()) {
        const toml::node* const at = table->get(kRegisters);
        add(at == nullptr ? table->source().begin : at->source().begin, kRegisters, problem);
      }
    }
    if (!problems_.empty()) return;
    place_cores(system);
    if (const std::string problem = mesh_problem(system); !problem.empty()) {
      add(tables.source().begin, kCore, problem);
    }
    if (const std::string problem = ring_problem(system); !problem.empty()) {
      add(tables.source().begin, kCore, problem);
    }
    if (tiles_of(system).cores.empty()) {
      add(tables.source().begin, kCore,
          "found a ring alone, expected a tile core beside it (or base = \"dfx\" without tables)");
    }
  }

  /// A core after those of `system`. Its problems stay with this reader.
  CoreSite read_core(const toml::table& table, const CoreSystem& system) {
    const std::size_t index = system.cores.size();
    CoreSite core{"core" + std::to_string(index), {}, default_registers(index), 0};
    is_ring_ = is_kind(table, kRing);
    if (is_ring_) {
      core.name = kRing;
      core.registers = dfx::kRingWindow;
      take_ring_keys(load_base_(std::string(kRingPreset)));
    }
    if (const toml::node* const use = table.get(kUse)) {
      read_use(*use);
    } else if (is_kind(table, kEngines) && machine_.attention.lines == 0) {
      take_core_keys(load_base_(std::string(kEngines)));
    }
    for (auto&& [key, node] : table) {
      const std::string_view name = key.str();
      const Place place = node.source().begin;
      const auto refuse = [&, &value = node](const std::string& what) {
        add(place, name, "found " + found_text(value) + ", expected " + what);
      };
      const auto* const text = node.as_string();
      const auto* const integer = node.as_integer();
      if (name == kUse) continue;  // read before
      if (name == "name") {
        if (text == nullptr || !is_core_name(text->get())) {
          refuse(
              "a name of letters, digits and '_' that begins with a letter, up to 32, in quotes");
        } else {
          core.name = text->get();
        }
      } else if (name == kKind) {
        read_kind(node);
      } else if (is_ring_ && (name == kRegisters || name == "link_ns")) {
        refuse("no such key of a ring, whose window is at 2^44 and whose DDR ports are at the bus");
      } else if (is_ring_ && name == kDdrMib) {
        if (integer == nullptr || integer->get() < 1 || integer->get() > kMaxDdrMib) {
          refuse("an integer (MiB, 1 to " + std::to_string(kMaxDdrMib) + ")");
        } else {
          machine_.dram.mib = static_cast<std::uint32_t>(integer->get());
        }
      } else if (name == kRegisters) {
        if (integer == nullptr || integer->get() < 0) {
          refuse("a byte address on the bus");
        } else {
          core.registers = static_cast<std::uint64_t>(integer->get());
        }
      } else if (name == kNode) {
        if (is_ring_ || integer == nullptr || integer->get() < 0 || integer->get() > kMaxNode) {
          refuse(is_ring_ ? "no such key of a ring" : "a node of the mesh, from 0, row by row");
        } else {
          core.node = static_cast<std::uint32_t>(integer->get());
        }
      } else if (name == "link_ns") {
        if (integer == nullptr || integer->get() < 0 || integer->get() > kMaxLinkNs) {
          refuse("an integer (ns, 0 to " + std::to_string(kMaxLinkNs) + ")");
        } else {
          core.link_ns = static_cast<std::uint32_t>(integer->get());
        }
      } else {
        read_core_section(key, node);
      }
    }
    const Place place =
        table.get("name") == nullptr ? table.source().begin : table.get("name")->source().begin;
    const auto same = [&](const CoreSite& other) { return other.name == core.name; };
    if (std::any_of(system.cores.begin(), system.cores.end(), same)) {
      add(place, "name", "found \"" + core.name + "\" twice, expected a unique name");
    }
    if (is_block_name(core.name)) {
      add(place, "name", "found \"" + core.name + "\", which names another block of the system");
    }
    if (problems_.empty()) apply_rules();
    if (problems_.empty() && is_ring_) {
      check_ring(table, system);
    } else if (problems_.empty() && !has_tiles(machine_)) {
      add(table.source().begin, kCore,
          "found a table in a machine of another kind (dfx.cores, stream.units, dynamic.kind), "
          "expected a tile machine");
    }
    if (problems_.empty() && is_kind(table, kEngines) && machine_.attention.lines == 0) {
      add(table.get(kKind)->source().begin, kKind,
          "found \"vitcod\" and attention.lines = 0, expected a core with attention engines");
    }
    core.machine = machine_;
    return core;
  }

  void check_ring(const toml::table& table, const CoreSystem& system) {
    const Place place = table.get(kKind)->source().begin;
    if (machine_.dfx.cores == 0) {
      add(place, kKind, "found \"ring\" and dfx.cores = 0, expected at least one core");
    }
    if (ring_of(system) == nullptr) return;
    add(place, kKind,
        "found a second ring, expected one at most: the window of the bus at 2^44 and the "
        "PCIe of the host are one ring's");
  }

  static bool is_kind(const toml::table& table, std::string_view kind) {
    const toml::node* const node = table.get(kKind);
    return node != nullptr && node->is_string() && node->as_string()->get() == kind;
  }

  void read_kind(const toml::node& node) {
    const std::string kind = node.value_or(std::string());
    if (kind == "tile" || kind == kEngines || kind == kRing) return;
    add(node.source().begin, kKind,
        "found " + found_text(node) + ", expected \"tile\", \"vitcod\" or \"ring\"");
  }

  /// The keys of a core are those of a preset; the tables below change them.
  void read_use(const toml::node& node) {
    const auto* const name = node.as_string();
    if (name == nullptr) {
      return add(node.source().begin, kUse,
                 "found " + found_text(node) + ", expected the name of a machine preset in quotes");
    }
    try {
      const Machine preset = load_base_(name->get());
      if (is_ring_) {
        if (preset.dfx.cores != 0) return take_ring_keys(preset);
        return add(node.source().begin, kUse,
                   "found " + quoted_text(name->get()) + ", expected a ring, such as dfx");
      }
      if (!has_tiles(preset)) {
        return add(node.source().begin, kUse,
                   "found " + quoted_text(name->get()) +
                       ", whose core is of another kind, expected a tile machine");
      }
      take_core_keys(preset);
    } catch (const InputError& error) {
      add(node.source().begin, kUse, error.what());
    }
  }

  /// Of what is shared the keys stay, but for the size of the memory.
  void take_ring_keys(const Machine& from) {
    const Machine shared = machine_;
    machine_ = from;
    machine_.name = shared.name;
    for (const MachineKey& key : machine_keys()) {
      const std::string_view section = section_of(key.path);
      if (section.empty() || is_core_section(section) || is_ring_section(section)) continue;
      key.set(machine_, key.get(shared));
    }
    machine_.dram.mib = kDefaultDdrMib;
  }

  void take_core_keys(const Machine& from) {
    for (const MachineKey& key : machine_keys()) {
      if (is_core_section(section_of(key.path))) key.set(machine_, key.get(from));
    }
  }

  /// Whether this table may have its own values of the section.
  [[nodiscard]] bool may_have(std::string_view section) const {
    return is_ring_ ? is_ring_section(section) : is_core_section(section);
  }

  void read_core_section(const toml::key& key, const toml::node& node) {
    const std::string_view name = key.str();
    const Place place = key.source().begin;
    std::vector<std::string_view> known;
    for (const std::string_view section : sections()) {
      if (may_have(section)) known.push_back(section);
    }
    if (may_have(name)) return read_section(name, node);
    const auto all = sections();
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      const bool of_others = is_core_section(name) || is_ring_section(name);
      return add(place, name,
                 (of_others ? "belongs to another kind of core, expected one of "
                            : "belongs to the system, expected outside the [[core]] tables, which "
                              "have ") +
                     joined(known));
    }
    for (const std::string_view key_name : {kUse, kKind, kRegisters}) known.push_back(key_name);
    for (const char* const key_name : {"name", "link_ns", "node"}) known.emplace_back(key_name);
    if (is_ring_) known.push_back(kDdrMib);
    add_unknown(place, name, "key of a core", nearest(name, known), joined(known));
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
  bool is_ring_ = false;  ///< the table is that of a ring
  std::vector<Problem> problems_;
  std::vector<std::string_view> bad_;         // keys whose value was refused
  std::map<std::string_view, Place> places_;  // of the values that were taken
};

}  // namespace

CoreSystem read_machine(const toml::table& root, const std::string& source,
                        const BaseLoader& load_base) {
  return MachineReader(source, load_base).read(root);
}

}  // namespace systole::hw
