#include "testbench/explain/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_rules.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"
#include "testbench/common/side_by_side.h"
#include "testbench/explain/sampled_run.h"

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
    Resource{"accumulator.memories", kMore, Acts::kStoreBanks},
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
    Resource{"noc.hop_cycles", kLess, Acts::kMemory},
    Resource{"noc.link_bytes", kMore, Acts::kBeats},
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
  if (section == "noc" && !hw::has_mesh(machine)) return std::nullopt;
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
  WhatIf change{resource.key, resource.factor, machine, {}, {}, {}, {}, {}};
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

/// As experiments report it: a prediction, and if it is more than that, the simulation.
nlohmann::ordered_json to_json(const SampledRun& run) {
  nlohmann::ordered_json document = {{"cycles", run.cycles}};
  if (run.joules) document["joules"] = *run.joules;
  return document;
}

template <typename Run>
nlohmann::ordered_json attempted(Run run) {
  try {
    return to_json(run());
  } catch (const hw::InputError& error) {
    return {{"refused", error.what()}};
  }
}

/// Of a change that was not refused; a prediction of a whole program is a simulation.
WhatIf::Outcome outcome_of(const hw::Machine& machine, const nlohmann::ordered_json& run) {
  WhatIf::Outcome result = outcome(machine, run["cycles"].get<double>());
  if (run.contains("joules")) result.joules = run["joules"].get<double>();
  return result;
}

/// The least time first.
void sort_by_time(std::vector<WhatIf>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const WhatIf& a, const WhatIf& b) {
    if (!a.predicted || !b.predicted) return a.predicted.has_value() > b.predicted.has_value();
    return a.outcome().seconds < b.outcome().seconds;
  });
}

/// Simulates as a whole what was not, of the `confirm` with the least time.
void confirm_best(std::vector<WhatIf>& changes, const RunRequest& request,
                  const RunSubject& subject, std::size_t confirm) {
  std::vector<WhatIf*> open;
  for (std::size_t i = 0; i < std::min(confirm, changes.size()); ++i) {
    if (changes[i].predicted && !changes[i].simulated) open.push_back(&changes[i]);
  }
  std::vector<Experiment> experiments;
  experiments.reserve(open.size());
  for (const WhatIf* each : open) {
    experiments.push_back([&, each] {
      if (each->keeps_program()) return to_json(simulate_run(subject, each->machine));
      return to_json(simulate_run(RunSubject(request, each->machine), each->machine));
    });
  }
  const std::vector<nlohmann::ordered_json> runs = run_side_by_side(experiments);
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i]->simulated = outcome_of(open[i]->machine, runs[i]);
  }
}

}  // namespace

WhatIfs what_if(const RunRequest& request, const RunSubject& subject, const hw::Machine& machine,
                std::size_t confirm) {
  WhatIfs result;
  std::vector<WhatIf>& changes = result.changes;
  for (const Resource& resource : kResources) {
    const std::optional<hw::KeyValue> value = changed(machine, resource);
    if (value) changes.push_back(change(machine, resource, *value));
  }
  std::vector<Experiment> experiments;
  experiments.push_back([&] { return to_json(sample_run(subject, machine)); });
  for (const WhatIf& each : changes) {
    if (!each.refused.empty()) continue;
    experiments.push_back([&] {
      return attempted([&] { return sample_run(RunSubject(request, each.machine), each.machine); });
    });
    experiments.push_back(
        [&] { return attempted([&] { return sample_run(subject, each.machine); }); });
  }
  const std::vector<nlohmann::ordered_json> found = run_side_by_side(experiments);
  result.expected = found.front()["cycles"].get<double>();
  auto next = found.begin();
  for (WhatIf& each : changes) {
    if (!each.refused.empty()) continue;
    const nlohmann::ordered_json& mapped = *++next;
    const nlohmann::ordered_json& kept = *++next;
    if (mapped.contains("refused")) {
      each.refused = mapped["refused"].get<std::string>();
      continue;
    }
    each.predicted = outcome_of(each.machine, mapped);
    if (!kept.contains("refused")) each.kept = outcome_of(each.machine, kept);
    const WhatIf::Outcome& best = each.outcome();
    if (best.joules) each.simulated = best;
  }
  sort_by_time(changes);
  confirm_best(changes, request, subject, confirm);
  return result;
}

std::vector<WhatIf> relate(WhatIfs found, const Explanation& run) {
  const double scale = static_cast<double>(run.cycles) / found.expected;
  for (WhatIf& change : found.changes) {
    const auto* const resource =
        std::find_if(kResources.begin(), kResources.end(),
                     [&](const Resource& each) { return change.key == each.key; });
    change.on_path = on_path(run, resource->acts);
    if (!change.predicted) continue;
    for (std::optional<WhatIf::Outcome>* each : {&change.predicted, &change.kept}) {
      if (*each) *each = outcome(change.machine, (*each)->cycles * scale);
    }
  }
  sort_by_time(found.changes);
  return std::move(found.changes);
}

}  // namespace systole::testbench
