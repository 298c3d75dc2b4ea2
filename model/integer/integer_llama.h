#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/function/silu.h"
#include "hw/machine/machine.h"
#include "hw/number/dyadic.h"
#include "model/integer/integer_vit.h"
#include "model/metadata/llama_shape.h"

namespace systole::model {

/// RMSNorm to s8: (norm * multiplier) >> shift, see hw/function/rms_norm.h.
struct IntegerRmsNorm {
  std::vector<std::int32_t> multiplier;  ///< [width]
  std::uint32_t shift = 0;
  double scale = 0.0;  ///< of the output
};

/// Queries, keys, gates and what they gate have this width until they are rotated or multiplied.
inline constexpr unsigned kLlamaWideBits = 16;
/// A rotation divides by so much besides the steps of its table: s16 to s8.
inline constexpr unsigned kLlamaRopeShift = 8;

struct IntegerLlamaBlock {
  IntegerRmsNorm norm1, norm2;
  /// Head after head. Queries and keys are s16 before the rotation, s8 after it; values s8.
  IntegerLinear query, key, value;
  hw::Dyadic score{};    ///< score minus row maximum -> hw::kScoreFractionBits fraction bits
  hw::Dyadic context{};  ///< attention output -> s8
  IntegerLinear proj;
  IntegerLinear gate, up;      ///< to s16
  hw::SiluConstants silu{};    ///< of `gate`, to s16
  unsigned product_shift = 0;  ///< (silu * up) >> product_shift is the s8 input of `down`
  IntegerLinear down;
};

/// A Llama whose every constant is an integer. The residual stream has one scale throughout.
/// Linear layers without a bias have an empty one.
struct IntegerLlama {
  std::string name;
  LlamaShape shape;
  hw::Machine::Datapath datapath;
  hw::Dyadic exp_to_code{};  ///< as in IntegerEncoder
  std::vector<IntegerLlamaBlock> blocks;
  IntegerRmsNorm norm;
  IntegerLinear output;  ///< [vocabulary, width]; the table of words if it is tied
  double embedding_scale = 0.0;
};

}  // namespace systole::model
