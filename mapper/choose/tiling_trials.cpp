#include "mapper/choose/tiling_trials.h"

#include <utility>

#include "base/round.h"
#include "mapper/choose/command_repeats.h"
#include "mapper/replay/replay_work.h"

namespace systole::mapper {
namespace {

/// Commands of a sample. What the first of them take is not its pace: the array waits for the first
/// tiles, and what stays comes in.
constexpr std::size_t kSampled = 512, kFirst = 128;
/// Groups that a pipeline is judged by: those after them repeat them.
constexpr std::size_t kJudged = 6;
/// After so many commands a trial that is already too late is given up.
constexpr std::size_t kAtOnce = 16;
/// Commands of the next pipeline that a trial is judged with: they show how soon it can begin. With
/// all of them vit65 took 0.2 % more cycles on 48 machines of mapping_bench, with none 0.2 %, too,
/// and 3 % on one of them.
constexpr std::size_t kOfNext = 16;
/// The pipeline as far as it is judged by.
Pipeline judged(const Pipeline& pipeline) {
  Pipeline part = pipeline;
  if (pipeline.is_heads_alone() && pipeline.section == 0)
    part.levels.resize(std::min(part.levels.size(), kJudged));
  return part;
}

/// Cycles that the array, the post-op unit and the bus to the load unit take at least for commands,
/// after some state.
class LeastLeft {
 public:
  LeastLeft(const hw::Program& program, const hw::Machine& machine, const Replay& state)
      : array_(state.progress(hw::Unit::kCompute)),
        postop_(state.progress(hw::Unit::kStore)),
        loads_(state.progress(hw::Unit::kLoad)),
        bus_cycle_(static_cast<double>(machine.core.clock_mhz) / machine.bus.clock_mhz) {
    for (const hw::Command& command : program.commands) {
      const std::uint64_t cycles = least_cycles(command, program, machine);
      if (hw::unit_of(command.opcode()) == hw::Unit::kCompute) {
        array_.cycles.push_back(cycles);
        last_ = 0;
      } else if (hw::unit_of(command.opcode()) == hw::Unit::kStore) {
        postop_.cycles.push_back(cycles);
        last_ += cycles;
      } else if (hw::unit_of(command.opcode()) == hw::Unit::kLoad) {
        loads_.cycles.push_back(least_beats(command, machine.bus.width_bytes));
      }
    }
    loads_.add_up();
    array_.add_up();
    postop_.add_up();
  }

  /// The repeats of a stretch are not replayed.
  void skip(const hw::Program& program, const Stretch& stretch) {
    for (std::size_t i = stretch.last; i < stretch.end(); ++i) {
      const hw::Unit unit = hw::unit_of(program.commands[i].opcode());
      if (unit == hw::Unit::kCompute) ++array_.skipped;
      if (unit == hw::Unit::kStore) ++postop_.skipped;
      if (unit == hw::Unit::kLoad) ++loads_.skipped;
    }
  }

  /// A cycle before which the commands have not completed on a replay that went on from the state.
  [[nodiscard]] std::uint64_t end(const Replay& replay) const {
    // One load may be in part on the bus.
    const std::uint64_t beats = loads_.left(replay.progress(hw::Unit::kLoad).ended + 1);
    const double loaded =
        beats == 0 ? 0 : replay.reads_free() + static_cast<double>(beats - 1) * bus_cycle_;
    return std::max({array_.end(replay.progress(hw::Unit::kCompute)) + last_,
                     postop_.end(replay.progress(hw::Unit::kStore)),
                     static_cast<std::uint64_t>(loaded)});
  }

 private:
  struct UnitLeft {
    explicit UnitLeft(const Replay::Progress& state) : before(state.dispatched) {}
    /// From cycles of each command to those of it and all after it.
    void add_up() {
      cycles.push_back(0);
      for (std::size_t i = cycles.size() - 1; i-- > 0;) cycles[i] += cycles[i + 1];
    }
    /// Of the commands after so many of the unit.
    [[nodiscard]] std::uint64_t left(std::uint64_t ended) const {
      const std::uint64_t done = std::max(ended, before) - before + skipped;
      return cycles[std::min<std::uint64_t>(done, cycles.size() - 1)];
    }
    [[nodiscard]] std::uint64_t end(const Replay::Progress& now) const {
      return now.free + left(now.ended);
    }
    std::uint64_t before;       ///< commands of the unit before these
    std::uint64_t skipped = 0;  ///< of these
    std::vector<std::uint64_t> cycles;
  };
  static std::uint64_t least_beats(const hw::Command& command, std::uint32_t width) {
    const auto* load = command.as<hw::cmd::Load>();
    if (load == nullptr || load->window) return 0;
    return load->m * ceil_div(load->n * hw::bytes_of(load->type), std::uint64_t{width});
  }

  UnitLeft array_, postop_, loads_;
  double bus_cycle_;
  std::uint64_t last_ = 0;  ///< cycles of results after the last product: the first is its own
};

}  // namespace

TilingTrials::TilingTrials(const Pipeline& pipeline, const TiledPipeline* next,
                           const Emitter& emitter, const Replay& replay,
                           std::vector<Commands>& spare, Replay& scratch)
    : part_(judged(pipeline)),
      next_(next),
      emitter_(emitter),
      replay_(replay),
      spare_(spare),
      scratch_(scratch) {
  if (next != nullptr) next_part_ = judged(*next->pipeline);
}

TilingTrials::~TilingTrials() {
  for (Trial& trial : trials_) spare_.push_back(std::move(trial.commands));
}

std::optional<std::uint64_t> TilingTrials::end(const std::vector<TiledGroup>& groups,
                                               std::uint64_t limit) {
  const auto last = groups.begin() + static_cast<std::ptrdiff_t>(part_.levels.size());
  std::uint64_t expected = 0, following = 0;
  std::for_each(groups.begin(), last, [&](const TiledGroup& next) { expected += next.commands(); });
  if (next_ != nullptr) {
    for (std::size_t i = 0; i < next_part_.levels.size(); ++i) {
      following += next_->groups[i].commands();
    }
  }
  expected += std::min<std::uint64_t>(following, kOfNext);
  if (replayed_ + expected / kEmitted > kMostReplayed) return std::nullopt;
  replayed_ += expected / kEmitted;
  hw::Program program;
  if (!spare_.empty()) {
    program.commands = std::move(spare_.back());
    program.commands.clear();
    spare_.pop_back();
  }
  ConstantImage constants(emitter_.target().constants.end(), false);
  Emitter draft(emitter_, constants, program);
  draft.emit(part_, {groups.begin(), last});
  const std::size_t commands = program.commands.size(), tiles = program.operand_tiles.size();
  // Tilings that differ in what they have no room for give the same commands.
  auto known = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
    return trial.second_half == draft.second_half() && trial.commands == program.commands &&
           trial.operand_tiles == program.operand_tiles;
  });
  const bool is_new = known == trials_.end();
  if (is_new) known = trials_.emplace(trials_.end());
  const bool second_half = draft.second_half();
  if (is_new || !known->says(limit)) {
    if (next_ != nullptr) {
      const auto count = static_cast<std::ptrdiff_t>(next_part_.levels.size());
      draft.emit(next_part_, {next_->groups.begin(), next_->groups.begin() + count}, kOfNext);
    }
    run(program, limit, *known);
    program.commands.resize(commands);
    program.operand_tiles.resize(tiles);
  }
  if (is_new) {
    known->commands = std::move(program.commands);
    known->operand_tiles = std::move(program.operand_tiles);
    known->second_half = second_half;
  } else {
    spare_.push_back(std::move(program.commands));
  }
  replayed_ += kAtOnce * known->chunks_until(limit);
  return known->end < limit ? std::optional(known->end) : std::nullopt;
}

std::uint64_t TilingTrials::expected_by_sample(const TiledGroup& group) const {
  const TilingProblem& problem = group.problem;
  if (problem.k == 0) return group.tiling.cycles;
  hw::Program program;
  ConstantImage constants(emitter_.target().constants.end(), false);
  Emitter draft(emitter_, constants, program);
  draft.emit(part_, {group}, kSampled);
  scratch_ = replay_;
  const std::size_t count = program.commands.size(), first = std::min(kFirst, count / 2);
  const auto products = [&](std::size_t from, std::size_t to) {
    double macs = 0;
    for (std::size_t i = from; i < to; ++i) {
      if (const auto* const matmul = program.commands[i].as<hw::cmd::Matmul>()) {
        macs += static_cast<double>(matmul->m) * matmul->n * matmul->k;
      }
    }
    return macs;
  };
  scratch_.run(program, 0, first);
  const auto begun = static_cast<double>(scratch_.dispatch());
  scratch_.run(program, first, count);
  const auto ended = static_cast<double>(scratch_.dispatch());
  const double left = static_cast<double>(problem.m) * problem.n * problem.k - products(0, first);
  const double pace = (ended - begun) / std::max(1.0, products(first, count));
  return static_cast<std::uint64_t>(begun + pace * left) - replay_.dispatch();
}

void TilingTrials::run(const hw::Program& program, std::uint64_t limit, Trial& trial) {
  const hw::Machine& machine = emitter_.target().machine;
  trial.dispatched.clear();
  Replay& replay = scratch_;
  replay = replay_;
  const std::vector<Stretch> stretches = find_stretches(program, machine, Alike::kInBanks);
  trial.chunks = 0;
  for (const Stretch& stretch : stretches) {
    trial.chunks +=
        ceil_div(stretch.measured() - stretch.first, kAtOnce) + ceil_div(stretch.period, kAtOnce);
  }
  LeastLeft least(program, machine, replay_);
  std::uint64_t skipped = 0;  // cycles of what is not replayed
  for (const Stretch& stretch : stretches) {
    std::uint64_t measured = 0;
    for (std::size_t first = stretch.first; first < stretch.last;) {
      const bool is_before = first < stretch.measured();
      if (first == stretch.measured()) measured = replay.dispatch();
      const std::size_t end =
          std::min(first + kAtOnce, is_before ? stretch.measured() : stretch.last);
      replay.run(program, first, end);
      first = end;
      trial.dispatched.push_back(replay.dispatch() + skipped);
      trial.not_before = skipped + std::max(replay.dispatch(), least.end(replay));
      if (trial.not_before >= limit) return;
    }
    skipped += stretch.repeats * (replay.dispatch() - measured);
    least.skip(program, stretch);
  }
  trial.end = replay.finish() + skipped;
}

}  // namespace systole::mapper
