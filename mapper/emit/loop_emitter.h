#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "mapper/emit/group_writer.h"
#include "mapper/place/sharing.h"
#include "mapper/tile/tiling.h"

namespace systole::mapper {

/// Which half of the accumulator the next tile takes.
struct AccumulatorTurn {
  bool second = false;

  /// First element of the tile: of a half's share or, without double buffers, 0.
  std::uint32_t take(const Tiling& tiling, const Share& share, const hw::Machine& machine);
};

/// Loops as Gemmini's unroller runs them, in its order: k outside, then n, m inside. Its commands
/// move 16 rows and multiply 16 x 16 x 16; here one command is a step of the k loop. What
/// decides about time is kept: rows of A arrive in chunks of a request, rows of B as the steps need
/// them, weights reside in memory row by row, nothing is used again by the next loop, two loops
/// have half of the scratchpad each, and C tiles half of the accumulator. A result leaves, 16 rows
/// at a time, while the last step still computes the next. A bias is no stage of the chain, where
/// that gives the same values: it is loaded into the accumulator, once for each row, and the
/// products are added to it.
///
/// On a machine with an unroller (hw/loop/unroller.h) a loop is one command.
class LoopEmitter {
 public:
  /// `to` must outlive it.
  explicit LoopEmitter(const EmitTarget& to) : to_(to) {}
  /// Goes on after the loops of `other`.
  void follow(const LoopEmitter& other) { second_scratchpad_ = other.second_scratchpad_; }

  void emit(const Group& group, const Tiling& tiling, const Share& share, AccumulatorTurn& turn);

 private:
  /// One loop: C tile (+)= A[.., k0 .. k0 + ks] B[k0 .. k0 + ks, ..].
  struct Loop {
    Tile tile;
    std::uint32_t k0, ks;
    hw::LocalTile c;
    std::uint32_t begin, end;  ///< its half of the scratchpad: A from the begin, B up to the end
    std::uint32_t chunk;       ///< columns of A that a load brings
  };

  /// The group without a bias at the begin of its chain, which then resides in memory at bias_; as
  /// it is if the accumulator cannot take the bias without changing a value.
  [[nodiscard]] Group without_bias(const Group& group);
  /// Whether the machine's unroller can run the group's loops.
  [[nodiscard]] bool unrolls(const Group& group) const;
  void emit_unrolled(const Tiling& tiling, const GroupWriter& writer);
  void emit_loop(const Loop& loop, GroupWriter& writer);
  void emit_last_step(const Loop& loop, hw::cmd::Matmul matmul,
                      const std::optional<hw::cmd::Load>& parameters, bool late,
                      GroupWriter& writer) const;
  void load_bias(const Loop& loop, const GroupWriter& writer) const;
  void load_chunk_of_rows(const Loop& loop, const model::View& view, std::uint32_t row,
                          std::uint32_t rows, std::uint32_t k, std::uint32_t to,
                          const GroupWriter& writer);
  /// Of a view; constants are added as a whole, row by row.
  [[nodiscard]] hw::DramTile row_major(const model::View& view, std::uint32_t row,
                                       std::uint32_t col);
  /// Of constants that the host's library reads.
  [[nodiscard]] std::uint64_t operand_alignment() const;

  const EmitTarget& to_;
  std::map<model::TensorId, std::uint64_t> whole_weights_;
  std::optional<std::uint64_t> bias_;  ///< address of its row of int32, or of a row for each result
  bool second_scratchpad_ = false;     ///< half of the scratchpad that the next loop takes
};

}  // namespace systole::mapper
