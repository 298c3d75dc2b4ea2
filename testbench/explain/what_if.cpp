#include "testbench/explain/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_rules.h"
#include "hw/memory/fixed_memory.h"
#include "testbench/common/side_by_side.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

/// What a key acts on.
enum class Acts : std::uint8_t {
  kArray,       ///< the array's pace
  kPreload,     ///< and how long weights shift in
  kArrayBanks,  ///< conflicts at the array's operands
  kStoreBanks,  ///< conflicts at the accumulator
  kPostop,      ///< the store unit's pace
  kBeats,       ///< how fast bytes come over the bus
  kMemory,      ///< waiting for memory
  kReads,
  kWrites,
  kProgram,  ///< nothing but the program and the order of its commands
};

struct Resource {
  const char* key;
  double factor;
  Acts acts;
};
constexpr double kMore = 2, kLess = 0.5;
constexpr std::array kResources = {
    Resource{"array.rows", kMore, Acts::kPreload},
    Resource{"array.cols", kMore, Acts::kArray},
    Resource{"scratchpad.kib", kMore, Acts::kProgram},
    Resource{"scratchpad.banks", kMore, Acts::kArrayBanks},
    Resource{"scratchpad.ports", kMore, Acts::kArrayBanks},
    Resource{"accumulator.kib", kMore, Acts::kProgram},
    Resource{"accumulator.banks", kMore, Acts::kStoreBanks},
    Resource{"accumulator.ports", kMore, Acts::kStoreBanks},
    Resource{"postop.lanes", kMore, Acts::kPostop},
    Resource{"core.clock_mhz", kMore, Acts::kProgram},
    Resource{"core.load_queue", kMore, Acts::kProgram},
    Resource{"core.compute_queue", kMore, Acts::kProgram},
    Resource{"core.store_queue", kMore, Acts::kProgram},
    Resource{"core.call_cycles", kLess, Acts::kProgram},
    Resource{"dma.outstanding_reads", kMore, Acts::kReads},
    Resource{"dma.outstanding_writes", kMore, Acts::kWrites},
    Resource{"bus.width_bytes", kMore, Acts::kBeats},
    Resource{"bus.clock_mhz", kMore, Acts::kBeats},
    Resource{"bus.request_latency", kLess, Acts::kMemory},
    Resource{"bus.response_latency", kLess, Acts::kMemory},
    Resource{"tlb.entries", kMore, Acts::kMemory},
    Resource{"l2.kib", kMore, Acts::kMemory},
    Resource{"dram.channels", kMore, Acts::kMemory},
    Resource{"dram.mega_transfers", kMore, Acts::kMemory},
    Resource{"dram.controller_ns", kLess, Acts::kMemory},
    Resource{"memory.latency", kLess, Acts::kMemory},
    Resource{"memory.read_beat_cycles", kLess, Acts::kMemory},
    Resource{"attention.lines", kMore, Acts::kProgram},
    Resource{"attention.macs_per_line", kMore, Acts::kProgram},
    Resource{"attention.softmax_lanes", kMore, Acts::kProgram},
};

std::optional<std::uint64_t> on_path(const Explanation& why, Acts acts) {
  const std::uint64_t reads =
      why.of("load", "memory") + why.of("load", "in_flight") + why.of("command_processor", "fetch");
  const std::uint64_t writes = why.of("store", "memory") + why.of("store", "in_flight");
  switch (acts) {
    case Acts::kPreload:
      return why.of("array", "busy") + why.of("array", "weight_preload");
    case Acts::kArray:
      return why.of("array", "busy");
    case Acts::kArrayBanks:
      return why.of("array", "bank_conflict");
    case Acts::kStoreBanks:
      return why.of("array", "bank_conflict") + why.of("store", "bank_conflict");
    case Acts::kPostop:
      return why.of("store", "busy");
    case Acts::kBeats:
      return why.of("load", "busy") + reads + writes;
    case Acts::kMemory:
      return reads + writes + why.of("loops", "operands") + why.of("loops", "results");
    case Acts::kReads:
      return reads + why.of("store", "memory");
    case Acts::kWrites:
      return writes;
    case Acts::kProgram:
      break;
  }
  return std::nullopt;
}

/// The key's other value, if the machine has that resource.
std::optional<hw::KeyValue> changed(const hw::Machine& machine, const Resource& resource) {
  const std::string_view section = hw::section_of(resource.key);
  if (section == (hw::has_fixed_memory(machine) ? "dram" : "memory")) return std::nullopt;
  if (section == "attention" && machine.attention.lines == 0) return std::nullopt;
  const hw::MachineKey& key = *hw::find_machine_key(resource.key);
  const hw::KeyValue now = key.get(machine);
  if (const auto* const number = std::get_if<double>(&now)) {
    if (*number == 0) return std::nullopt;
    return hw::KeyValue(*number * resource.factor);
  }
  const std::int64_t whole = std::get<std::int64_t>(now);
  const auto other =
      static_cast<std::int64_t>(std::llround(static_cast<double>(whole) * resource.factor));
  if (other == whole || whole == 0) return std::nullopt;
  return hw::KeyValue(other);
}

WhatIf change(const hw::Machine& machine, const Resource& resource, const hw::KeyValue& value) {
  WhatIf change{resource.key, resource.factor, machine, {}, {}, {}, {}};
  const hw::MachineKey& key = *hw::find_machine_key(resource.key);
  if (!hw::accepts(key, value)) {
    change.refused = "out of its range";
    return change;
  }
  key.set(change.machine, value);
  try {
    hw::validate(change.machine);
  } catch (const hw::InputError& error) {
    change.refused = error.what();
  }
  return change;
}

WhatIf::Outcome outcome(const hw::Machine& machine, double cycles) {
  return {cycles, cycles / (machine.core.clock_mhz * 1e6), {}};
}

nlohmann::ordered_json expected_cycles(const RunRequest& request, const hw::Machine& machine) {
  try {
    return {{"cycles", RunSubject(request, machine).mapping().expected_cycles}};
  } catch (const hw::InputError& error) {
    return {{"refused", error.what()}};
  }
}

nlohmann::ordered_json simulated(const RunRequest& request, const hw::Machine& machine) {
  const RunSubject subject(request, machine);
  SimulationOptions options;
  options.functional = false;
  options.next_step = subject.next_step();
  RtlReport rtl;
  const SimulationResult result =
      simulate(subject.graph(), subject.mapping(), machine, make_engines(machine, {}, rtl),
               subject.inputs(), options);
  return {{"cycles", result.cycles.front()},
          {"joules", hw::energy_of(result.events, machine.energy).total()}};
}

/// The least time first.
void sort_by_time(std::vector<WhatIf>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const WhatIf& a, const WhatIf& b) {
    if (!a.predicted || !b.predicted) return a.predicted.has_value() > b.predicted.has_value();
    return a.outcome().seconds < b.outcome().seconds;
  });
}

}  // namespace

std::vector<WhatIf> what_if(const RunRequest& request, const hw::Machine& machine,
                            std::size_t confirm) {
  std::vector<WhatIf> changes;
  for (const Resource& resource : kResources) {
    const std::optional<hw::KeyValue> value = changed(machine, resource);
    if (value) changes.push_back(change(machine, resource, *value));
  }
  std::vector<Experiment> experiments;
  for (const WhatIf& each : changes) {
    experiments.push_back([&request, &each] {
      return each.refused.empty() ? expected_cycles(request, each.machine)
                                  : nlohmann::ordered_json{{"refused", each.refused}};
    });
  }
  const std::vector<nlohmann::ordered_json> found = run_side_by_side(experiments);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (found[i].contains("refused")) {
      changes[i].refused = found[i]["refused"].get<std::string>();
    } else {
      changes[i].predicted = outcome(changes[i].machine, found[i]["cycles"].get<double>());
    }
  }
  sort_by_time(changes);
  const auto possible = std::count_if(changes.begin(), changes.end(),
                                      [](const WhatIf& each) { return each.predicted; });
  confirm = std::min(confirm, static_cast<std::size_t>(possible));
  experiments.clear();
  for (std::size_t i = 0; i < confirm; ++i) {
    experiments.push_back(
        [&request, &each = changes[i]] { return simulated(request, each.machine); });
  }
  const std::vector<nlohmann::ordered_json> runs = run_side_by_side(experiments);
  for (std::size_t i = 0; i < confirm; ++i) {
    changes[i].simulated = outcome(changes[i].machine, runs[i]["cycles"].get<double>());
    changes[i].simulated->joules = runs[i]["joules"].get<double>();
  }
  return changes;
}

void relate(std::vector<WhatIf>& changes, const Explanation& run, double expected) {
  for (WhatIf& change : changes) {
    const auto* const resource =
        std::find_if(kResources.begin(), kResources.end(),
                     [&](const Resource& each) { return change.key == each.key; });
    change.on_path = on_path(run, resource->acts);
    if (!change.predicted) continue;
    change.predicted = outcome(
        change.machine, static_cast<double>(run.cycles) * change.predicted->cycles / expected);
  }
  sort_by_time(changes);
}

}  // namespace systole::testbench
