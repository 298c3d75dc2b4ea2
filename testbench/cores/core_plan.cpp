#include "testbench/cores/core_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "mapper/relocation.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {

std::string_view name_of(Split split) {
  constexpr std::array<std::string_view, kSplits> kNames = {"batch", "layers", "heads"};
  return kNames.at(static_cast<std::size_t>(split));
}

void require_equal_results(const hw::CoreSystem& system) {
  const hw::CoreSite& first = system.cores.front();
  for (const hw::CoreSite& core : system.cores) {
    for (const hw::MachineKey& key : hw::machine_keys()) {
      const bool decides = hw::section_of(key.path) == "datapath";
      if (!decides || key.get(core.machine) == key.get(first.machine)) continue;
      throw hw::InputError(core.name + ": " + std::string(key.path) + ": found " +
                           hw::value_text(key, core.machine) + ", expected " +
                           hw::value_text(key, first.machine) + " as of " + first.name +
                           ": their results would differ");
    }
  }
}

CorePlan plan_batch(const hw::CoreSystem& system, const std::vector<CoreSubject>& subjects,
                    std::size_t inferences) {
  CorePlan plan{system, Split::kBatch, subjects.front().graph, {}, {}, {}};
  const std::uint64_t memory = hw::memory_of_tiles(system);
  struct Placed {
    const mapper::Mapping* mapping;
    std::uint64_t base;
  };
  std::vector<Placed> placed;  // the constants of each network
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < system.cores.size(); ++i) {
    const CoreSubject& subject = subjects.at(i);
    const auto same = [&](const Placed& one) { return one.mapping == subject.mapping.get(); };
    const auto before = std::find_if(placed.begin(), placed.end(), same);
    std::shared_ptr<const mapper::Mapping> mapping = subject.mapping;
    if (i != 0) {
      const std::uint64_t base = round_up(end, mapper::kRelocationAlignment);
      mapper::Relocation to;
      to.tensors = base;
      to.constants = before == placed.end() ? base : before->base;
      to.with_constants = before == placed.end();
      // Constants that are in memory already leave no hole.
      to.program =
          base + (before == placed.end() ? mapping->program_address : mapping->constants_begin);
      mapping = std::make_shared<mapper::Mapping>(
          mapper::relocated(*mapping, to, system.cores[i].machine, memory));
    }
    if (before == placed.end()) {
      placed.push_back(
          {subject.mapping.get(), i == 0 ? 0 : round_up(end, mapper::kRelocationAlignment)});
    }
    end = mapping->dram_bytes;
    const model::Graph& graph = *subject.graph;
    plan.programs.push_back({i,
                             subject.graph,
                             mapping,
                             {},
                             mapper::place_of(graph, *mapping, input_tensor(graph)),
                             mapper::place_of(graph, *mapping, output_tensor(graph)),
                             0});
  }
  for (std::size_t i = 0; i < inferences; ++i) plan.tasks.push_back({i, std::nullopt, {}});
  return plan;
}

ShownPrograms::ShownPrograms(const CorePlan& plan, std::size_t core) {
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    if (plan.programs[i].core != core) continue;
    const hw::Program& program = plan.programs[i].mapping->program;
    const Place place{static_cast<std::uint32_t>(program_.operators.size()),
                      static_cast<std::uint32_t>(program_.commands.size())};
    places_.emplace(i, place);
    program_.operators.insert(program_.operators.end(), program.operators.begin(),
                              program.operators.end());
    for (hw::Command command : program.commands) {
      command.op += place.op;
      program_.commands.push_back(command);
    }
  }
}

}  // namespace systole::testbench
