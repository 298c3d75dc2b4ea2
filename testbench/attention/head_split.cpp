#include "testbench/attention/head_split.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"
#include "model/mask/global_columns.h"

namespace systole::testbench {
namespace {

hw::SparseHead split_head(hw::SparseHead whole, const HeadSplit& split, std::size_t dim,
                          const hw::Machine::Attention& attention) {
  if (!split.reorder) return whole;
  if (split.threshold) return model::split_by_threshold(whole, *split.threshold);
  return model::split_by_cycles(whole, dim, attention);
}

}  // namespace

std::string HeadSplit::text() const {
  if (!reorder) return "no reordering";
  if (threshold) return fmt::format("more than {} kept cells", *threshold);
  return "chosen by cycles";
}

SplitLayers split_mask(const model::AttentionMask& mask, const HeadSplit& split, std::size_t dim,
                       const hw::Machine::Attention& attention) {
  SplitLayers layers(mask.shape().layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (std::size_t head = 0; head < mask.shape().heads; ++head) {
      layers[layer].push_back(split_head(mask.head(layer, head), split, dim, attention));
    }
  }
  return layers;
}

void require_full_rows(const model::AttentionMask& mask, const std::string& file) {
  if (const auto row = mask.first_empty_row()) {
    throw hw::InputError(fmt::format("{}: {}: keeps no key, expected one at least",
                                     hw::printable(file), row_text(mask.shape(), *row)));
  }
}

}  // namespace systole::testbench
