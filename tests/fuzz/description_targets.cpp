#include <functional>
#include <string>

#include "fuzz/target.h"
#include "hw/description/core_system.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "testbench/own/manifest.h"

/// Descriptions in TOML, and settings of the command line.
namespace systole::fuzz {
namespace {

/// Its own text gives the machine again. That takes a hundred times as long as most inputs do, so
/// it is tried of one input in 16.
void require_round_trip(const hw::Machine& machine, std::string_view bytes) {
  if (std::hash<std::string_view>()(bytes) % 16 != 0) return;
  const std::string text = hw::to_toml(machine);
  require(hw::to_toml(hw::parse_machine(text, "again.toml")) == text,
          "a machine's text gives the machine");
}

}  // namespace

void read_machine(std::string_view bytes) {
  require_round_trip(hw::parse_machine(bytes, "machine.toml"), bytes);
}

void read_cores(std::string_view bytes) {
  const hw::CoreSystem system = hw::find_system(file_with("cores.toml", bytes));
  if (system.cores.empty()) require_round_trip(system.machine, bytes);
}

void set_machine_key(std::string_view bytes) {
  hw::Machine machine;
  hw::set_key(machine, bytes);
  hw::validate(machine);
  require_round_trip(machine, bytes);
}

void read_manifest(std::string_view bytes) {
  const std::string path = file_with(testbench::kManifest, bytes);
  static const bool sources = [] {
    static_cast<void>(file_with("a.sv", "module a; endmodule\n"));
    static_cast<void>(file_with("adapter.h", "struct Adapter {};\n"));
    return true;
  }();
  require(sources, "the sources of a manifest exist");
  const testbench::OwnManifest manifest = testbench::read_manifest(path.substr(0, path.rfind('/')));
  require(!manifest.top.empty() && !manifest.sources.empty(), "a manifest has a top and sources");
}

}  // namespace systole::fuzz
