#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/version.h"
#include "testbench/common/text.h"
#include "testbench/own/own_driver.h"
#include "testbench/own/own_rtl.h"

namespace systole::testbench {
namespace {

struct RtlCommand {
  std::string task, of;
  std::vector<std::string> sizes;  ///< KEY=N
  bool fast = false;
};

int add(const std::string& folder, bool fast) {
  const OwnManifest manifest = add_own_rtl(folder, program_version(), !fast);
  Table table("block|top|library");
  table.add({manifest.block, manifest.top, manifest.library()});
  print_text(table.text());
  print_text(
      fmt::format("\nNow: systole run -m MACHINE --model vit17 --check --rtl {}={}, with a machine "
                  "of its sizes\n",
                  find_own_driver(manifest.block)->machine, folder));
  return kExitOk;
}

/// The sizes of a block, in its order: those given, or the usual ones.
std::vector<std::uint32_t> sizes_of(const OwnDriver& driver,
                                    const std::vector<std::string>& given) {
  std::vector<std::uint32_t> sizes;
  std::vector<std::string> names;
  for (const OwnSizeKey& size : driver.sizes) {
    sizes.push_back(size.usual);
    names.push_back(fmt::format("{}={} to {}", size.name, size.least, size.most));
  }
  for (const std::string& each : given) {
    const std::size_t equals = std::min(each.find('='), each.size());
    const std::string name = each.substr(0, equals);
    std::uint32_t value = 0;
    const char* const begin = each.data() + std::min(equals + 1, each.size());
    const char* const end = each.data() + each.size();
    const auto [last, error] = std::from_chars(begin, end, value);
    const auto size = std::find_if(driver.sizes.begin(), driver.sizes.end(),
                                   [&](const OwnSizeKey& one) { return name == one.name; });
    if (size == driver.sizes.end() || error != std::errc{} || last != end || value < size->least ||
        value > size->most) {
      throw hw::InputError(fmt::format("--size {}: expected {}", hw::printable(each),
                                       names.empty()
                                           ? fmt::format("none: {} has one size", driver.block)
                                           : fmt::format("{}", fmt::join(names, ", "))));
    }
    sizes[static_cast<std::size_t>(size - driver.sizes.begin())] = value;
  }
  return sizes;
}

int ports(const std::string& block, const std::vector<std::string>& sizes) {
  const OwnDriver* const driver = find_own_driver(block);
  if (driver == nullptr) {
    throw hw::InputError(fmt::format("rtl ports: found {}, expected one of {}",
                                     hw::printable(block), fmt::join(own_blocks(), ", ")));
  }
  Table table("port|direction|>bits");
  for (const RtlPort& port : block_ports(block, sizes_of(*driver, sizes))) {
    table.add({port.name, port.is_output ? "output" : "input", std::to_string(port.bits)});
  }
  print_text(table.text());
  return kExitOk;
}

int run(const RtlCommand& options) {
  const bool adds = options.task == "add";
  if (adds && !options.sizes.empty()) throw hw::InputError("--size: expected rtl ports");
  if (!adds && options.fast) throw hw::InputError("--fast: expected rtl add");
  return adds ? add(options.of, options.fast) : ports(options.of, options.sizes);
}

}  // namespace

void add_rtl_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<RtlCommand>();
  CLI::App& command = *app.add_subcommand("rtl", "make RTL of your own a block of the machine");
  command.add_option("task", options->task, "add: verilate a folder; ports: what a block needs")
      ->type_name("add|ports")
      ->check(CLI::IsMember({"add", "ports"}).description(""))
      ->required();
  command.add_option("of", options->of, "folder with an rtl.toml, or block")
      ->type_name("DIR|BLOCK")
      ->required();
  command.add_option("--size", options->sizes, "of ports: a size as in rtl.toml (repeatable)")
      ->type_name("KEY=N")
      ->allow_extra_args(false);
  command.add_flag("--fast", options->fast, "add without assertions and waveforms");
  add_examples(command, {"systole rtl ports requantizer --size lanes=4",
                         "systole rtl add examples/own_rtl/requantizer"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
