#pragma once

#include <cstdint>
#include <optional>

#include "hw/machine/machine.h"
#include "mapper/choose/plan_replay.h"
#include "mapper/choose/tiling_choice.h"
#include "mapper/fuse/fusion.h"
#include "mapper/mapping.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// Programs for the steps of one graph, which differ in their views alone
/// (model/build/decode_graph.h). What is fused and where tensors and constants are placed is
/// decided once, so that caches and weights stay where they are, and so are the tiles of weights,
/// by which they are stored. Other tiles and the commands are made anew for every step.
class StepMapper {
 public:
  /// `graph` is at the step with the largest views. Throws InputError as map_graph() does.
  StepMapper(const model::Graph& graph, const hw::Machine& machine);

  /// The program of the step that `graph` computes, the same graph as that of the constructor.
  /// `with_constants` off: the image is the program alone, for a machine that holds the rest.
  [[nodiscard]] Mapping map(const model::Graph& step, bool with_constants);

  /// A program of other operators on the same tensors, which runs between two steps: `graph` has
  /// their tensors, and its nodes read and write such as last in DRAM from step to step. The image
  /// is the program alone.
  [[nodiscard]] Mapping map_between(const model::Graph& graph);

 private:
  /// `parted`: split_norms() of the graph.
  StepMapper(const hw::Machine& machine, const model::Graph& parted);

  hw::Machine machine_;
  std::vector<Group> groups_;
  std::vector<Pipeline> pipelines_;  ///< every group alone
  Placement placement_;
  TilingChoice choice_, choice_between_;
  FixedTilings weights_;  ///< of groups with weights or parameters, as the first step has them
  std::optional<std::uint64_t> program_address_;  ///< after all constants
};

}  // namespace systole::mapper
