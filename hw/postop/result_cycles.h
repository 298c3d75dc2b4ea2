#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "base/round.h"
#include "hw/postop/postop.h"
#include "hw/postop/store_set_up.h"

namespace systole::hw {

/// What a tile takes of the store unit where nothing is late: its chain with the accumulator before
/// it and the pieces behind it, in which results leave.
struct ResultCycles : ChainCycles {
  /// From the cycle after that in which the last vector of a row goes in for the first time to the
  /// one after that in which it leaves, if all results leave at once.
  std::uint64_t latency = 0;
  /// Between rows, if no serial unit has to be waited for and results leave at once.
  std::uint64_t stream = 0;
  std::uint64_t vectors = 0;  ///< of a row
  std::uint64_t pieces = 0;   ///< cycles of a row for which the stages stand still: piece_cycles()
  FactorCycles units{};       ///< serial units ahead of the rows, 0 after the last
  /// From the cycle in which a vector of sums is read to the one in which it takes what they made.
  std::uint64_t to_factors = 0;
  /// Of these, before the operands of the row's last vector are there.
  std::uint64_t left_before = 0;
  /// From the cycle with which the operands of the first row are there to the one after that in
  /// which its last piece leaves.
  std::uint64_t after_operands = 0;
  /// The same from the operands of the last row on, if no sums are read before.
  std::uint64_t after_tile = 0;
  /// From the cycle after that in which the last sums are read to the one after that in which the
  /// last piece leaves, unless they are all read before the first ones wait in the stages.
  std::uint64_t drain = 0;
  /// Vectors in the stages before one that makes them wait, row-wise or with serial units, when
  /// these are full.
  std::uint64_t waiting = 0;
  /// From the cycle after that in which the last piece leaves to the one with which the row
  /// statistics have the last side output, and the next command may start.
  std::uint64_t side = 0;
};

/// Of a tile of `rows` x `cols`, at least one each. `stages`: what chain_cycles() says of it;
/// `piece`: result_piece_bytes(); `read`: cycles of an access to the accumulator.
[[nodiscard]] ResultCycles result_cycles(const ChainCycles& stages, const Chain& chain,
                                         std::uint64_t rows, std::uint64_t cols,
                                         std::uint32_t lanes, std::uint64_t piece,
                                         std::uint64_t read);

/// The cycle after that in which the last sums of a tile are read, by `drain` alone, if that can be
/// told when the last one but `left` rows leaves in cycle `done`: the last one does not leave
/// before cycle `end`.
[[nodiscard]] std::optional<std::uint64_t> sums_read(const ResultCycles& cycles, std::uint64_t done,
                                                     std::uint64_t left, std::uint64_t end);

/// When the rows of a tile leave the store unit, one after the other. The stages are one pipeline,
/// in which nothing moves while a result at its end is not taken: what is in it then leaves that
/// much later, and what has not gone in yet loses no more than it had to wait. Serial units go on
/// meanwhile, a row ahead.
class RowClock {
 public:
  RowClock() = default;
  /// A tile of a command that starts in cycle `started` and takes `set_up` cycles before its first
  /// sums can be read. Serial units work meanwhile.
  RowClock(const ResultCycles& cycles, std::uint64_t started, std::uint64_t set_up);

  /// The cycle after that in which the last piece of the last row has left.
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  /// Cycles in which the stages worked on rows: of each, no more than `cycles.per_row`.
  [[nodiscard]] std::uint64_t busy() const noexcept { return busy_; }
  /// The next row leaves, whose results are all taken at once.
  void next() { leave(0); }
  /// The same of a row whose operands are there in cycle `there`; `tile`: those of all rows are.
  void next(std::uint64_t there, bool tile);
  /// What has just left was taken `cycles` later.
  void hold(std::uint64_t cycles);
  /// The cycle after that in which the last sums are read, if that can be told now: `left` rows are
  /// still to leave, the last of them not before cycle `end`.
  [[nodiscard]] std::optional<std::uint64_t> sums_read(std::uint64_t left, std::uint64_t end) const;

 private:
  static constexpr std::size_t kKept = 32;
  using FactorTimes = std::array<std::uint64_t, std::tuple_size_v<FactorCycles>>;
  /// Cycles in which the stages stood still: `cycles` of those in [from, to).
  struct Hold {
    std::uint64_t from = 0, to = 0, cycles = 0;
  };
  /// `earliest`: as out_.
  void leave(std::uint64_t earliest);
  void keep(const Hold& hold);
  /// The cycle with which the serial units have what the next row needs.
  [[nodiscard]] std::uint64_t next_factor();
  /// Cycles for which results of a row that leave hold up its last `vectors` vectors on their way
  /// to the stage that waits for serial units.
  [[nodiscard]] std::uint64_t stalls_before_taken(std::uint64_t vectors) const;
  /// Cycles before `cycle` in which the stages stood still.
  [[nodiscard]] std::uint64_t held_before(std::uint64_t cycle) const;
  /// The cycle in which the stages are as far as they would be in cycle `moved` if nothing had
  /// stood still.
  [[nodiscard]] std::uint64_t reached(std::uint64_t moved) const;

  ResultCycles cycles_;
  std::uint64_t all_read_ = 0;  ///< the cycle after that in which the last sums are, if none wait
  std::uint64_t done_ = 0, busy_ = 0;
  std::uint64_t out_ = 0;  ///< in which the last row would have left if nothing had stood still
  std::size_t units_ = 0;  ///< serial units
  bool is_first_ = true;
  FactorTimes made_{};       ///< by unit: the cycle with which it had made what the row needs
  std::uint64_t taken_ = 0;  ///< the cycle after that in which the row has taken it
  std::uint64_t held_ = 0;   ///< cycles in which the stages stood still
  std::array<Hold, kKept> holds_;
  std::size_t count_ = 0;
};

}  // namespace systole::hw
