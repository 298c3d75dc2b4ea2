"""Quantiser of the small vision transformers: widths, scales and constants of the integer model.

The approximations of exp and erf are those of I-BERT (Kim et al., 2021, arXiv 2101.01321).
"""
import math

import numpy as np

from digits import INPUT_MAX

WEIGHT_BITS = 8
ACTIVATION_BITS = 8  # operands of matrix products
BIAS_BITS = 32
RESIDUAL_BITS = 16
LOGIT_GRID_BITS = 18  # range the logits are scaled to
MULTIPLIER_BITS = 16  # magnitude of a requantisation multiplier
RESIDUAL_HEADROOM = 1.25  # range of the residual stream / largest calibrated magnitude
NORM_FRACTION = 15  # fraction bits of a normalised value
NORM_MULTIPLIER_BITS = 15
SCORE_FRACTION = 8  # fraction bits of the scores that enter exp
SOFTMAX_BITS = 8  # unsigned, unnormalised
MEAN_FRACTION = 8  # fraction bits of the weighted mean of the values
# exp(p) ~ a (p + b)^2 + c on (-ln 2, 0]; erf(x) ~ sgn(x) (a (min(|x|, -b) + b)^2 + 1): the paper's.
EXP_A, EXP_B, EXP_C = 0.3585, 1.353, 0.344
ERF_A, ERF_B = -0.2888, -1.769


def largest(bits):
    """The largest integer of a symmetric signed range."""
    return 2 ** (bits - 1) - 1


def saturate(x, bits):
    return np.clip(x, -largest(bits), largest(bits))


def to_dyadic(ratio):
    """Returns (multiplier, shift): ratio ~ multiplier / 2^shift with MULTIPLIER_BITS bits."""
    fraction, exponent = np.frexp(np.abs(ratio))
    multiplier = np.rint(fraction * 2.0 ** MULTIPLIER_BITS).astype(np.int64)
    shift = MULTIPLIER_BITS - exponent.astype(np.int64)
    overflow = multiplier == 1 << MULTIPLIER_BITS
    multiplier, shift = np.where(overflow, multiplier >> 1, multiplier), shift - overflow
    if np.min(shift) < 1 or np.max(shift) > 61:
        raise ValueError(f"requantisation shift {np.min(shift)}..{np.max(shift)}, expected 1..61")
    return np.sign(ratio).astype(np.int64) * multiplier, shift


class Quantiser:
    """Derives every constant of the integer model from a FloatVit and its calibrated ranges.

    scales: real value of one step, by tensor name as FloatVit.forward shows them.
    constants, by name of the layer:
      linear layer   .weight s8 [out, in], .bias s32 [out], .multiplier and .shift [out]
      norm           .multiplier s16 [width], .bias s32 [width], .shift []
      requantisation .multiplier and .shift []: block's score, context; softmax.exp;
                     proj.identity and fc2.identity (post-LN: rescale the other term of the sum)
      gelu           .b, .c (negative), .multiplier (negative), .shift; .c also stands for one,
                     since the polynomial's last term is one
      softmax        .ln2, .b, .c
      position       s16 [tokens, width] at the residual's scale, row 0 includes the class token
    """

    def __init__(self, model, ranges):
        self.model = model
        self.constants = {}
        self.scales = self._choose_scales(ranges)
        self._embedding()
        self._softmax()
        source = "embedding_norm"
        for layer in range(model.layers):
            block = f"blocks.{layer}."
            norm1, norm2 = block + "norm1", block + "norm2"
            self._norm(norm1, norm1)
            self._norm(norm2, norm2)
            self._attention(block, source if model.post_norm else norm1)
            self._mlp(block, norm1 if model.post_norm else norm2)
            if model.post_norm:
                self._dyadic(block + "proj.identity", self._ratio(source, block + "proj"))
                self._dyadic(block + "fc2.identity", self._ratio(norm1, block + "fc2"))
                source = norm2
        final = "embedding_norm" if model.post_norm else "norm"
        self._norm(final, "norm")
        self._linear("head", "head", source if model.post_norm else final, "logits")

    def _choose_scales(self, ranges):
        """Pre-LN has one scale for the whole residual stream, post-LN one for every addition."""
        scales = {name: value / largest(ACTIVATION_BITS) for name, value in ranges.items()}
        residual = {name: value * RESIDUAL_HEADROOM / largest(RESIDUAL_BITS)
                    for name, value in ranges.items()
                    if name == "embedding" or name.endswith((".proj", ".fc2"))}
        if not self.model.post_norm:
            residual = dict.fromkeys(residual, max(residual.values()))
        # A power of two, the same for all classes.
        logits = 2.0 ** (math.ceil(math.log2(ranges["logits"])) - (LOGIT_GRID_BITS - 1))
        return {**scales, **residual, "input": 1 / INPUT_MAX, "logits": logits}

    def _ratio(self, source, target):
        return self.scales[source] / self.scales[target]

    def _dyadic(self, name, ratio):
        self.constants[name + ".multiplier"], self.constants[name + ".shift"] = to_dyadic(ratio)

    def _linear(self, name, stored, source, target, rows=slice(None)):
        """`rows` selects outputs of the layer `stored` of the checkpoint."""
        weight = self.model.tensors[stored + ".weight"][rows]
        weight = weight.reshape(len(weight), -1)
        weight_scale = np.maximum(np.abs(weight).max(1), 1e-9) / largest(WEIGHT_BITS)
        bias = self.model.tensors[stored + ".bias"][rows] / (weight_scale * self.scales[source])
        self.constants[name + ".weight"] = np.rint(weight / weight_scale[:, None]).astype(np.int64)
        self.constants[name + ".bias"] = saturate(np.rint(bias), BIAS_BITS).astype(np.int64)
        self._dyadic(name, weight_scale * self.scales[source] / self.scales[target])

    def _norm(self, name, stored):
        """Folds sqrt(width), gamma and the output scale into one multiplier per channel."""
        scale = self.scales[name]
        gamma, beta = (self.model.tensors[stored + part] for part in (".weight", ".bias"))
        multiplier = gamma * math.sqrt(len(gamma)) * 2.0 ** -NORM_FRACTION / scale
        exponent = math.floor(math.log2(np.abs(multiplier).max()))
        shift = NORM_MULTIPLIER_BITS - 1 - exponent
        self.constants[name + ".multiplier"] = np.rint(multiplier * 2.0 ** shift).astype(np.int64)
        self.constants[name + ".bias"] = np.rint(beta / scale * 2.0 ** shift).astype(np.int64)
        self.constants[name + ".shift"] = np.int64(shift)

    def _embedding(self):
        self._linear("patch_embed", "patch_embed.proj", "input", "embedding")
        position = self.model.tensors["pos_embed"][0].copy()
        position[0] += self.model.tensors["cls_token"][0, 0]
        self.constants["position"] = np.rint(position / self.scales["embedding"]).astype(np.int64)

    def _softmax(self):
        """The scores have a fixed scale, so these constants are the same for every model."""
        step = 2.0 ** -SCORE_FRACTION
        b, c = math.floor(EXP_B / step), math.floor(EXP_C / (EXP_A * step * step))
        self.constants["softmax.ln2"] = math.floor(math.log(2) / step)
        self.constants["softmax.b"], self.constants["softmax.c"] = b, c
        self._dyadic("softmax.exp", (2 ** SOFTMAX_BITS - 1) / (b * b + c))

    def _attention(self, block, source):
        width = self.model.width
        for index, name in enumerate(("query", "key", "value")):
            rows = slice(index * width, (index + 1) * width)
            self._linear(block + name, block + "attn.qkv", source, block + name, rows)
        head_width = width // self.model.heads
        query, key = block + "query", block + "key"
        if self.model.linked:
            query, key = self._link(block, "q", query), self._link(block, "k", key)
        score_scale = self.scales[query] * self.scales[key] * head_width ** -0.5
        self._dyadic(block + "score", score_scale * 2.0 ** SCORE_FRACTION)
        mean_to_context = self._ratio(block + "value", block + "context") * 2.0 ** -MEAN_FRACTION
        self._dyadic(block + "context", mean_to_context)
        self._linear(block + "proj", block + "attn.proj", block + "context", block + "proj")

    def _link(self, block, operand, source):
        """The auto-encoder after `source`; returns the name of what it gives."""
        encoder, decoder = ("encoder_" + operand, "decoder_" + operand)
        self._linear(block + encoder, block + "attn." + encoder, source, block + encoder)
        self._linear(block + decoder, block + "attn." + decoder, block + encoder, block + decoder)
        return block + decoder

    def _mlp(self, block, source):
        self._linear(block + "fc1", block + "mlp.fc1", source, block + "fc1")
        scale = self.scales[block + "fc1"]
        step = scale / math.sqrt(2)
        erf_scale = ERF_A * step * step
        self.constants[block + "gelu.b"] = math.floor(ERF_B / step)
        self.constants[block + "gelu.c"] = math.floor(1 / erf_scale)
        self._dyadic(block + "gelu", scale * erf_scale / 2 / self.scales[block + "gelu"])
        self._linear(block + "fc2", block + "mlp.fc2", block + "gelu", block + "fc2")


