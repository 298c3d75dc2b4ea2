#include "testbench/rtl_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "hw/error.h"
#include "hw/machine_keys.h"
#include "hw/printable.h"

namespace systole::testbench {
namespace {

constexpr const char* kSection = "backend";

}  // namespace

std::vector<std::string> rtl_blocks() {
  std::vector<std::string> blocks;
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) == kSection) blocks.emplace_back(hw::key_of(key.path));
  }
  return blocks;
}

void swap_for_rtl(hw::Machine& machine, const std::string& block) {
  const std::vector<std::string> blocks = rtl_blocks();
  if (block != "all" && std::find(blocks.begin(), blocks.end(), block) == blocks.end()) {
    throw hw::InputError(fmt::format("--rtl: {}: no such block, expected all or some of {}",
                                     hw::printable(block), fmt::join(blocks, ", ")));
  }
  for (const std::string& each : blocks) {
    if (block != "all" && block != each) continue;
    const hw::MachineKey* key = hw::find_machine_key(fmt::format("{}.{}", kSection, each));
    key->set(machine, static_cast<std::int64_t>(hw::Backend::kRtl));
  }
}

}  // namespace systole::testbench
