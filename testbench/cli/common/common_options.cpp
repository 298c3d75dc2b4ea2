#include "testbench/cli/common/common_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "testbench/cli/common/version.h"
#include "testbench/own/own_driver.h"
#include "testbench/own/own_rtl.h"
#include "testbench/run/rtl_blocks.h"

namespace systole::testbench {
namespace {

constexpr const char* kStrategyKey = "mapper.strategy";

/// BLOCK or BLOCK=DIR: block and folder.
std::pair<std::string, std::string> own_item(const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals == std::string::npos) return {item, {}};
  const std::string block = item.substr(0, equals), folder = item.substr(equals + 1);
  const std::vector<std::string> blocks = own_blocks_of_machines();
  if (folder.empty() || std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
    throw hw::InputError(fmt::format("--rtl {}: expected BLOCK=DIR with one of {}",
                                     hw::printable(item), fmt::join(blocks, ", ")));
  }
  return {block, folder};
}

hw::Machine configured(const MachineOptions& options) {
  hw::Machine machine = load_machine(options.machine, options.settings);
  if (!options.strategy.empty()) {
    hw::set_key(machine, fmt::format("{}={}", kStrategyKey, options.strategy));
  }
  for (const std::string& block : options.rtl) swap_for_rtl(machine, own_item(block).first);
  return machine;
}

}  // namespace

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

void add_strategy(CLI::App& command, MachineOptions& options) {
  const std::vector<std::string_view>& words = hw::find_machine_key(kStrategyKey)->words;
  command
      .add_option("--strategy", options.strategy, "how tiles are chosen; default: the machine's")
      ->type_name(fmt::format("{}", fmt::join(words, "|")))
      ->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())).description(""));
}

void add_rtl(CLI::App& command, MachineOptions& options) {
  command.add_option("--rtl", options.rtl, "blocks in Verilated RTL (=DIR: your own), or all")
      ->type_name("BLOCK[=DIR],...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::vector<std::string> take_core_rtl(MachineOptions& options) {
  const bool has_core = std::any_of(options.rtl.begin(), options.rtl.end(), [](const auto& item) {
    return own_item(item).first == kCoreInRtl;
  });
  if (!has_core) return {};
  if (options.rtl.size() > 1) {
    throw hw::InputError("--rtl core: has all blocks in it, expected no other one");
  }
  return std::exchange(options.rtl, {});
}

void add_own_rtl(const std::vector<std::string>& items, RtlOptions& rtl) {
  for (const std::string& each : items) {
    const auto [block, folder] = own_item(each);
    if (folder.empty()) continue;
    rtl.own[block] = &load_own_rtl(folder, block, program_version());
  }
}

hw::Machine load_machine(const std::string& name_or_path,
                         const std::vector<std::string>& settings) {
  hw::Machine machine = name_or_path.empty() ? hw::Machine{} : hw::find_machine(name_or_path);
  for (const std::string& setting : settings) hw::set_key(machine, setting);
  if (!settings.empty()) hw::validate(machine);
  return machine;
}

namespace {

/// Throws InputError for a machine of another kind.
void require_tiles(const MachineOptions& options, const hw::Machine& machine) {
  if (machine.dfx.cores != 0) {
    throw hw::InputError(fmt::format(
        "{}: dfx.cores: found {}, expected 0: its cores generate text, see systole generate --help",
        hw::printable(options.machine), machine.dfx.cores));
  }
  if (machine.stream.units != 0) {
    throw hw::InputError(fmt::format(
        "{}: stream.units: found {}, expected 0: a streaming core runs single layers, see "
        "systole layer --help",
        hw::printable(options.machine), machine.stream.units));
  }
  if (machine.dynamic.kind != hw::DynamicKind::kNone) {
    throw hw::InputError(fmt::format(
        "{}: dynamic.kind: found {}, expected none: it runs attention alone, see systole attention "
        "--help",
        hw::printable(options.machine),
        machine.dynamic.kind == hw::DynamicKind::kSanger ? "sanger" : "spatten"));
  }
}

/// Those of `settings` that `wanted` takes, by their sections.
template <typename Wanted>
void apply(hw::Machine& machine, const MachineOptions& options, Wanted wanted) {
  bool changed = false;
  for (const std::string& setting : options.settings) {
    const std::string_view section = std::string_view(setting).substr(0, setting.find('.'));
    if (!wanted(section, setting)) continue;
    hw::set_key(machine, setting);
    changed = true;
  }
  if (changed) hw::validate(machine);
  for (const std::string& block : options.rtl) swap_for_rtl(machine, own_item(block).first);
}

/// Of a tile core, or of what all share, in a system with a ring or without one.
void apply_to_tiles(hw::Machine& machine, const MachineOptions& options, bool beside_ring) {
  if (!options.strategy.empty()) {
    hw::set_key(machine, fmt::format("{}={}", kStrategyKey, options.strategy));
  }
  apply(machine, options, [&](std::string_view section, const std::string&) {
    return !beside_ring || !hw::is_ring_section(section) || hw::is_core_section(section);
  });
}

/// Of the ring: keys of its sections alone, and those of the system but for the memory's size.
void apply_to_ring(hw::Machine& machine, const MachineOptions& options) {
  apply(machine, options, [](std::string_view section, const std::string& setting) {
    return !hw::is_core_section(section) && setting.rfind("dram.mib=", 0) != 0;
  });
}

}  // namespace

hw::Machine load_machine(const MachineOptions& options) {
  hw::Machine machine = configured(options);
  require_tiles(options, machine);
  return machine;
}

hw::CoreSystem load_system(const MachineOptions& options, bool any_kind) {
  hw::CoreSystem system = hw::find_system(options.machine);
  const bool beside_ring = hw::ring_of(system) != nullptr;
  apply_to_tiles(system.machine, options, beside_ring);
  if (!any_kind) require_tiles(options, system.machine);
  for (hw::CoreSite& core : system.cores) {
    if (hw::is_ring(core)) {
      apply_to_ring(core.machine, options);
    } else {
      apply_to_tiles(core.machine, options, beside_ring);
    }
  }
  for (std::size_t i = 0; i < system.cores.size(); ++i) {
    // dram.mib may have been set.
    if (const std::string problem = hw::address_problem(system, i); !problem.empty()) {
      throw hw::InputError(hw::printable(options.machine) + ": " + system.cores[i].name +
                           ": registers: " + problem);
    }
  }
  hw::place_cores(system);
  if (const std::string problem = hw::mesh_problem(system); !problem.empty()) {
    throw hw::InputError(hw::printable(options.machine) + ": noc: " + problem);
  }
  if (const std::string problem = hw::ring_problem(system); !problem.empty()) {
    throw hw::InputError(hw::printable(options.machine) + ": core: " + problem);
  }
  return system;
}

bool has_streaming_core(const MachineOptions& options) {
  return load_machine(options.machine, options.settings).stream.units != 0;
}

hw::Machine load_stream_machine(const MachineOptions& options) {
  hw::Machine machine = configured(options);
  if (machine.stream.units == 0) {
    throw hw::InputError(
        hw::printable(options.machine) +
        ": stream.units: found 0, expected a machine with a streaming core, such as ita");
  }
  return machine;
}

hw::Machine load_generation_machine(const MachineOptions& options) {
  hw::Machine machine = configured(options);
  for (const std::string& item : options.rtl) {
    if (own_item(item).second.empty()) continue;
    throw hw::InputError(
        fmt::format("--rtl {}: no block of cores for text generation", hw::printable(item)));
  }
  if (machine.dfx.cores == 0) {
    throw hw::InputError(
        hw::printable(options.machine) +
        ": dfx.cores: found 0, expected a machine with cores for text generation, such as dfx");
  }
  return machine;
}

hw::Machine load_attention_machine(const MachineOptions& options) {
  hw::Machine machine = load_machine(options);
  if (machine.attention.lines == 0) {
    throw hw::InputError(
        hw::printable(options.machine) +
        ": attention.lines: found 0, expected a machine with attention engines, such as vitcod");
  }
  return machine;
}

void add_shape_options(CLI::App& command, SizeOptions& size) {
  const auto add = [&](const char* name, std::optional<std::int64_t>& value, const char* help) {
    command.add_option(name, value, help)->type_name("N");
  };
  add("-l,--length", size.length, "tokens of a shape; default: 128, DeiT 197");
  add("--layers", size.layers, "blocks of a shape; default: its own");
  add("--heads", size.heads, "heads of a shape");
  add("--kv-heads", size.kv_heads, "heads of keys and values of a Llama");
  add("--d", size.width, "width of a shape");
  add("--ffn", size.hidden, "width of a shape's MLP");
  add("--weight-bits", size.weight_bits, "of the blocks: 8, or 4: int4, or groups (Llama)");
  command
      .add_option("--weight-format", size.weight_format, "of a Llama's blocks, in place of bits")
      ->type_name("mxint8|mxfp4");
  add("--experts", size.experts, "MLPs of each block of a Llama");
  add("--active-experts", size.active_experts, "experts that a token goes to");
  command.add_option("--routing", size.routing, "of experts, without values; default: uniform")
      ->type_name("uniform|worst");
  add("--window", size.window, "tokens that one of a Llama attends to");
}

CLI::Option& add_model(CLI::App& command, std::string& model) {
  return *command.add_option("--model", model, "an integer model or a known shape")
              ->type_name("NAME|FILE");
}

void add_size_options(CLI::App& command, SizeOptions& size) {
  add_shape_options(command, size);
  command.add_option("--batch", size.batch, "sequences at once of a shape; default: 1")
      ->type_name("N");
}

void require_positive(CLI::Option& option) {
  option.check(CLI::Validator(
      [](const std::string& text) -> std::string {
        std::uint64_t number = 0;
        const char* const end = text.data() + text.size();
        const auto result = std::from_chars(text.data(), end, number);
        if (result.ec == std::errc() && result.ptr == end && number != 0) return {};
        return fmt::format("found {}, expected a whole number from 1",
                           text.empty() ? "nothing" : hw::printable(text, hw::kShownBytes));
      },
      ""));
}

CLI::Option& add_report(CLI::App& command, std::string& report) {
  return *command.add_option("--report", report, "write a page with pictures for a browser")
              ->type_name("FILE.html");
}

CLI::Option* add_outputs(CLI::App& command, std::string& outputs) {
  return command.add_option("--outputs", outputs, "write what it worked on and what came out")
      ->type_name("FILE.safetensors");
}

void add_tensors(CLI::App& command, std::string& tensors, CLI::Option* outputs) {
  command.add_option("--tensors", tensors, "write tensors of these names as well")
      ->type_name("REGEX")
      ->needs(outputs);
}

void require_values(const std::string& outputs, bool functional) {
  if (outputs.empty() || functional) return;
  throw hw::InputError("--functional off: --outputs needs values, expected --functional on");
}

void add_threads(CLI::App& command, unsigned& threads) {
  threads = std::thread::hardware_concurrency() > 1 ? 2 : 1;
  CLI::Option* const option =
      command.add_option("--threads", threads, "2: values beside the simulation; default: 2");
  option->type_name("N");
  require_positive(*option);
}

void add_functional(CLI::App& command, bool& functional) {
  command
      .add_option_function<std::string>(
          "--functional", [&functional](const std::string& word) { functional = word == "on"; },
          "off: the same cycles without values")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}).description(""));
}

void add_command_views(CLI::App& command, CommandViews& views) {
  command.add_option("--pipeline", views.pipeline, "write the way of each command, for Konata")
      ->type_name("FILE.kanata");
  command.add_option("--transactions", views.transactions, "write commands and stalls for Surfer")
      ->type_name("FILE.ftr");
  command.add_option("--trace", views.trace, "write what crosses the bus, see systole play")
      ->type_name("FILE.csv");
  command.add_option("--commands", views.commands, "write when each command ran, and its waits")
      ->type_name("FILE.csv");
}

}  // namespace systole::testbench
