#pragma once

#include <cstdint>

#include "model/checkpoint/vit_checkpoint.h"
#include "model/integer/integer_vit.h"

/// The auto-encoder across heads (ViTCoD, HPCA 2023) as what it is to a token: a linear layer.
namespace systole::model {

/// The layer that applies `coefficients` [out heads, in heads] to every feature of rows that hold
/// heads of `head_width` features one after the other: the Kronecker product with the identity,
/// weight[a d + f, h d + f] = coefficients[a, h], all others 0; bias and factor per head repeated.
[[nodiscard]] FloatLinear across_heads(const FloatLinear& coefficients, std::uint32_t head_width);
[[nodiscard]] IntegerLinear across_heads(const IntegerLinear& coefficients,
                                         std::uint32_t head_width);

/// The same function with each encoder folded into the projection before it, as linear after
/// linear is linear: `qkv` gives the latent heads, the encoders have 0 outputs. Throws InputError
/// for a network without auto-encoder.
[[nodiscard]] VitCheckpoint fold_encoders(const VitCheckpoint& checkpoint);

}  // namespace systole::model
