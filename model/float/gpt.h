#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/number/half.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/metadata/gpt_shape.h"

/// GPT-2 or a Llama in FP16, with its output vocabulary: what machines for generating text compute.
namespace systole::model {

/// y = x W + bias.
struct HalfLinear {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::vector<hw::Half> weight;  ///< [inputs, outputs], as GPT-2's Conv1D has it
  std::vector<hw::Half> bias;    ///< [outputs], or empty: none
};

struct HalfNorm {
  std::vector<hw::Half> weight;  ///< [width]
  std::vector<hw::Half> bias;    ///< [width]; empty: an RMSNorm
};

/// Width to heads; head h has the columns from h * head_width.
struct GptLayer {
  HalfNorm norm1;
  HalfLinear query, key, value, proj;
  HalfNorm norm2;
  HalfLinear gate;  ///< of a Llama: width to hidden, then SiLU, then times fc1
  HalfLinear fc1;   ///< width to hidden; of GPT-2, then tanh GELU
  HalfLinear fc2;   ///< hidden to width
};

struct Gpt {
  std::string name;                        ///< path of the checkpoint, or of the shape
  GptShape shape;                          ///< pre-norm and causal; `positions` is the context
  double norm_epsilon = kGpt2NormEpsilon;  ///< of an RMSNorm added to the mean of squares
  std::vector<hw::Half> word;              ///< [vocabulary, width]
  std::vector<hw::Half> position;          ///< [positions, width]; of a Llama empty
  std::vector<GptLayer> layers;
  HalfNorm norm;                 ///< after the last layer
  std::vector<hw::Half> untied;  ///< head [vocabulary, width]; empty: it is `word`

  /// [vocabulary, width]: a token's logit is its row times the last norm's output, without bias.
  [[nodiscard]] const std::vector<hw::Half>& head() const { return untied.empty() ? word : untied; }
};

/// Loads a safetensors file with the names of Hugging Face's GPT2Model or GPT2LMHeadModel (see
/// load_text_checkpoint() for what gives the shape), of type F16, BF16 or F32. Values are rounded
/// to nearest even; a separate head, "lm_head.weight", counts only if it differs from the table
/// of words.
///
/// Or a network file of a GPT-2 or a Llama (model/network/network_document.h).
///
/// Throws InputError that names file, tensor and expected shape if one is missing or has another
/// shape, holds a value that is not finite or beyond 65504, or is part of no such network.
[[nodiscard]] Gpt load_gpt(const std::string& path);

/// Throws InputError, beginning with `place`, for a Llama that a ring has no instructions for: with
/// experts, norms of heads, or GELU.
void require_ring_llama(const LlamaShape& shape, const std::string& place);

/// The same of a Llama in float32, rounded. Throws InputError for a value beyond 65504, and as
/// require_ring_llama() does.
[[nodiscard]] Gpt make_gpt(const LlamaCheckpoint& llama);

/// The sizes of gpt2, gpt2-medium, gpt2-large, gpt2-xl, of gpt2-xl-dfx (the 24 heads of 64 that
/// DFX runs instead of 25, so that four cores share them evenly; Hong et al., MICRO 2022), and of
/// the embedded kjv. An unknown name throws InputError that lists these.
[[nodiscard]] TextShape gpt_shape(std::string_view name);

/// A network of that shape with random weights, for cycles and for tests of shapes without a
/// checkpoint. Same arguments, same bits. Weights are uniform, of the deviation that GPT-2's
/// training starts with; norms have weights of about 1.
[[nodiscard]] Gpt seeded_gpt(std::string name, const GptShape& shape, std::uint64_t seed);

}  // namespace systole::model
