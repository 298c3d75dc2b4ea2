#pragma once

#include <cstdint>
#include <vector>

#include "model/checkpoint/text_checkpoint.h"
#include "model/float/activation_sites.h"
#include "model/float/float_blocks.h"
#include "model/text/token_ids.h"

namespace systole::model {

/// The real-valued text network, in double precision.
class FloatText {
 public:
  explicit FloatText(const TextCheckpoint& checkpoint);

  [[nodiscard]] const TextShape& shape() const { return checkpoint_.shape; }

  /// The last hidden states [tokens, width]: after the last LayerNorm. `types` are
  /// those of the tokens; none: all 0. Throws std::invalid_argument for ids outside the vocabulary,
  /// types that the network does not have, no tokens, or more than there are positions. `memory`:
  /// of a decoder, what its encoder gives (FloatBlocks::run()).
  [[nodiscard]] FloatRows hidden(const std::vector<std::int32_t>& ids,
                                 ActivationObserver* observer = nullptr,
                                 const std::vector<std::int32_t>& types = {},
                                 const FloatRows* memory = nullptr) const;
  /// The scores of the classes [classes], of a network with a head. Throws as hidden() does.
  [[nodiscard]] std::vector<double> logits(const std::vector<std::int32_t>& ids,
                                           ActivationObserver* observer = nullptr,
                                           const std::vector<std::int32_t>& types = {}) const;

 private:
  TextCheckpoint checkpoint_;
  FloatBlocks blocks_;
};

/// Fraction of the texts with labels that the network classifies as labelled. Throws InputError if
/// there are no labels.
[[nodiscard]] double float_accuracy(const FloatText& text, const TokenIds& texts);

}  // namespace systole::model
