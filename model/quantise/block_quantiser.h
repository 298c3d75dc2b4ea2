#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/checkpoint/float_layers.h"
#include "model/integer/integer_vit.h"
#include "model/integer/row_scales.h"
#include "model/quantise/calibration.h"
#include "model/quantise/quantise_layers.h"
#include "model/quantise/quantiser_options.h"

namespace systole::model {

/// Throws InputError for options out of range.
void check_options(const QuantiserOptions& options);

/// Integer constants of Transformer blocks from the calibrated maxima of their activations.
class BlockQuantiser {
 public:
  /// All outlive this object. `path` is for messages, `memory_scale` that of the states which
  /// blocks with FloatBlock::cross attend to.
  BlockQuantiser(const std::string& path, const EncoderShape& shape,
                 const std::vector<FloatBlock>& blocks, const Calibration& calibration,
                 const QuantiserOptions& options, double memory_scale = 0.0)
      : memory_scale_(memory_scale),
        shape_(shape),
        blocks_(blocks),
        calibration_(calibration),
        options_(options),
        layers_(path, options.datapath.multiplier_bits, options.per_channel) {}

  [[nodiscard]] const LayerQuantiser& layers() const { return layers_; }

  /// Shape, datapath and softmax constant; the blocks are still missing.
  [[nodiscard]] IntegerEncoder empty_encoder() const;

  /// Scale of the 8-bit tensor at a site.
  [[nodiscard]] double operand_scale(Site site, std::size_t layer) const {
    return code_scale(calibration_.largest(site, layer));
  }
  /// Scale of what a LayerNorm or a GELU gives at a site: s8, or s16 where rows have scales.
  [[nodiscard]] double wide_scale(Site site, std::size_t layer) const {
    if (!options_.row_scales) return operand_scale(site, layer);
    return code_scale(calibration_.largest(site, layer), kWideBits, kWideRoom);
  }
  /// Scale of the input of a layer that reads `inputs` such values of `scale`.
  [[nodiscard]] double product_scale(double scale, std::uint32_t inputs) const {
    return options_.row_scales ? row_product_scale(scale, inputs, kWideBits) : scale;
  }
  /// Scale of the residual stream at one site, or everywhere if pre-norm.
  [[nodiscard]] double residual_scale(Site site, std::size_t layer) const;

  /// Scale of the residual stream after the embedding, that of the tables which are added there
  /// as well: each is a tensor of the stream's type on its own.
  [[nodiscard]] double embedding_scale(const std::vector<const std::vector<double>*>& tables) const;
  /// Values in steps of `scale`, clamped to the residual stream.
  [[nodiscard]] std::vector<std::int32_t> stream_codes(const std::vector<double>& values,
                                                       double scale) const;

  /// Appends all blocks, on a stream of `scale`; returns the scale of the last one's result.
  double append_blocks(IntegerEncoder& encoder, double scale) const;

 private:
  /// Scale of a GELU's input.
  [[nodiscard]] double gelu_scale(std::size_t layer) const;
  /// A layer of a block, with weights of the wanted bits.
  [[nodiscard]] IntegerLinear linear(const std::string& name, const FloatLinear& layer,
                                     double input_scale,
                                     const std::vector<OutputGroup>& groups) const;
  [[nodiscard]] IntegerHeadMix link(const std::string& prefix, const std::string& operand,
                                    const FloatLink& from, double in_scale, double latent_scale,
                                    double scale) const;
  /// The attention to an encoder of block `i`, on a stream of `in_scale`.
  [[nodiscard]] IntegerCross cross(std::size_t i, double in_scale) const;
  /// The factors of scores and context of an attention, by the scales of what they read and give.
  [[nodiscard]] hw::Dyadic score_factor(const std::string& name, double query, double key) const;
  [[nodiscard]] hw::Dyadic context_factor(const std::string& name, double value,
                                          double context) const;
  /// Block `i` on a stream of `in_scale`.
  [[nodiscard]] IntegerBlock block(std::size_t i, double in_scale) const;

  const double memory_scale_;
  const EncoderShape& shape_;
  const std::vector<FloatBlock>& blocks_;
  const Calibration& calibration_;
  const QuantiserOptions& options_;
  LayerQuantiser layers_;
};

}  // namespace systole::model
