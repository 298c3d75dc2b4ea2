#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// Which keys of a head become global columns.
struct HeadSplit {
  bool reorder = true;                   ///< false: none
  std::optional<std::size_t> threshold;  ///< those with more kept cells; none: chosen by cycles

  /// "no reordering", "more than 50 kept cells", "chosen by cycles".
  [[nodiscard]] std::string text() const;
};

/// Heads by layer.
using SplitLayers = std::vector<std::vector<hw::SparseHead>>;

/// `dim`: features of Q and K in a head.
[[nodiscard]] SplitLayers split_mask(const model::AttentionMask& mask, const HeadSplit& split,
                                     std::size_t dim, const hw::Machine::Attention& attention);

/// Throws InputError, which names `file`, for a row that keeps no key in a head that keeps others.
void require_full_rows(const model::AttentionMask& mask, const std::string& file);

}  // namespace systole::testbench
