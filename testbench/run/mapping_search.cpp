#include "testbench/run/mapping_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "hw/description/machine_keys.h"
#include "hw/program/program_image.h"
#include "mapper/mapping.h"
#include "mapper/tile/objective.h"
#include "testbench/common/side_by_side.h"
#include "testbench/run/rtl_blocks.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

using hw::FusionLevel;
using hw::MappingObjective;
using hw::MappingStrategy;

/// A value of a key as a user writes it.
template <typename Value>
std::string_view word(const char* key, Value value) {
  return hw::find_machine_key(key)->words[static_cast<std::size_t>(value)];
}

/// The machine's level, and those that fuse less.
std::vector<FusionLevel> fusion_levels(FusionLevel level) {
  switch (level) {
    case FusionLevel::kAll:
    case FusionLevel::kPost:
      return {level, FusionLevel::kLibrary, FusionLevel::kNone};
    case FusionLevel::kLibrary:
      return {level, FusionLevel::kNone};
    case FusionLevel::kNone:
    case FusionLevel::kOff:
      break;
  }
  return {level};
}

/// All ways that the search maps a network, the plain one first.
std::vector<hw::Machine::Mapper> ways(const hw::Machine::Mapper& mapper) {
  std::vector<MappingObjective> objectives = {mapper.objective};
  if (mapper.objective == MappingObjective::kEdp) {
    objectives.insert(objectives.end(), {MappingObjective::kCycles, MappingObjective::kEnergy});
  }
  std::vector<hw::Machine::Mapper> ways;
  for (const FusionLevel fusion : fusion_levels(mapper.fusion)) {
    hw::Machine::Mapper way = mapper;
    way.fusion = fusion;
    way.strategy = MappingStrategy::kCost;
    ways.push_back(way);
    way.strategy = MappingStrategy::kSearch;
    for (const MappingObjective objective : objectives) {
      way.objective = objective;
      ways.push_back(way);
    }
  }
  return ways;
}

/// Of the tilings, and what leaks in their time.
MappingCandidate expect(const hw::Machine& machine, const hw::Machine::Mapper& mapper,
                        const mapper::Mapping& mapping) {
  MappingCandidate candidate;
  candidate.mapper = mapper;
  for (const mapper::Tiling& tiling : mapping.tilings) {
    candidate.tried += tiling.tried;
    candidate.expected.cycles += static_cast<double>(tiling.cycles);
    candidate.expected.joules += tiling.energy;
  }
  hw::EnergyEvents time;
  time.seconds = candidate.expected.cycles / (1e6 * machine.core.clock_mhz);
  candidate.expected.joules += hw::energy_of(time, machine).leakage;
  return candidate;
}

nlohmann::ordered_json simulated(const model::Graph& graph, hw::Machine machine,
                                 const hw::Machine::Mapper& mapper) {
  machine.mapper = mapper;
  SimulationOptions options;
  options.functional = false;
  RtlReport rtl;
  const SimulationResult result =
      simulate(graph, mapper::map_graph(graph, machine), machine, make_engines(machine, {}, rtl),
               std::vector<std::vector<std::uint8_t>>(1), options);
  return {{"cycles", result.cycles.front()},
          {"joules", hw::energy_of(result.events, machine).total()}};
}

}  // namespace

std::string MappingCandidate::strategy_name() const {
  const std::string name(word("mapper.strategy", mapper.strategy));
  if (mapper.strategy == MappingStrategy::kCost) return name;
  return fmt::format("{} {}", name, word("mapper.objective", mapper.objective));
}

std::string_view MappingCandidate::fusion_name() const {
  return word("mapper.fusion", mapper.fusion);
}

double MappingSearch::value(const MappingCost& cost) const {
  hw::Machine::Mapper mapper;
  mapper.strategy = MappingStrategy::kSearch;
  mapper.objective = objective;
  return mapper::objective_of(mapper, cost.cycles, cost.joules);
}

MappingSearch search_mappings(const model::Graph& graph, const hw::Machine& machine,
                              std::size_t confirm) {
  MappingSearch search{machine.mapper.objective, {}};
  std::vector<std::vector<std::uint8_t>> programs;
  std::exception_ptr failure;
  for (const hw::Machine::Mapper& mapper : ways(machine.mapper)) {
    hw::Machine way = machine;
    way.mapper = mapper;
    try {
      const mapper::Mapping mapping = mapper::map_graph(graph, way);
      std::vector<std::uint8_t> program = hw::encode_program(mapping.program);
      if (std::find(programs.begin(), programs.end(), program) != programs.end()) continue;
      programs.push_back(std::move(program));
      search.candidates.push_back(expect(machine, mapper, mapping));
    } catch (const hw::InputError&) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (search.candidates.empty()) std::rethrow_exception(failure);

  const auto plain = [&](const MappingCandidate& candidate) {
    return candidate.mapper.strategy == MappingStrategy::kCost &&
           candidate.mapper.fusion == machine.mapper.fusion;
  };
  std::stable_sort(search.candidates.begin(), search.candidates.end(),
                   [&](const MappingCandidate& a, const MappingCandidate& b) {
                     return search.value(a.expected) < search.value(b.expected);
                   });
  if (confirm == 0) return search;

  std::vector<Experiment> experiments;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < search.candidates.size(); ++i) {
    if (i >= confirm && !plain(search.candidates[i])) continue;
    of.push_back(i);
    experiments.push_back([&graph, &machine, mapper = search.candidates[i].mapper] {
      return simulated(graph, machine, mapper);
    });
  }
  const std::vector<nlohmann::ordered_json> results = run_side_by_side(experiments);
  search.best = of.front();
  for (std::size_t i = 0; i < of.size(); ++i) {
    const MappingCost cost{results[i]["cycles"].get<double>(), results[i]["joules"].get<double>()};
    search.candidates[of[i]].simulated = cost;
    if (search.value(cost) < search.value(*search.chosen().simulated)) search.best = of[i];
  }
  return search;
}

}  // namespace systole::testbench
