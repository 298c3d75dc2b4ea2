#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "hw/program/program.h"
#include "mapper/emit/emitter.h"
#include "mapper/place/pipeline.h"
#include "mapper/replay/replay.h"

namespace systole::mapper {

/// Replays tilings of a pipeline's groups after the same state, with what follows them.
class TilingTrials {
 public:
  using Commands = std::vector<hw::Command>;
  /// Commands that are replayed to decide on one pipeline, and commands that take as long to emit
  /// as to replay one.
  static constexpr std::uint64_t kMostReplayed = 40'000, kEmitted = 8;

  /// `spare`: memory of commands of trials before, taken and given back; `scratch`: of a replay.
  TilingTrials(const Pipeline& pipeline, const TiledPipeline* next, const Emitter& emitter,
               const Replay& replay, std::vector<Commands>& spare, Replay& scratch);
  TilingTrials(const TilingTrials&) = delete;
  TilingTrials& operator=(const TilingTrials&) = delete;
  ~TilingTrials();

  /// Cycle in which all is done; nothing if that is not before `limit`, or too much to replay.
  [[nodiscard]] std::optional<std::uint64_t> end(const std::vector<TiledGroup>& groups,
                                                 std::uint64_t limit);
  /// Cycles that the group of a pipeline of one is expected to take, by the pace of its first
  /// commands.
  [[nodiscard]] std::uint64_t expected_by_sample(const TiledGroup& group) const;

 private:
  /// Commands that were replayed.
  struct Trial {
    Commands commands;  ///< but for those of what follows, which follow from them
    std::vector<hw::DramTile> operand_tiles;
    bool second_half = false;               ///< where the next C tile goes
    std::size_t chunks = 0;                 ///< of all its commands
    std::vector<std::uint64_t> dispatched;  ///< cycles in which the last of each chunk was
    std::uint64_t end = kNotKnown;          ///< cycle; not known of a trial that was given up
    std::uint64_t not_before = 0;           ///< no end before this cycle

    /// Whether no replay is needed to compare it with that limit.
    [[nodiscard]] bool says(std::uint64_t limit) const {
      return end != kNotKnown || not_before >= limit;
    }
    /// Chunks that have to be dispatched to reach that limit: what is tried at all does not depend
    /// on how soon a bound says that a trial will be late.
    [[nodiscard]] std::size_t chunks_until(std::uint64_t limit) const {
      const auto found = std::lower_bound(dispatched.begin(), dispatched.end(), limit);
      if (found == dispatched.end()) return chunks;
      return static_cast<std::size_t>(found - dispatched.begin()) + 1;
    }
  };
  static constexpr std::uint64_t kNotKnown = std::numeric_limits<std::uint64_t>::max();

  void run(const hw::Program& program, std::uint64_t limit, Trial& trial);

  Pipeline part_, next_part_;
  const TiledPipeline* next_;
  const Emitter& emitter_;
  const Replay& replay_;
  std::vector<Commands>& spare_;
  Replay& scratch_;
  std::uint64_t replayed_ = 0;
  std::vector<Trial> trials_;  ///< all different
};

}  // namespace systole::mapper
