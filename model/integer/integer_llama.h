#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/function/silu.h"
#include "hw/machine/machine.h"
#include "hw/number/dyadic.h"
#include "model/integer/integer_vit.h"
#include "model/integer/row_scales.h"
#include "model/metadata/llama_shape.h"

namespace systole::model {

/// RMSNorm to s8, or to s16 where rows have their own scales and of heads: (norm * multiplier) >>
/// shift, see hw/function/rms_norm.h.
struct IntegerRmsNorm {
  std::vector<std::int32_t> multiplier;  ///< [width]
  std::uint32_t shift = 0;
  double scale = 0.0;  ///< of the output
  unsigned fraction_bits = hw::kLayerNormFractionBits;
};

/// A rotation divides by so much besides the steps of its table: s16 to s8.
inline constexpr unsigned kLlamaRopeShift = 8;
/// Width of the input of `down` before it becomes codes with a scale of each row.
inline constexpr unsigned kLlamaProductBits = 24;
/// Of a normalised value, where a few channels of the stream are a thousand times as large as the
/// others.
inline constexpr unsigned kLlamaNormFractionBits = 22;
/// Of the argument of SiLU's exponential.
inline constexpr unsigned kLlamaSiluFractionBits = 10;

/// One MLP of a block.
struct IntegerExpert {
  IntegerLinear gate, up, down;
};

struct IntegerLlamaBlock {
  IntegerRmsNorm norm1, norm2;
  /// Head after head. Queries and keys are s16 before the rotation, s8 after it; values s8.
  IntegerLinear query, key, value;
  IntegerRmsNorm query_norm, key_norm;  ///< of each head, s16, if the shape has head_norms
  hw::Dyadic score{};    ///< score minus row maximum -> hw::kScoreFractionBits fraction bits
  hw::Dyadic context{};  ///< attention output -> s8
  IntegerLinear proj;
  IntegerLinear gate, up;      ///< to s16
  hw::SiluConstants silu{};    ///< of `gate`, to s16
  hw::GeluConstants gelu{};    ///< in its place, if the shape has it
  unsigned product_shift = 0;  ///< (silu * up) >> product_shift is the input of `down`
  IntegerLinear down;
  /// Where the shape has experts, in place of `gate`, `up` and `down`. What a router gives is s16
  /// in steps of `router_scale`.
  IntegerLinear router;
  double router_scale = 0.0;
  std::vector<IntegerExpert> experts = {};
};

/// Of an expert's share of a token, u8: the host's result in steps of 2^-8.
inline constexpr unsigned kShareFractionBits = 8;
/// Bits that a product of a gate drops before its expert's share: of those that it drops in all, as
/// many as a share has are left to the share's product.
constexpr unsigned before_share(unsigned product_shift) {
  return product_shift - (product_shift < kShareFractionBits ? product_shift : kShareFractionBits);
}

/// A Llama whose every constant is an integer. The residual stream has one scale throughout.
/// Linear layers without a bias have an empty one.
struct IntegerLlama {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  LlamaShape shape;
  hw::Machine::Datapath datapath;
  /// Inputs of all products but those of the attention and perhaps `proj` are s8 codes with a scale
  /// of each row (hw/function/row_scale.h), and factors count after row_scale_shift(); else they
  /// have one scale throughout. Biases are added after the shift, too.
  bool row_scales = false;
  /// So is the input of `proj`: contexts are s16 (`row_scales` too).
  bool context_scales = false;
  hw::Dyadic exp_to_code{};  ///< as in IntegerEncoder
  std::vector<IntegerLlamaBlock> blocks;
  IntegerRmsNorm norm;
  IntegerLinear output;                 ///< [vocabulary, width]; the table of words if it is tied
  double embedding_scale = 0.0;         ///< of the residual stream
  double logit_scale = 0.0;             ///< of a step of the logits; 0: unknown
  hw::SharedVector<std::int8_t> word;   ///< [vocabulary, width]; empty: that of `output`
  std::vector<hw::Dyadic> word_factor;  ///< [vocabulary]: a code of a row to the residual stream

  [[nodiscard]] const hw::SharedVector<std::int8_t>& words() const {
    return word.empty() ? output.weight : word;
  }
};

/// What the host writes for tokens: their rows of the table of words in steps of the residual
/// stream, [tokens, width]. Throws std::invalid_argument for an id outside the vocabulary.
[[nodiscard]] std::vector<std::int32_t> embed_tokens(const IntegerLlama& llama,
                                                     const std::vector<std::int32_t>& ids);

/// Rounds the weights of all blocks to groups of `format` (hw/number/weight_groups.h): those that
/// have eight bits are replaced by what the codes of the groups expand to. The output matrix, which
/// is the table of words, and routers keep int8. Throws InputError that begins with `place` for a
/// layer whose inputs are no whole groups.
void group_weights(IntegerLlama& llama, hw::WeightFormat format, const std::string& place);
/// Throws InputError that begins with `place` and `name` if inputs are no whole groups.
void require_groups(const std::string& place, const std::string& name, std::uint32_t inputs);

/// Throws InputError, beginning with `place` and naming layer and quantity, for constants that the
/// datapath cannot hold or that could overflow an accumulator.
void check_integer_llama(const IntegerLlama& llama, const std::string& place);

}  // namespace systole::model
