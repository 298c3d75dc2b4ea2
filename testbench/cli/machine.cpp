#include "hw/machine/machine.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_presets.h"
#include "hw/description/machine_text.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/text.h"
#include "testbench/cores/report_cores.h"
#include "testbench/report/machine_costs.h"
#include "testbench/report/machine_json.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

struct DescriptionOptions {
  std::string machine;
  std::vector<std::string> settings;
  bool keys = false, toml = false, costs = false, json = false, map = false;
};

void list_presets(bool json) {
  Table table("preset | machine");
  ordered_json document = ordered_json::array();
  for (const std::string& name : hw::machine_presets()) {
    const std::string text = machine_summary(hw::find_machine(name));
    table.add({name, text});
    document.push_back({{"name", name}, {"summary", text}});
  }
  if (json) return print_json({{"machines", document}});
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
                        {"default", machine_value(key, defaults)},
                        {"unit", key.unit},
                        {"expected", hw::expected(key)},
                        {"meaning", key.meaning},
                        {"source", key.source}});
  }
  if (json) return print_json({{"keys", document}});
  print_text(text);
}

void show(const hw::Machine& machine) {
  const hw::Machine defaults;
  Table table("key | >value | >default | unit");
  for (const hw::MachineKey* key : keys_that_matter(machine)) {
    const std::string value = hw::value_text(*key, machine);
    const std::string usual = hw::value_text(*key, defaults);
    table.add({std::string(key->path), value, value == usual ? "" : usual, std::string(key->unit)});
  }
  FactList head;
  head.add(machine.name, machine_summary(machine));
  print_text(head.text() + "\n" + table.text());
}

hw::CoreSystem described_system(const DescriptionOptions& options) {
  if (options.machine.empty()) return {load_machine("", options.settings), {}, 0};
  return load_system({options.machine, options.settings, {}, {}}, true);
}

/// Cores and addresses of a system.
void show_system(const hw::CoreSystem& system, const DescriptionOptions& options) {
  if (options.json) {
    ordered_json document = machine_json(system.machine);
    if (options.map) document = {{"map", map_json(system)}};
    ordered_json cores = ordered_json::array();
    for (const hw::CoreSite& core : system.cores) {
      cores.push_back({{"name", core.name},
                       {"registers", core.registers},
                       {"link_ns", core.link_ns},
                       {"machine_keys", machine_json(core.machine)}});
    }
    document["cores"] = std::move(cores);
    return print_json(document);
  }
  print_text((system.cores.empty() ? "" : core_table(system) + "\n") + map_text(system));
}

int run(const DescriptionOptions& options) {
  if (options.toml && (options.json || options.costs)) {
    throw hw::InputError("--toml: found --json or --costs too, expected one of them");
  }
  if (options.keys) {
    list_keys(options.json);
  } else if (options.machine.empty() && options.settings.empty() && !options.toml &&
             !options.costs && !options.map) {
    list_presets(options.json);
  } else if (const hw::CoreSystem system = described_system(options);
             options.map || !system.cores.empty()) {
    if (options.toml) {
      throw hw::InputError(
          "--toml: of a machine of one core, expected one without [[core]] tables");
    }
    show_system(system, options);
  } else {
    const hw::Machine machine = load_machine(options.machine, options.settings);
    if (options.costs) {
      if (options.json) {
        print_json(costs_json(machine));
      } else {
        print_text(costs_text(machine));
      }
    } else if (options.json) {
      print_json(machine_json(machine));
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
  command.add_flag("--costs", options->costs, "print energies by event and areas by block");
  command.add_flag("--map", options->map, "print who answers which addresses");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command, {"systole machine", "systole machine gemmini --set array.rows=32",
                         "systole machine transformer --toml > mine.toml",
                         "systole machine transformer --costs", "systole machine --keys",
                         "systole machine system.toml --map"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
