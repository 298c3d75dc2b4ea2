#include "testbench/report/action_counts.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/round.h"
#include "hw/core/bank_words.h"
#include "hw/noc/mesh_nodes.h"
#include "hw/silicon/area.h"

namespace systole::testbench {
namespace {

std::string component(const std::string& name, const char* action, std::uint64_t counts,
                      const std::string& meaning) {
  return fmt::format(
      "    - name: system.{}  # {}\n      action_counts:\n        - name: {}\n"
      "          counts: {}\n",
      name, meaning, action, counts);
}

std::string memory(const std::string& name, std::uint64_t bytes, double word_bytes) {
  const auto word = static_cast<std::uint64_t>(std::llround(word_bytes));
  return component(name, "read", ceil_div(bytes, word),
                   fmt::format("words of {} bytes, read or written", word));
}

std::string head(const std::string& name) {
  return fmt::format("# Systole, machine {}, all inferences of the run\n", name) +
         "action_counts:\n  version: 0.3\n  local:\n";
}

/// Blocks of a core, whose names begin with `prefix`.
std::string core_components(const std::string& prefix, const hw::Machine& machine,
                            const hw::EnergyEvents& events) {
  std::string macs = component(prefix + "mac", "mac_random", events.macs - events.int4_macs,
                               "8-bit multiply, 32-bit add");
  if (machine.array.split != hw::ArraySplit::kNone) {
    macs += component(prefix + "mac_int4", "mac_random", events.int4_macs - events.int4_int4_macs,
                      "8 by 4-bit multiply, half of a 32-bit add");
  }
  if (machine.array.split == hw::ArraySplit::kBoth) {
    macs += component(prefix + "mac_int4_int4", "mac_random", events.int4_int4_macs,
                      "4 by 4-bit multiply, a quarter of a 32-bit add");
  }
  return macs +
         component(prefix + "postop", "mult_random", events.postop_elements,
                   "elements times stages") +
         memory(prefix + "scratchpad", events.scratchpad_bytes,
                hw::scratchpad_word_bytes(machine)) +
         memory(prefix + "accumulator", events.accumulator_bytes,
                hw::accumulator_word_bytes(machine));
}

std::string mesh_component(const hw::Machine& machine, const hw::EnergyEvents& events) {
  if (!hw::has_mesh(machine)) return {};
  const std::uint32_t width = machine.noc.link_bytes;
  return component("noc", "transfer_random", ceil_div(events.noc_byte_hops, width),
                   fmt::format("flits of {} bytes through a router and over a link", width));
}

/// Blocks that all cores share.
std::string shared_components(const hw::Machine& machine, const hw::EnergyEvents& events) {
  std::string text;
  if (machine.l2.kib != 0) text += memory("l2", events.l2_bytes, hw::l2_size(machine).word_bytes);
  text += component("bus", "transfer_random", ceil_div(events.bus_bytes, machine.bus.width_bytes),
                    fmt::format("beats of {} bytes", machine.bus.width_bytes)) +
          mesh_component(machine, events) +
          memory("dram", events.dram_bytes, machine.dram.bus_bytes);
  if (events.host_cycles != 0) {
    text += component("host", "cycle", events.host_cycles, "cycles that it computes for the core");
  }
  return text;
}

}  // namespace

std::string action_counts_yaml(const hw::Machine& machine, const hw::EnergyEvents& events) {
  return head(machine.name) + core_components("", machine, events) +
         shared_components(machine, events);
}

std::string action_counts_yaml(const hw::CoreSystem& system,
                               const std::vector<hw::EnergyEvents>& cores,
                               const hw::EnergyEvents& all) {
  if (cores.size() == 1) return action_counts_yaml(system.cores.front().machine, all);
  std::string text = head(system.machine.name);
  for (std::size_t i = 0; i < cores.size(); ++i) {
    text += core_components(system.cores[i].name + ".", system.cores[i].machine, cores[i]);
  }
  return text + shared_components(system.machine, all);
}

}  // namespace systole::testbench
