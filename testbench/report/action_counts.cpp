#include "testbench/report/action_counts.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/round.h"
#include "hw/program/bank_words.h"
#include "hw/silicon/area.h"

namespace systole::testbench {
namespace {

std::string component(const char* name, const char* action, std::uint64_t counts,
                      const std::string& meaning) {
  return fmt::format(
      "    - name: system.{}  # {}\n      action_counts:\n        - name: {}\n"
      "          counts: {}\n",
      name, meaning, action, counts);
}

std::string memory(const char* name, std::uint64_t bytes, double word_bytes) {
  const auto word = static_cast<std::uint64_t>(std::llround(word_bytes));
  return component(name, "read", ceil_div(bytes, word),
                   fmt::format("words of {} bytes, read or written", word));
}

}  // namespace

std::string action_counts_yaml(const hw::Machine& machine, const hw::EnergyEvents& events) {
  std::string text =
      fmt::format("# Systole, machine {}, all inferences of the run\n", machine.name) +
      "action_counts:\n  version: 0.3\n  local:\n" +
      component("mac", "mac_random", events.macs, "8-bit multiply, 32-bit add") +
      component("postop", "mult_random", events.postop_elements, "elements times stages") +
      memory("scratchpad", events.scratchpad_bytes, hw::scratchpad_word_bytes(machine)) +
      memory("accumulator", events.accumulator_bytes, hw::accumulator_word_bytes(machine));
  if (machine.l2.kib != 0) text += memory("l2", events.l2_bytes, hw::l2_size(machine).word_bytes);
  text += component("bus", "transfer_random", ceil_div(events.bus_bytes, machine.bus.width_bytes),
                    fmt::format("beats of {} bytes", machine.bus.width_bytes)) +
          memory("dram", events.dram_bytes, machine.dram.bus_bytes);
  if (events.host_cycles != 0) {
    text += component("host", "cycle", events.host_cycles, "cycles that it computes for the core");
  }
  return text;
}

}  // namespace systole::testbench
