#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "hw/number/unit_depths.h"
#include "hw/postop/microcode.h"
#include "hw/postop/parameter_words.h"
#include "hw/postop/postop.h"

namespace systole::hw {

/// From the cycle with which a row's tensor operands are there to the one after that in which its
/// last sums are read, at the earliest: store_times() (hw/dma/store_schedule.h).
inline constexpr std::uint64_t kOperandCycles = 2;

/// From the cycle after that in which the last vector of a row leaves to the first in which its
/// side output can be read: squares, their sum, and what was there before.
inline constexpr std::uint64_t kSideCycles = unit_depth::kMultiply + 1;
/// From the cycle after that in which the last results of a chain leave to the one with which its
/// side output is in its place: stages behind it hide what they take. 0: it has none.
[[nodiscard]] inline std::uint64_t side_cycles(const Chain& chain) {
  std::uint64_t behind = 0;
  for (auto stage = chain.stages.rbegin(); stage != chain.stages.rend(); ++stage) {
    if (stage->side != Reduction::kNone) return kSideCycles - std::min(kSideCycles, behind);
    behind += stage_latency(*stage);
  }
  return 0;
}

/// When a unit reads the first sums of its commands: the micro-code of their chains and their
/// parameters have to be there. The contract of store_times() (hw/dma/store_schedule.h), which a
/// test compares with it. Parameters that come before their command starts take what the scratchpad
/// has left.
class StoreSetUp {
 public:
  /// In the order in which the unit takes them.
  struct Command {
    std::uint64_t dispatched = 0, started = 0;  ///< cycles
    /// Cycle from which no older command writes its parameters any more, not before `dispatched`.
    std::uint64_t readable = 0;
    std::uint64_t chain = 0;            ///< equal for equal chains
    std::uint64_t stages = 0;           ///< of it
    std::uint64_t parameter_words = 0;  ///< of the scratchpad
  };

  /// What the scratchpad serves before cycle `until` will not be known any more when the next
  /// command starts, which is later. Its `started` does not count, and `readable` is known.
  /// `read(word, from, to)`: the first word of its parameters that is not read before cycle `to` if
  /// that is true of `word` in cycle `from`.
  template <typename Read>
  void read_ahead(const Command& next, std::uint64_t until, Read read) {
    const std::uint64_t from = std::max(parameters_begin(next), ahead_until_);
    if (next.parameter_words == 0 || from >= until) return;
    ahead_ = read(ahead_, from, until);
    ahead_until_ = until;
  }
  /// How many words of its parameters a command has still to read in the cycles after that in which
  /// it starts.
  template <typename Read>
  [[nodiscard]] std::uint64_t late_words(const Command& command, Read read) {
    const std::uint64_t from = std::max(parameters_begin(command), ahead_until_);
    const std::uint64_t words = command.parameter_words;
    if (words != 0 && command.started >= from) ahead_ = read(ahead_, from, command.started + 1);
    parameters_next_ = kNever;  // those of the next one come after them
    ahead_until_ = 0;
    return words - std::min(words, std::exchange(ahead_, 0));
  }

  /// Cycle in which the unit reads the first sums of a command. Its parameters have been read
  /// before cycle `parameters_read`, which comes after its start.
  std::uint64_t begin(const Command& command, std::uint64_t parameters_read) {
    std::uint64_t first = parameters_read;
    if (chain_ != command.chain) {
      const std::uint64_t words = command.stages * kMicrocodeWords;
      first = std::max(first, std::max(command.dispatched, free_) + words + 1);
    }
    chain_ = command.chain;
    parameters_next_ = parameters_read;
    return first;
  }

  /// A program begins, which has chains of its own.
  void forget() { chain_.reset(); }
  /// From this cycle on the unit can take the next command: all results have left the chain.
  void end(std::uint64_t free) { free_ = free; }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// The first cycle in which they can be read: nothing writes them, the command is the next one of
  /// the unit, and those of the one before are there.
  [[nodiscard]] std::uint64_t parameters_begin(const Command& command) const {
    return parameters_next_ == kNever ? kNever : std::max(command.readable, parameters_next_) + 1;
  }

  std::optional<std::uint64_t> chain_;  ///< whose micro-code the unit has
  std::uint64_t free_ = 0;
  std::uint64_t parameters_next_ = 0;  ///< when those of the next command can begin
  /// Words of the next command that have been read before a cycle.
  std::uint64_t ahead_ = 0, ahead_until_ = 0;
};

/// Of a command with rows of `cols` sums through a chain. For each vector of a parameter the
/// scratchpad is asked for the words that have its columns.
[[nodiscard]] inline StoreSetUp::Command set_up_command(
    const Chain& chain, std::uint64_t cols, std::uint64_t lanes, std::uint64_t word_bytes,
    std::uint64_t dispatched, std::uint64_t started, std::uint64_t readable) {
  return {dispatched,
          started,
          readable,
          chain_key(chain),
          chain.stages.size(),
          ParameterWords(0, parameter_words(chain), cols, lanes, word_bytes).count()};
}

}  // namespace systole::hw
