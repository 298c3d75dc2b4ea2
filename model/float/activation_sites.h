#pragma once

#include <cstddef>

namespace systole::model {

/// Where in the network an activation is seen.
enum class Site {
  kEmbedding,      ///< [tokens, width], residual stream
  kEmbeddingNorm,  ///< [tokens, width], post-norm only
  kNorm1,          ///< [tokens, width]
  kQkv,            ///< [tokens, 3 width], less with folded encoders
  kLatentQuery,    ///< [tokens, latent heads x head width], with auto-encoder: encoded, or folded
  kDecodedQuery,   ///< [tokens, width], with auto-encoder
  kLatentKey,
  kDecodedKey,
  kContext,  ///< [tokens, width], attention output before `proj`
  kAttentionResidual,
  kCrossNorm,      ///< [tokens, width], with attention to an encoder
  kCrossQuery,     ///< [tokens, width]
  kCrossKeyValue,  ///< [tokens of the encoder, 2 width]
  kCrossContext,   ///< [tokens, width]
  kCrossResidual,
  kNorm2,
  kGeluIn,   ///< [tokens, hidden]
  kGeluOut,  ///< [tokens, hidden]
  kMlpResidual,
  kFinalNorm,  ///< [1, width], pre-norm only; of a text [tokens, width]
  kPooled,     ///< [1, width], of a text: between the layers of its head
  kLogits,     ///< [1, classes]
};

/// Is shown the activations of a forward pass.
class ActivationObserver {
 public:
  virtual ~ActivationObserver() = default;
  /// `layer` is 0 for sites outside the blocks; `values` is rows x cols, row-major.
  virtual void observe(Site site, std::size_t layer, const double* values, std::size_t rows,
                       std::size_t cols) = 0;
  /// Attention of a head after the softmax: `attention` is tokens x tokens, row-major, a row for
  /// each query. Nothing unless it is wanted.
  virtual void observe_attention(std::size_t /*layer*/, std::size_t /*head*/,
                                 const double* /*attention*/, std::size_t /*tokens*/) {}
};

}  // namespace systole::model
