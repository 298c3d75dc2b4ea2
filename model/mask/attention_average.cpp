#include "model/mask/attention_average.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"

namespace systole::model {

AttentionAverage::AttentionAverage(const AttentionShape& shape)
    : shape_(shape), sums_(shape.cells()), seen_(shape.layers * shape.heads) {
  if (shape.queries != shape.keys) throw std::invalid_argument("attention maps are not square");
}

void AttentionAverage::observe_attention(std::size_t layer, std::size_t head,
                                         const double* attention, std::size_t tokens) {
  if (layer >= shape_.layers || head >= shape_.heads || tokens != shape_.keys) {
    throw std::invalid_argument("attention of another shape");
  }
  const std::size_t index = layer * shape_.heads + head;
  double* const sums = sums_.data() + index * shape_.head_cells();
  for (std::size_t cell = 0; cell < shape_.head_cells(); ++cell) {
    if (!std::isfinite(attention[cell])) {
      throw hw::InputError(fmt::format(
          "layer {}, head {}: attention is not finite; the weights are unusable", layer, head));
    }
    sums[cell] += attention[cell];
  }
  ++seen_[index];
}

std::vector<double> AttentionAverage::averages() const {
  const std::size_t inputs = seen_.front();
  const bool equal =
      std::all_of(seen_.begin(), seen_.end(), [&](std::size_t seen) { return seen == inputs; });
  if (inputs == 0 || !equal) throw std::logic_error("attention: heads were not seen equally often");
  std::vector<double> averages(sums_);
  for (double& average : averages) average /= static_cast<double>(inputs);
  return averages;
}

}  // namespace systole::model
