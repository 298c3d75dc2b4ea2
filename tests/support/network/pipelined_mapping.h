#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/choose/tiling_choice.h"
#include "mapper/emit_groups.h"
#include "mapper/fuse/fusion.h"
#include "mapper/fuse/split_norms.h"
#include "mapper/mapping.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

/// Graphs mapped with pipelines that a test asks for, not with those that are expected to be best.
namespace systole::test {

inline constexpr std::array<mapper::Pipelining, 11> kAllPipelinings = {
    {{false, false, 0, false},
     {true, false, 0, false},
     {true, false, 0, true},
     {false, true, 0, false},
     {true, true, 0, false},
     {true, true, 0, true},
     {true, true, 2, false},
     {true, true, 5, false},
     {true, false, 0, false, true},
     {true, true, 0, false, true},
     {true, true, 0, true, true}}};

inline std::string text_of(const mapper::Pipelining& allowed) {
  return "attention " + std::to_string(allowed.attention) + ", rows " +
         std::to_string(allowed.rows) + ", joined " + std::to_string(allowed.joined) + ", strips " +
         std::to_string(allowed.strips) + ", projected " + std::to_string(allowed.projected);
}

/// Levels by group, a comma between pipelines: "0,0101,012".
inline std::string levels_text(const std::vector<mapper::Pipeline>& pipelines) {
  std::string text;
  for (const mapper::Pipeline& pipeline : pipelines) {
    if (!text.empty()) text += ',';
    for (const std::uint32_t level : pipeline.levels) text += std::to_string(level);
  }
  return text;
}

struct PipelinedMapping {
  std::vector<mapper::Pipeline> pipelines;
  mapper::Mapping mapping;
};

/// As map_graph() does it, with the pipelines that `allowed` gives and that residence; `choice`
/// remembers the tilings of mappings before. Throws InputError when the machine is too small for
/// them.
inline PipelinedMapping map_pipelined(const model::Graph& whole, const hw::Machine& machine,
                                      mapper::Pipelining allowed, mapper::TilingChoice& choice,
                                      mapper::Residence residence = {}) {
  const model::Graph graph = mapper::split_norms(whole, machine);
  std::vector<mapper::Group> groups = mapper::fuse(graph, machine).groups;
  PipelinedMapping result;
  result.pipelines = mapper::find_pipelines(graph, groups, machine, allowed);
  mapper::Placement placement =
      mapper::place_tensors(graph, groups, result.pipelines, machine, residence);
  mapper::PlanReplay expected =
      mapper::replay_plan(graph, machine, groups, result.pipelines, placement, choice);
  result.mapping = mapper::emit_groups(graph, machine, std::move(groups), result.pipelines,
                                       std::move(placement), std::move(expected), true);
  return result;
}

}  // namespace systole::test
