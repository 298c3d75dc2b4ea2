"""Integer-only inference of the small vision transformers; the golden files come from here.

Independent of the simulator. The non-linear functions follow I-BERT (Kim et al., 2021, arXiv
2101.01321), except that softmax is normalised after the product with the values, as in online
softmax. All tensors hold integers in int64 containers; real value = scale * integer.
"""
import numpy as np

from float_reference import across_heads, merge_heads, split_heads, to_patches, unwatched
from quantiser import (ACTIVATION_BITS, MEAN_FRACTION, NORM_FRACTION, RESIDUAL_BITS, SOFTMAX_BITS,
                       Quantiser, saturate)

TERM_BITS = 31  # each of the two terms of a residual addition
LOGIT_BITS = 32
NORM_RECIPROCAL = 31  # fraction bits of 1 / standard deviation
SCORE_BITS = 16  # what exp sees of a score
SUM_RECIPROCAL = 24  # fraction bits of 1 / sum of a softmax row
EXP_SHIFT_LIMIT = 40  # beyond the width of the parabola, so nothing is left


def rounded_shift(x, shift):
    """x / 2^shift rounded to the nearest integer, halves up; shift >= 1."""
    return (x + (np.int64(1) << (shift - 1))) >> shift


def integer_sqrt(n):
    """floor(sqrt(n)) of 1 <= n < 2^53 by Newton's method from above (the paper's algorithm 4)."""
    bit_length = np.frexp(n.astype(np.float64))[1].astype(np.int64)
    root = np.int64(1) << ((bit_length + 1) // 2)
    while True:
        refined = np.minimum(root, (root + n // root) >> 1)
        if np.array_equal(refined, root):
            return root
        root = refined


class IntegerVit:
    """Runs the integer model; all its numbers are in `constants` and `scales`, see Quantiser."""

    def __init__(self, model, ranges):
        quantiser = Quantiser(model, ranges)
        self.constants, self.scales = quantiser.constants, quantiser.scales
        self.patch, self.heads, self.layers = model.patch, model.heads, model.layers
        self.post_norm, self.linked, self.keep = model.post_norm, model.linked, model.keep

    def forward(self, images, see=unwatched):
        """Logits s32 [count, classes] of integer images [count, H, W], values 0..INPUT_MAX.

        see(name, x) is shown the residual stream: "embedding" (what enters block 0) and "block<i>";
        post-LN also "embedding_sum", which is "embedding" before its norm.
        """
        x = self._embed(images)
        if self.post_norm:
            x = self._norm(see("embedding_sum", x), "embedding_norm")
        see("embedding", x)
        for layer in range(self.layers):
            x = see(f"block{layer}", self._block(x, f"blocks.{layer}."))
        x = x[:, 0]
        return self._linear(x if self.post_norm else self._norm(x, "norm"), "head", LOGIT_BITS)

    def _embed(self, images):
        pixels = to_patches(images.astype(np.int64), self.patch)
        x = self._linear(pixels, "patch_embed", RESIDUAL_BITS)
        class_row = np.zeros_like(x[:, :1])
        x = np.concatenate([class_row, x], 1) + self.constants["position"]
        return saturate(x, RESIDUAL_BITS)

    def _block(self, x, block):
        if self.post_norm:
            x = self._norm(self._add(x, self._attention(x, block), block + "proj"), block + "norm1")
            return self._norm(self._add(x, self._mlp(x, block), block + "fc2"), block + "norm2")
        x = self._add(x, self._attention(self._norm(x, block + "norm1"), block), block + "proj")
        return self._add(x, self._mlp(self._norm(x, block + "norm2"), block), block + "fc2")

    def _requantise(self, x, name, bits):
        product = x * self.constants[name + ".multiplier"]
        return saturate(rounded_shift(product, self.constants[name + ".shift"]), bits)

    def _linear(self, x, name, bits):
        accumulator = x @ self.constants[name + ".weight"].T + self.constants[name + ".bias"]
        return self._requantise(accumulator, name, bits)

    def _add(self, x, operand, name):
        """Layer `name` of the operand plus the residual x, which post-LN has to rescale."""
        identity = self._requantise(x, name + ".identity", TERM_BITS) if self.post_norm else x
        return saturate(self._linear(operand, name, TERM_BITS) + identity, RESIDUAL_BITS)

    def _norm(self, x, name):
        width = x.shape[-1]
        mean = (2 * x.sum(-1, keepdims=True) + width) // (2 * width)  # rounded, halves up
        x = x - mean
        deviation = integer_sqrt(np.maximum((x * x).sum(-1, keepdims=True), 1))
        reciprocal = (1 << NORM_RECIPROCAL) // deviation
        normalised = (x * reciprocal) >> (NORM_RECIPROCAL - NORM_FRACTION)
        scaled = normalised * self.constants[name + ".multiplier"] + self.constants[name + ".bias"]
        return saturate(rounded_shift(scaled, self.constants[name + ".shift"]), ACTIVATION_BITS)

    def _attention(self, x, block):
        query, key, value = (split_heads(self._linear(x, block + name, ACTIVATION_BITS), self.heads)
                             for name in ("query", "key", "value"))
        if self.linked:
            query, key = self._recode(query, block, "q"), self._recode(key, block, "k")
        scores = query @ key.transpose(0, 1, 3, 2)
        keep = self.keep.get(block, np.True_)
        below_maximum = scores - np.where(keep, scores, scores.min()).max(-1, keepdims=True)
        kept_scores = self._requantise(np.minimum(below_maximum, 0), block + "score", SCORE_BITS)
        weights = np.where(keep, self._exp(kept_scores), 0)
        reciprocal = (1 << SUM_RECIPROCAL) // weights.sum(-1, keepdims=True)
        mean = rounded_shift((weights @ value) * reciprocal, SUM_RECIPROCAL - MEAN_FRACTION)
        return merge_heads(self._requantise(mean, block + "context", ACTIVATION_BITS))

    def _recode(self, x, block, operand):
        for name in ("encoder_" + operand, "decoder_" + operand):
            x = across_heads(x, lambda x: self._linear(x, block + name, ACTIVATION_BITS))
        return x

    def _exp(self, scores):
        """u8 exp of scores <= 0, 255 for zero: a halving per ln 2 and a parabola for the rest."""
        ln2, b, c = (self.constants["softmax." + name] for name in ("ln2", "b", "c"))
        halvings = -scores // ln2
        rest = scores + halvings * ln2
        value = ((rest + b) ** 2 + c) >> np.minimum(halvings, EXP_SHIFT_LIMIT)
        value = rounded_shift(value * self.constants["softmax.exp.multiplier"],
                              self.constants["softmax.exp.shift"])
        return np.minimum(value, 2 ** SOFTMAX_BITS - 1)

    def _mlp(self, x, block):
        x = self._linear(x, block + "fc1", ACTIVATION_BITS)
        b, c = self.constants[block + "gelu.b"], self.constants[block + "gelu.c"]
        rest = np.minimum(np.abs(x), -b) + b
        erf = np.sign(x) * (rest * rest + c)
        return self._requantise(x * (erf + c), block + "gelu", ACTIVATION_BITS)
