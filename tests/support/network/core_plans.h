#pragma once

#include <memory>
#include <vector>

#include "hw/description/core_system.h"
#include "mapper/mapping.h"
#include "support/network/encoder_run.h"
#include "testbench/cores/core_plan.h"
#include "testbench/cores/head_split.h"
#include "testbench/cores/layer_split.h"

namespace systole::test {

[[nodiscard]] inline std::shared_ptr<const model::Graph> shared_graph(const Workload& workload) {
  return {std::shared_ptr<void>(), &workload.graph};
}

/// The plan of all inferences of a workload, which outlives it. Cores with equal keys share a
/// program.
[[nodiscard]] inline testbench::CorePlan plan_of(testbench::Split split,
                                                 const hw::CoreSystem& system,
                                                 const Workload& workload) {
  const std::size_t inferences = workload.inputs.size();
  if (split == testbench::Split::kLayers) {
    return testbench::plan_layers(system, shared_graph(workload), inferences);
  }
  if (split == testbench::Split::kHeads) {
    return testbench::plan_heads(system, shared_graph(workload), inferences);
  }
  std::vector<testbench::CoreSubject> subjects;
  for (std::size_t i = 0; i < system.cores.size(); ++i) {
    std::size_t like = 0;
    while (!hw::same_keys(system.cores[like].machine, system.cores[i].machine)) ++like;
    if (like < i) {
      subjects.push_back(subjects[like]);
      continue;
    }
    subjects.push_back({shared_graph(workload), std::make_shared<mapper::Mapping>(mapper::map_graph(
                                                    workload.graph, system.cores[i].machine))});
  }
  return testbench::plan_batch(system, subjects, inferences);
}

}  // namespace systole::test
