#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/shared_vector.h"
#include "hw/function/gelu.h"
#include "hw/machine/machine.h"
#include "hw/number/dyadic.h"
#include "hw/number/int4.h"
#include "hw/number/softmax_mode.h"
#include "hw/number/weight_groups.h"
#include "model/metadata/vit_shape.h"

/// A network whose every constant is an integer: what the datapath needs and nothing else, except
/// for the real values of the scales, which are for reports.
namespace systole::model {

/// s8 inputs times s8 weights plus bias, requantised: y = clamp((W x + bias) * factor). The sum
/// with the bias fits int32 for every input.
struct IntegerLinear {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  /// [outputs, inputs]; empty in a network that is a mere shape. Of one in a file those in the
  /// file.
  hw::SharedVector<std::int8_t> weight;
  std::vector<std::int32_t> bias;  ///< [outputs]
  std::vector<hw::Dyadic> factor;  ///< [outputs]
  /// Another than int8: weights in groups, of which `weight` is the expanded form; else, and in a
  /// mere shape, `groups` is empty.
  hw::WeightFormat format = hw::WeightFormat::kInt8;
  std::vector<hw::WeightGroup> groups = {};  ///< [outputs, inputs / hw::kGroupWeights]
  /// Weights of -8 to 7, which an array with a split multiplier multiplies as int4.
  bool int4 = false;

  [[nodiscard]] bool grouped() const { return format != hw::WeightFormat::kInt8; }
  /// Whether they are.
  [[nodiscard]] bool fits_int4() const {
    return !weight.empty() && std::all_of(weight.begin(), weight.end(), hw::is_int4);
  }
};

/// LayerNorm to s8, or to s16 where rows have their own scales: clamp((norm * multiplier + addend)
/// >> shift), see hw/function/layernorm.h.
struct IntegerLayerNorm {
  std::vector<std::int32_t> multiplier;  ///< [width]
  std::vector<std::int32_t> addend;      ///< [width]
  std::uint32_t shift = 0;
  double scale = 0.0;  ///< of the output
};

/// The auto-encoder on Q or K (FloatLink): its coefficients, which every feature of a head shares.
/// What the datapath computes is across_heads() of them (model/integer/head_mix.h).
struct IntegerHeadMix {
  IntegerLinear encoder;    ///< [latent heads, heads]; 0 outputs if folded into `qkv`
  IntegerLinear decoder;    ///< [heads, latent heads]
  double latent_scale = 0;  ///< of the encoder's output
  double scale = 0;         ///< of the decoder's output
};

/// Attention of a decoder to what an encoder gives (FloatCross).
struct IntegerCross {
  /// Real value of one step: of query, key and value, of the input of `proj`, and of the residual
  /// stream after it.
  struct Scales {
    double query = 0, key = 0, value = 0, context = 0, residual = 0;
  };
  IntegerLayerNorm norm;
  IntegerLinear query, key_value, proj;
  hw::Dyadic score{}, context{};  ///< as in IntegerBlock
  Scales scales;
};

struct IntegerBlock {
  /// Real value of one step.
  struct Scales {
    double query = 0, key = 0, value = 0;  ///< of the outputs of `qkv`
    double context = 0;                    ///< attention output, input of `proj`
    double attention_residual = 0;         ///< residual stream after the attention
    double gelu_in = 0, gelu_out = 0;
    double mlp_residual = 0;  ///< residual stream after the MLP
  };

  IntegerLayerNorm norm1, norm2;
  /// Query, key and value, each head after head; IntegerEncoder::qkv_outputs() outputs.
  IntegerLinear qkv;
  IntegerHeadMix query_link, key_link;  ///< of a network with auto-encoder
  std::vector<std::uint8_t> keep;  ///< attention mask (model/checkpoint/keep_mask.h); empty: none
  hw::Dyadic score{};    ///< score minus row maximum -> hw::kScoreFractionBits fraction bits
  hw::Dyadic context{};  ///< attention output -> s8
  IntegerLinear proj;
  hw::Dyadic attention_identity{};  ///< of the residual in the addition; multiplier 0: unscaled
  IntegerLinear fc1;
  hw::GeluConstants gelu{};
  IntegerLinear fc2;
  hw::Dyadic mlp_identity{};
  Scales scales;
  std::optional<IntegerCross> cross;  ///< of pre-norm blocks alone
};

struct IntegerEncoder {
  EncoderShape shape;
  hw::Machine::Datapath datapath;
  hw::Dyadic
      exp_to_code{};  ///< deferred softmax: exponential -> code of the row maximum 2^bits - 1
  bool folded_encoders = false;  ///< `qkv` gives the latent heads of query and key
  /// Inputs of all products but those of the attention and `proj` are s8 codes with a scale of each
  /// row (model/integer/row_scales.h). LayerNorms give s16, and GELUs read and give s16, in steps
  /// of their scales; factors of the layers count after row_scale_shift(), biases are added there.
  bool row_scales = false;
  std::vector<IntegerBlock> blocks;

  /// Columns of query, and of key, among the outputs of `qkv`.
  [[nodiscard]] std::uint32_t query_width() const {
    return folded_encoders ? shape.latent_heads * shape.head_width() : shape.width;
  }
  [[nodiscard]] std::uint32_t qkv_outputs() const { return 2 * query_width() + shape.width; }
};

struct IntegerVit {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  VitShape shape;
  IntegerEncoder encoder;
  IntegerLinear patch_embed;           ///< picture (model/data/image.h) -> residual stream
  std::vector<std::int32_t> position;  ///< [tokens, width], residual scale; row 0: class token too
  double embedding_scale = 0.0;        ///< of the residual stream after the embedding
  /// Pre-norm: after the last block, of the class token. Post-norm: after the embedding.
  IntegerLayerNorm norm;
  IntegerLinear head;
  double logit_scale = 0.0;
};

}  // namespace systole::model
