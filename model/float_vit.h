#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/dataset.h"
#include "model/float_matrix.h"
#include "model/vit_checkpoint.h"

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
  kNorm2,
  kGeluIn,   ///< [tokens, hidden]
  kGeluOut,  ///< [tokens, hidden]
  kMlpResidual,
  kFinalNorm,  ///< [1, width], pre-norm only
  kLogits,     ///< [1, classes]
};

/// Is shown the activations of a forward pass.
class ActivationObserver {
 public:
  virtual ~ActivationObserver() = default;
  /// `layer` is 0 for sites outside the blocks; `values` is rows x cols, row-major.
  virtual void observe(Site site, std::size_t layer, const double* values, std::size_t rows,
                       std::size_t cols) = 0;
};

/// The real-valued network, in double precision. Sums run in a fixed order.
class FloatVit {
 public:
  explicit FloatVit(const VitCheckpoint& checkpoint);

  [[nodiscard]] const VitShape& shape() const { return checkpoint_.shape; }

  /// Logits of one image given as patches [patches, pixels] of values 0..127; throws
  /// std::invalid_argument if their number is another.
  [[nodiscard]] std::vector<double> logits(const std::vector<std::int32_t>& patches,
                                           ActivationObserver* observer = nullptr) const;

 private:
  struct Linear {
    PackedMatrix weight;
    std::vector<double> bias;
  };
  struct Link {
    std::optional<Linear> encoder;  ///< nothing: folded into the projections
    Linear decoder;
  };
  struct Block {
    Linear qkv, proj, fc1, fc2;
    std::optional<Link> query_link, key_link;
  };
  using Rows = std::vector<double>;
  /// Some columns of a matrix whose rows are `stride` elements apart.
  struct Columns {
    const double* data;
    std::size_t stride;
  };

  static Linear pack(const FloatLinear& layer);
  static Rows apply(const Linear& layer, const Rows& in);
  [[nodiscard]] Rows embed(const std::vector<std::int32_t>& patches) const;
  /// Nothing if there is no auto-encoder.
  [[nodiscard]] std::optional<Link> pack(const FloatLink& link) const;
  /// Query or key through its auto-encoder; shows what is at the sites of code and result.
  [[nodiscard]] static Rows decode(const Link& link, Rows rows, std::size_t layer,
                                   ActivationObserver* observer, Site latent, Site decoded);
  /// All heads; `keep` as in FloatBlock.
  [[nodiscard]] Rows attend(Columns query, Columns key, Columns value,
                            const std::vector<std::uint8_t>& keep) const;
  [[nodiscard]] Rows attention(std::size_t layer, const Rows& in,
                               ActivationObserver* observer) const;
  [[nodiscard]] Rows run_block(std::size_t layer, Rows stream, ActivationObserver* observer) const;

  VitCheckpoint checkpoint_;
  Linear patch_embed_;
  std::vector<Block> blocks_;
  Linear head_;
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
