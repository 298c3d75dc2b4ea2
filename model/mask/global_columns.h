#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"

/// Which keys of a pruned head become global columns: computed as a dense block for all queries, so
/// that what remains has short columns.
namespace systole::model {

/// Columns with more kept cells than this are global in published masks of `kThresholdQueries`
/// queries (ViTCoD, HPCA 2023).
inline constexpr std::size_t kPublishedThreshold = 50;
inline constexpr std::size_t kThresholdQueries = 197;

/// The published threshold at the same share of the queries, rounded to nearest.
std::size_t default_threshold(std::size_t queries);

/// `whole`, a head with no global column, split: `columns` become global, in this order, the others
/// stay in theirs. Throws std::invalid_argument if `whole` has global columns, and if a column does
/// not exist or comes twice.
hw::SparseHead with_global_columns(const hw::SparseHead& whole,
                                   const std::vector<std::uint16_t>& columns);

/// The split by a fixed threshold: global are the columns with more than `threshold` kept cells, in
/// ascending order.
hw::SparseHead split_by_threshold(const hw::SparseHead& whole, std::size_t threshold);

/// The split by `hw::best_global_columns`, which takes the fewest SDDMM cycles on `array` with
/// `dim` features of Q and K. Throws std::invalid_argument where that function does.
hw::SparseHead split_by_cycles(const hw::SparseHead& whole, std::size_t dim,
                               const hw::Machine::Attention& array);

/// Bytes of the sparser part in compressed sparse columns: a row index (1 byte up to 256 queries, 2
/// above) per kept cell; a pointer per column and one more, of 2 bytes, or of 4 where a head has
/// more cells than 2 bytes count.
std::size_t csc_bytes(const hw::SparseHead& head);

}  // namespace systole::model
