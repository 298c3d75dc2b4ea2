#include "testbench/commands/common_options.h"

#include <map>

#include "hw/error.h"
#include "hw/machine_file.h"
#include "hw/machine_rules.h"

namespace systole::testbench {

void add_settings(CLI::App& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings, "change one key: section.key=value (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command.add_option("-m,--machine", options.machine, "machine: a preset or a TOML file")
      ->type_name("NAME|FILE")
      ->required();
  add_settings(command, options.settings);
}

hw::Machine load_machine(const std::string& name_or_path,
                         const std::vector<std::string>& settings) {
  hw::Machine machine = name_or_path.empty() ? hw::Machine{} : hw::find_machine(name_or_path);
  for (const std::string& setting : settings) hw::set_key(machine, setting);
  if (!settings.empty()) hw::validate(machine);
  return machine;
}

hw::Machine load_machine_to_run(const MachineOptions& options) {
  hw::Machine machine = load_machine(options.machine, options.settings);
  const auto require_model = [](hw::Backend backend, const char* key) {
    if (backend == hw::Backend::kModel) return;
    throw hw::InputError(std::string(key) +
                         ": found \"rtl\", expected \"model\": this version has no RTL engine");
  };
  require_model(machine.array.backend, "array.backend");
  require_model(machine.postop.backend, "postop.backend");
  return machine;
}

void add_functional(CLI::App& command, bool& functional) {
  command
      .add_option_function<std::string>(
          "--functional", [&functional](const std::string& word) { functional = word == "on"; },
          "off: the same cycles without values")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""));
}

}  // namespace systole::testbench
