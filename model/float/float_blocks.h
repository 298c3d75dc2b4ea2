#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/checkpoint/float_layers.h"
#include "model/float/activation_sites.h"
#include "model/float/float_matrix.h"
#include "model/metadata/vit_shape.h"

namespace systole::model {

/// Row-major real numbers.
using FloatRows = std::vector<double>;

/// A layer ready to multiply.
struct PackedLinear {
  explicit PackedLinear(const FloatLinear& layer);
  /// Rows of outputs for rows of inputs.
  [[nodiscard]] FloatRows apply(const FloatRows& in) const;

  PackedMatrix<double> weight;
  std::vector<double> bias;
};

/// Every row normalised, times weight, plus bias.
[[nodiscard]] FloatRows layer_norm(const FloatNorm& norm, const FloatRows& in, double epsilon);

/// Shows rows of `cols` values, if there is an observer.
void show(ActivationObserver* observer, Site site, std::size_t layer, const FloatRows& values,
          std::size_t cols);

/// A stack of real-valued Transformer blocks, in double precision. Sums run in a fixed order.
class FloatBlocks {
 public:
  struct Options {
    double norm_epsilon = 0.0;  ///< added to every variance
    GeluForm gelu = GeluForm::kErf;
  };

  FloatBlocks(const EncoderShape& shape, std::vector<FloatBlock> blocks, const Options& options);

  /// The residual stream [tokens, width] (if post-norm, its LayerNorm) after the last block.
  /// `memory`: the states [tokens of another text, width] that blocks with FloatBlock::cross attend
  /// to.
  [[nodiscard]] FloatRows run(FloatRows stream, ActivationObserver* observer,
                              const FloatRows* memory = nullptr) const;

 private:
  struct Link {
    std::optional<PackedLinear> encoder;  ///< nothing: folded into the projections
    PackedLinear decoder;
  };
  struct Cross {
    PackedLinear query, key_value, proj;
  };
  struct Block {
    PackedLinear qkv, proj, fc1, fc2;
    std::optional<Link> query_link, key_link;
    std::optional<Cross> cross;
  };
  /// Some columns of a matrix whose rows are `stride` elements apart.
  struct Columns {
    const double* data;
    std::size_t stride;
  };

  /// Nothing if there is no auto-encoder.
  [[nodiscard]] std::optional<Link> pack(const FloatLink& link) const;
  /// Query or key through its auto-encoder; shows what is at the sites of code and result.
  [[nodiscard]] static FloatRows decode(const Link& link, FloatRows rows, std::size_t layer,
                                        ActivationObserver* observer, Site latent, Site decoded);
  /// Of `tokens` queries to `keys` keys.
  struct Attention {
    Columns query, key, value;
    std::size_t tokens, keys;
    bool is_own;  ///< of tokens to themselves: mask, causality and observers are of these alone
  };
  /// All heads; shows the attention of each.
  [[nodiscard]] FloatRows attend(std::size_t layer, const Attention& attention,
                                 ActivationObserver* observer) const;
  /// The stream with what a block takes from `memory`.
  void add_cross(std::size_t layer, FloatRows& stream, const FloatRows& memory,
                 ActivationObserver* observer) const;
  [[nodiscard]] FloatRows attention(std::size_t layer, const FloatRows& in,
                                    ActivationObserver* observer) const;
  [[nodiscard]] FloatRows run_block(std::size_t layer, FloatRows stream,
                                    ActivationObserver* observer, const FloatRows* memory) const;

  EncoderShape shape_;
  Options options_;
  std::vector<FloatBlock> layers_;  ///< without the weights that are in `blocks_`
  std::vector<Block> blocks_;
};

}  // namespace systole::model
