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
  StepMapper(const model::Graph& graph, const hw::Machine& machine,
             RowGaps gaps = RowGaps::kWeighed);

  /// The same for another program on the tensors of `other`'s graph, whose nodes may be others: a
  /// state that `other` has is where it has it, all else that this program has in DRAM comes after
  /// `other`'s constants, weights of both a second time. `other` has mapped a step. From then on
  /// the programs of `other` have to be where those of this one are: place_programs().
  StepMapper(const model::Graph& graph, const hw::Machine& machine, const StepMapper& other);

  /// Where the programs of steps are, after all constants of the last map().
  [[nodiscard]] std::uint64_t programs() const { return program_address_.value(); }
  /// Has the programs at another address, from the next map() on.
  void place_programs(std::uint64_t address) { programs_at_ = address; }

  /// The program of the step that `graph` computes, the same graph as that of the constructor.
  /// `with_constants` off: the image is the program alone, for a machine that holds the rest.
  /// Takes the memory of `last`, a mapping that is not needed any more.
  [[nodiscard]] Mapping map(const model::Graph& step, bool with_constants, Mapping last = {});

  /// A program of other operators on the same tensors, which runs between two steps: `graph` has
  /// their tensors, and its nodes read and write such as last in DRAM from step to step. The image
  /// is the program alone.
  [[nodiscard]] Mapping map_between(const model::Graph& graph);

 private:
  /// `parted`: split_norms() of the graph. Null: of no other.
  StepMapper(const hw::Machine& machine, const model::Graph& parted, RowGaps gaps,
             const StepMapper* other);
  /// Where the tensors are with such distances between rows, those of `other` where it has them.
  [[nodiscard]] Placement place(const model::Graph& parted, std::uint32_t row_gap) const;

  hw::Machine machine_;
  std::vector<std::uint32_t> gaps_;  ///< between rows, to try
  std::vector<Group> groups_;
  std::vector<Pipeline> pipelines_;  ///< every group alone
  std::vector<Location> states_;     ///< by tensor: where `other` has it in DRAM, else nowhere
  std::uint64_t begin_ = 0;          ///< of this program's memory, after `other`'s
  Placement placement_;
  TilingChoice choice_, choice_between_;
  FixedTilings weights_;  ///< of groups with weights or parameters, as the first step has them
  std::optional<std::uint64_t> program_address_;  ///< after all constants
  std::optional<std::uint64_t> programs_at_;      ///< elsewhere
};

}  // namespace systole::mapper
