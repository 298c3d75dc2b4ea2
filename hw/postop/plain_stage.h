#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "hw/postop/postop.h"

/// The definition of every stage: scalar, one row at a time, without regard to speed. RTL is
/// written from plain_stage.cpp; `--check` and the tests compare everything faster with it.
///
/// Values between stages are s32. A stage computes its exact integer result, rounds it where the
/// stage has a shift, clamps it to its own limits lo to hi, and saturates it to s32. The last
/// result saturates to Chain::out. The functions of one value are those of hw/function.
namespace systole::hw {

/// A row of a tile and the operands of its chain.
struct PlainRow {
  std::vector<std::int32_t> x;                     ///< [cols], replaced by every stage
  std::vector<std::int32_t> parameters;            ///< [parameter_words(chain)][cols]
  std::vector<std::vector<std::int32_t>> tensors;  ///< [tensor_operands(chain)][cols]
  /// [statistics_words(chain)]: read, or replaced by what a stage leaves.
  std::vector<std::uint32_t> statistics;
  /// The side output adds to `statistics`, which earlier tiles of the row have left.
  bool accumulate_statistics = false;
  /// Columns, from the first on, that take part in a softmax or pass a causal mask.
  std::size_t valid_cols = std::numeric_limits<std::size_t>::max();
};

/// Applies all stages to the row. The chain must have passed check_chain(); the operands may hold
/// any values. A transposition leaves the row as it is: it says where the tile stores the row.
/// Throws std::invalid_argument if an operand does not fill the columns, if a rotation finds an odd
/// number of them, or a row-wise stage more than kLayerNormMaxLength.
void apply_plain_row(const Chain& chain, PlainRow& row);

}  // namespace systole::hw
