#include "hw/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_presets.h"
#include "hw/description/machine_text.h"
#include "testbench/cli/command.h"
#include "testbench/cli/common_options.h"
#include "testbench/cli/outputs.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

struct DescriptionOptions {
  std::string machine;
  std::vector<std::string> settings;
  bool keys = false, toml = false, json = false;
};

ordered_json json_value(const hw::MachineKey& key, const hw::Machine& machine) {
  const hw::KeyValue value = key.get(machine);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (key.kind != hw::MachineKey::Kind::kWord) return *integer;
    return std::string(key.words.at(static_cast<std::size_t>(*integer)));
  }
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::get<std::string>(value);
}

/// What a machine for text generation has a use for: sections, and keys of others.
constexpr std::array<std::string_view, 12> kRingKeys = {"dram",
                                                        "dfx",
                                                        "matrix",
                                                        "vector",
                                                        "hbm",
                                                        "ring",
                                                        "pcie",
                                                        "core.clock_mhz",
                                                        "backend.fp16_mul",
                                                        "backend.fp16_add",
                                                        "backend.mpu_tree",
                                                        "backend.ring_router"};

bool is_ring_key(const hw::MachineKey& key) {
  const std::string_view section = hw::section_of(key.path);
  return section.empty() ||
         std::any_of(kRingKeys.begin(), kRingKeys.end(),
                     [&](std::string_view known) { return known == section || known == key.path; });
}

/// The keys that say something about the machine: not those of a tile core for a ring of others.
std::vector<const hw::MachineKey*> keys_of(const hw::Machine& machine) {
  std::vector<const hw::MachineKey*> keys;
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (machine.dfx.cores == 0 || is_ring_key(key)) keys.push_back(&key);
  }
  return keys;
}

std::string ring_summary(const hw::Machine& machine) {
  const hw::dfx::Hbm& hbm = machine.hbm;
  const double gbytes = 1e-3 * hbm.mega_transfers * hbm.bus_bytes * hbm.channels;
  return fmt::format(
      "ring of {}, {} x {} multipliers each, beside {} MiB of HBM ({:.0f} GB/s), {} MHz; {} cycles "
      "to issue, {:.0f} ns a hop",
      counted(machine.dfx.cores, "FP16 core"), machine.matrix.depth, machine.matrix.lanes, hbm.mib,
      gbytes, machine.core.clock_mhz, machine.dfx.issue_cycles, machine.ring.hop_ns);
}

std::string summary(const hw::Machine& machine) {
  if (machine.dfx.cores != 0) return ring_summary(machine);
  const auto& words = hw::find_machine_key("array.dataflow")->words;
  return fmt::format("{} x {} {} array, {} KiB scratchpad, {} KiB accumulator, {} MHz",
                     machine.array.rows, machine.array.cols,
                     words.at(static_cast<std::size_t>(machine.array.dataflow)),
                     machine.scratchpad.kib, machine.accumulator.kib, machine.core.clock_mhz);
}

void list_presets(bool json) {
  Table table({{"preset"}, {"machine"}});
  ordered_json document = ordered_json::array();
  for (const std::string& name : hw::machine_presets()) {
    const std::string text = summary(hw::find_machine(name));
    table.add({name, text});
    document.push_back({{"name", name}, {"summary", text}});
  }
  if (json) return print_json(document);
  print_text(table.text());
}

void list_keys(bool json) {
  const hw::Machine defaults;
  std::string text;
  ordered_json document = ordered_json::array();
  for (const hw::MachineKey& key : hw::machine_keys()) {
    text += fmt::format("{} = {}\n    {}\n    {}\n", key.path, hw::value_text(key, defaults),
                        hw::expected(key), key.meaning);
    document.push_back({{"key", key.path},
                        {"default", json_value(key, defaults)},
                        {"unit", key.unit},
                        {"expected", hw::expected(key)},
                        {"meaning", key.meaning},
                        {"source", key.source}});
  }
  if (json) return print_json(document);
  print_text(text);
}

void show(const hw::Machine& machine) {
  using Align = Table::Align;
  const hw::Machine defaults;
  Table table({{"key"}, {"value", Align::kRight}, {"default", Align::kRight}, {"unit"}});
  for (const hw::MachineKey* key : keys_of(machine)) {
    const std::string value = hw::value_text(*key, machine);
    const std::string usual = hw::value_text(*key, defaults);
    table.add({std::string(key->path), value, value == usual ? "" : usual, std::string(key->unit)});
  }
  FactList head;
  head.add(machine.name, summary(machine));
  print_text(head.text() + "\n" + table.text());
}

ordered_json document_of(const hw::Machine& machine) {
  ordered_json document = ordered_json::object();
  for (const hw::MachineKey* key : keys_of(machine)) {
    const std::string section(hw::section_of(key->path)), name(hw::key_of(key->path));
    ordered_json& place = section.empty() ? document : document[section];
    place[name] = json_value(*key, machine);
    if (section.empty()) document["summary"] = summary(machine);
  }
  return document;
}

int run(const DescriptionOptions& options) {
  if (options.json && options.toml) {
    throw hw::InputError("--json and --toml: expected one of them");
  }
  if (options.keys) {
    list_keys(options.json);
  } else if (options.machine.empty() && options.settings.empty() && !options.toml) {
    list_presets(options.json);
  } else {
    const hw::Machine machine = load_machine(options.machine, options.settings);
    if (options.json) {
      print_json(document_of(machine));
    } else if (options.toml) {
      print_text(hw::to_toml(machine));
    } else {
      show(machine);
    }
  }
  return kExitOk;
}

}  // namespace

void add_machine_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<DescriptionOptions>();
  CLI::App& command = *app.add_subcommand("machine", "list machines, check and print one");
  command.add_option("machine", options->machine, "preset or TOML file; none: list the presets")
      ->type_name("NAME|FILE");
  add_settings(command, options->settings);
  command.add_flag("--keys", options->keys, "explain every key");
  command.add_flag("--toml", options->toml, "print a complete machine file");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command,
               {"systole machine", "systole machine gemmini --set array.rows=32",
                "systole machine transformer --toml > mine.toml", "systole machine --keys"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
