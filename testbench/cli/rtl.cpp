#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/version.h"
#include "testbench/common/text.h"
#include "testbench/own/own_rtl.h"

namespace systole::testbench {
namespace {

struct RtlCommand {
  std::string task, of;
  std::uint32_t lanes = 16;
};

int add(const std::string& folder) {
  const OwnManifest manifest = add_own_rtl(folder, program_version());
  Table table("block|top|library");
  table.add({manifest.block, manifest.top, manifest.library()});
  print_text(table.text());
  print_text(fmt::format("\nNow: systole run -m transformer --model vit17 --check --rtl {}={}\n",
                         manifest.block, folder));
  return kExitOk;
}

int ports(const std::string& block, std::uint32_t lanes) {
  const std::vector<std::string> blocks = own_blocks();
  if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
    throw hw::InputError(fmt::format("rtl ports: found {}, expected one of {}",
                                     hw::printable(block), fmt::join(blocks, ", ")));
  }
  Table table("port|direction|>bits");
  for (const RtlPort& port : block_ports(block, block == "i_sqrt" ? 0 : lanes)) {
    table.add({port.name, port.is_output ? "output" : "input", std::to_string(port.bits)});
  }
  print_text(table.text());
  return kExitOk;
}

int run(const RtlCommand& options) {
  return options.task == "add" ? add(options.of) : ports(options.of, options.lanes);
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
  command.add_option("--lanes", options->lanes, "of ports: postop.lanes of a machine; default: 16")
      ->type_name("N")
      ->check(CLI::Range(1, 31).description(""));
  add_examples(command, {"systole rtl ports requantizer --lanes 4",
                         "systole rtl add examples/own_rtl/requantizer"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
