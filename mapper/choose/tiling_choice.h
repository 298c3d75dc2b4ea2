#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/emit/emitter.h"
#include "mapper/place/pipeline.h"
#include "mapper/replay/replay.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {

class TilingTrials;

/// How tilings are chosen: the best by the cost model alone, or the best of its best by a replay.
enum class Judge : std::uint8_t { kCost, kReplay };

/// Chooses tilings for the groups of one pipeline after another: of those that the cost model
/// (mapper/tile/tiling_cost.h) finds best, those with which a replay of the commands ends first.
/// The replay goes on from the commands before, so that it sees what operators leave each other to
/// wait for. Equal groups of a pipeline have equal tilings; equal pipelines between equal ones,
/// too, whatever the tilings of those.
class TilingChoice {
 public:
  explicit TilingChoice(const hw::Machine& machine)
      : machine_(machine), tiler_(machine), best_alone_(machine, kBestAlone), scratch_(machine) {}

  /// Whether a replay judges on that machine: it knows cycles alone, and its mapper may want others
  /// or leave no choice.
  [[nodiscard]] static bool may_replay(const hw::Machine& machine) {
    return machine.mapper.strategy == hw::MappingStrategy::kCost ||
           (machine.mapper.strategy == hw::MappingStrategy::kSearch &&
            machine.mapper.objective == hw::MappingObjective::kCycles);
  }

  /// A program begins. What kReplay asks for is done where may_replay().
  void begin(Judge judge) noexcept {
    judge_ = judge;
    last_ = SIZE_MAX;
    before_.clear();
  }
  /// Whether every pipeline is searched between its neighbours, as at first. If not, one that was
  /// searched between others is tried with the best of what was found there alone: enough to
  /// compare ways to run a graph.
  void search_all(bool all) noexcept { searches_all_ = all; }
  /// Frees what was decided and looked up for no program of the last `steps` calls of this:
  /// programs of a decoder's steps have new shapes all the time. Between two programs.
  void forget_unused(std::uint64_t steps);
  /// Frees the memory that trials use again.
  void free_room() {
    spare_ = std::vector<std::vector<hw::Command>>();
    scratch_ = Replay(machine_);
  }
  /// A number of what was decided last, equal for equal tilings.
  [[nodiscard]] std::size_t last() const noexcept { return last_; }
  /// Fills in the tilings of `now`, the rest of which is known. `emitter` and `replay` have seen
  /// everything before it; what follows it, if not null, is judged with it. Throws InputError that
  /// names a group of which not even single folds fit.
  void choose(TiledPipeline& now, const TiledPipeline* next, const Emitter& emitter,
              const Replay& replay);

 private:
  using Key = decltype(TilingProblem().key());
  using Tilings = std::vector<Tiling>;  ///< by group of a pipeline
  /// What was decided: by group of the pipeline.
  struct Decision {
    std::vector<Key> keys;
    Tilings tilings;
  };

  /// The best of the candidates, in turn for each kind of group. Returns the last of those that
  /// were the best so far, the best one last.
  [[nodiscard]] std::vector<Tilings> improve(TiledPipeline& now, TilingTrials& trials,
                                             const Replay& replay);
  /// The best of these, of which there is one at least.
  static void take_best(std::vector<TiledGroup>& groups, const std::vector<Tilings>& all,
                        TilingTrials& trials);
  /// The tilings of a group that runs alone, the best first. The cost model knows nothing of banks:
  /// where not all can be replayed as a whole they are in order of what their first commands say.
  [[nodiscard]] std::vector<Tiling> candidates_alone(const TiledGroup& group,
                                                     const TilingTrials& trials);
  /// The tiling that the cost model finds best.
  [[nodiscard]] const Tiling& first_tiling(const TiledGroup& group);
  /// With products in as many row tiles, if that fits; `by_rows`: row tile after row tile.
  [[nodiscard]] std::optional<std::vector<TiledGroup>> in_pieces(std::vector<TiledGroup> groups,
                                                                 std::uint32_t pieces,
                                                                 bool by_rows);
  /// Adds tilings of a product before heads whose C tiles are wider than a section.
  void add_sections(const TiledGroup& product, std::vector<Tiling>& candidates);
  /// The number of this decision, the same for equal ones.
  [[nodiscard]] std::size_t number_of(Decision decision);

  const hw::Machine machine_;
  Tiler tiler_;
  Tiler best_alone_;  ///< for drafts, which ask for nothing else
  struct Known {
    std::size_t number;  ///< of a decision
    std::uint64_t used;  ///< step
    bool is_searched;    ///< between these neighbours
  };
  std::map<std::size_t, Decision> decisions_;  ///< by number
  std::uint64_t step_ = 0;
  /// By who judged, and the keys of the pipeline before, of the pipeline itself, and of what
  /// follows it.
  std::map<std::tuple<Judge, std::vector<Key>, std::vector<Key>, std::vector<Key>>, Known> known_;
  /// By the keys of a pipeline: what was found for it between some neighbours, the best one last;
  /// while not every pipeline is searched.
  /// Of vit65's 55 pipelines, 23 differ from others by their neighbours alone.
  std::map<std::vector<Key>, std::vector<Tilings>> found_;
  bool searches_all_ = true;
  Judge judge_ = Judge::kReplay;
  std::size_t last_ = SIZE_MAX;                  ///< number of the last decision
  std::vector<Key> before_;                      ///< its keys
  std::vector<std::vector<hw::Command>> spare_;  ///< memory that trials use again
  Replay scratch_;                               ///< and that of their replays
};

}  // namespace systole::mapper
