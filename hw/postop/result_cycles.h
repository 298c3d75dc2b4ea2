#pragma once

#include <cstdint>
#include <optional>

#include "hw/postop/postop.h"
#include "hw/postop/store_set_up.h"

namespace systole::hw {

/// What a tile takes of the store unit where nothing is late: its chain with the accumulator before
/// it and the pieces behind it, in which results leave. ResultFlow says it vector by vector.
struct ResultCycles : ChainCycles {
  std::uint64_t vectors = 0;  ///< of a row
  std::uint64_t pieces = 0;   ///< cycles of a row for which the stages stand still: piece_cycles()
  /// From the cycle with which the operands of the first row are there to the one after that in
  /// which its last piece leaves.
  std::uint64_t after_operands = 0;
  /// From the cycle after that in which the last sums are read to the one after that in which the
  /// last piece leaves, unless they are all read before the first ones wait in the stages.
  std::uint64_t drain = 0;
  /// Vectors in the stages before one that makes them wait for its row statistics, when these are
  /// full.
  std::uint64_t waiting = 0;
  /// From the cycle after that in which the last piece leaves to the one with which the row
  /// statistics have the last side output, and the next command may start.
  std::uint64_t side = 0;
};

/// The first stage that makes vectors wait for its row statistics, row-wise or with serial units;
/// null: there is none.
[[nodiscard]] const Stage* waiting_stage(const Chain& chain);

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

}  // namespace systole::hw
