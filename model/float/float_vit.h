#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/checkpoint/vit_checkpoint.h"
#include "model/data/dataset.h"
#include "model/float/activation_sites.h"
#include "model/float/float_blocks.h"

namespace systole::model {

/// The real-valued network, in double precision. Sums run in a fixed order.
class FloatVit {
 public:
  explicit FloatVit(VitCheckpoint checkpoint);

  [[nodiscard]] const VitShape& shape() const { return checkpoint_.shape; }

  /// Logits of one image given as patches [patches, samples] of values -128..127; throws
  /// std::invalid_argument if their number is another.
  [[nodiscard]] std::vector<double> logits(const std::vector<std::int32_t>& patches,
                                           ActivationObserver* observer = nullptr) const;

 private:
  [[nodiscard]] FloatRows embed(const std::vector<std::int32_t>& patches) const;

  VitCheckpoint checkpoint_;
  PackedLinear patch_embed_;
  FloatBlocks blocks_;
  PackedLinear head_;
};

/// The patches of picture `index`, as the network of that shape reads them; throws InputError if
/// the pictures have another size.
[[nodiscard]] std::vector<std::int32_t> patches_of(const Dataset& data, std::size_t index,
                                                   const VitShape& shape);

/// Index of the largest value, the first of several.
template <typename T>
[[nodiscard]] std::size_t argmax(const std::vector<T>& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

/// Fraction of the pictures whose largest logit is their label; throws InputError if there are no
/// labels.
[[nodiscard]] double float_accuracy(const FloatVit& vit, const Dataset& data);

}  // namespace systole::model
