#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/choose/tiling_choice.h"
#include "mapper/group/group.h"
#include "mapper/place/pipeline.h"
#include "mapper/place/placement.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// What is expected of groups that run as pipelines.
struct PlanReplay {
  /// By group. Cycles are those from the end of the operator before: they add up to `cycles`.
  std::vector<Tiling> tilings;
  std::uint64_t cycles = 0;  ///< of the whole program
  std::uint64_t least = 0;   ///< cycles that its array, post-op unit or loads of weights take
  std::size_t replayed = 0;  ///< pipelines; the others repeat some of them
  bool given_up = false;     ///< after the limit, without the rest
};

/// What is replayed: all, or neither commands nor pipelines of layers (and heads) that repeat the
/// ones before; or, for a draft with the first tilings of the cost model, none once all that are
/// left have the shape of others before them: they are assumed to take as long, and only the cycles
/// of the whole program are known.
enum class Repeats : std::uint8_t { kReplayed, kTakenOver, kDraft };

/// Tilings that groups have to have, by group; the others are chosen.
using FixedTilings = std::vector<std::optional<Tiling>>;

/// Chooses tilings for the groups, replays their commands, keeps none. Commands that repeat those
/// before them are expected to take as long (mapper/choose/command_repeats.h). Where layers repeat,
/// in shapes, tilings and cycles, the rest of them are expected to take as long as the last one
/// replayed. A plan that is not done by cycle `limit` is given up. Throws InputError that names a
/// group of which not even single folds fit.
/// `fixed` is empty, or of groups that are pipelines of their own.
[[nodiscard]] PlanReplay replay_plan(const model::Graph& graph, const hw::Machine& machine,
                                     const std::vector<Group>& groups,
                                     const std::vector<Pipeline>& pipelines,
                                     const Placement& placement, TilingChoice& choice,
                                     Repeats repeats = Repeats::kTakenOver,
                                     std::uint64_t limit = UINT64_MAX,
                                     const FixedTilings& fixed = {});

/// The same program with the tilings of `chosen`, as a whole and request by request, which takes
/// several times as long. Replay::knows_requests() has to hold.
[[nodiscard]] PlanReplay replay_requests(const model::Graph& graph, const hw::Machine& machine,
                                         const std::vector<Group>& groups,
                                         const std::vector<Pipeline>& pipelines,
                                         const Placement& placement, TilingChoice& choice,
                                         const PlanReplay& chosen,
                                         std::uint64_t limit = UINT64_MAX);

/// The groups of a pipeline of groups that the emitter tiles, without their tilings.
[[nodiscard]] std::vector<TiledGroup> groups_of(const Pipeline& pipeline, const model::Graph& graph,
                                                const hw::Machine& machine,
                                                const std::vector<Group>& groups,
                                                const Placement& placement);

}  // namespace systole::mapper
