#pragma once

#include <cstddef>
#include <cstdint>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// Cycles of masked attention on a score-stationary array that finds its mask while it runs: what
/// Sanger (MICRO 2021) does, with the MACs, the clock and the memory of a machine.
///
/// Its released RTL has rows of kPesPerRow processing elements, each of which holds one score of
/// kKeysPerTile keys; here there are as many rows as the machine's MACs make. A head of n queries,
/// m keys and d features takes
///
/// | step       | cycles                                                                         |
/// |------------|--------------------------------------------------------------------------------|
/// | prediction | n m d / MACs: every score once, from 4-bit Q and K, a product per MAC          |
/// | scores     | passes x d: a row takes up to kPesPerRow kept cells of a query and a key tile, |
/// |            | a query with more takes several rows; a pass fills all rows with one key tile  |
/// | context    | passes x d                                                                     |
///
/// The kept cells are those of the mask: the prediction is taken to be perfect. Left out, all in
/// favour of this array: comparing and packing the predicted scores, softmax, skew of the systolic
/// array, bank conflicts, latency of the memory. Q, K and V are read and outputs written once, at
/// the peak rate of the memory, hidden behind compute where compute is longer.
struct ScoreStationaryCycles {
  std::uint64_t prediction = 0, scores = 0, context = 0;
  std::uint64_t memory = 0;      ///< of all bytes
  std::uint64_t overlapped = 0;  ///< head by head the longer of prediction and the other steps

  /// The prediction on the same MACs, in front of each head.
  [[nodiscard]] std::uint64_t shared_macs() const;
  /// A second array of as many 4-bit MACs predicts the next head meanwhile.
  [[nodiscard]] std::uint64_t own_predictor() const;
};

inline constexpr std::size_t kPesPerRow = 16;
inline constexpr std::size_t kKeysPerTile = 64;

/// All layers and heads, one after the other. `dim`: features of Q, K and V in a head. Throws
/// InputError for a machine with fewer MACs than one row.
[[nodiscard]] ScoreStationaryCycles score_stationary_cycles(const model::AttentionMask& mask,
                                                            std::size_t dim,
                                                            const hw::Machine& machine);

/// Bytes that memory can move in a core cycle: the least of bus and DRAM.
[[nodiscard]] double peak_bytes_per_cycle(const hw::Machine& machine);

}  // namespace systole::testbench
