#pragma once

#include <cstddef>
#include <vector>

#include "model/float/activation_sites.h"
#include "model/mask/attention_mask.h"

namespace systole::model {

/// The attention of every head after the softmax, averaged over the inputs of a real-valued
/// network: what fixed masks are made of. Sums are 64-bit floats, in the order of the inputs.
class AttentionAverage final : public ActivationObserver {
 public:
  /// Throws std::invalid_argument for a shape that is not square, which attention to other tokens
  /// than a network's own has.
  explicit AttentionAverage(const AttentionShape& shape);

  void observe(Site /*site*/, std::size_t /*layer*/, const double* /*values*/, std::size_t /*rows*/,
               std::size_t /*cols*/) override {}
  /// Throws std::invalid_argument for a head or a number of tokens that the shape does not have,
  /// InputError if attention is not finite.
  void observe_attention(std::size_t layer, std::size_t head, const double* attention,
                         std::size_t tokens) override;

  [[nodiscard]] const AttentionShape& shape() const { return shape_; }
  /// [layers, heads, tokens, tokens]; throws std::logic_error unless every head was seen equally
  /// often, once at least.
  [[nodiscard]] std::vector<double> averages() const;

 private:
  AttentionShape shape_;
  std::vector<double> sums_;
  std::vector<std::size_t> seen_;  ///< [layers * heads]
};

}  // namespace systole::model
