"""The small vision transformers in double precision: reference logits and calibration ranges."""
import math

import numpy as np
from scipy.special import erf

from digits import INPUT_MAX

NORM_EPSILON = 1e-6


def to_patches(images, patch):
    """[count, H, W] -> [count, tokens, patch * patch], row-major in the image and in the patch."""
    count, height, width = images.shape
    tiles = images.reshape(count, height // patch, patch, width // patch, patch)
    return tiles.transpose(0, 1, 3, 2, 4).reshape(count, -1, patch * patch)


def split_heads(x, heads):
    """[count, tokens, width] -> [count, heads, tokens, width / heads]."""
    count, tokens, width = x.shape
    return x.reshape(count, tokens, heads, width // heads).transpose(0, 2, 1, 3)


def merge_heads(x):
    """The inverse of split_heads."""
    count, heads, tokens, head_width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(count, tokens, heads * head_width)


def across_heads(x, layer):
    """A layer on the heads of every token and feature of [count, heads, tokens, head_width]."""
    return np.moveaxis(layer(np.moveaxis(x, 1, -1)), -1, 1)


def unwatched(_name, x):
    return x


class FloatVit:
    """A checkpoint (tensors and metadata of its file) with a forward pass that can be watched.

    Watched tensors bear the name of what produced them: "embedding", "blocks.0.norm1", .query,
    .key, .value, .context, .proj (the sum with the residual), .norm2, .fc1, .gelu, .fc2 (the sum
    again), "norm" (pre-LN) or "embedding_norm" (post-LN), "logits". With auto-encoder .encoder_q,
    .decoder_q, .encoder_k and .decoder_k besides.
    """

    def __init__(self, tensors, metadata):
        self.tensors = {name: value.astype(np.float64) for name, value in tensors.items()}
        self.patch, self.width, self.heads, self.layers = (
            int(metadata[key]) for key in ("patch", "d", "h", "L"))
        self.post_norm = bool(int(metadata["post"]))
        self.linked = int(metadata["ae"]) != 0
        self.keep = {name.removesuffix("attn.keep_mask"): self._unpack(value)
                     for name, value in tensors.items() if name.endswith("attn.keep_mask")}

    def forward(self, images, see=unwatched):
        """Logits [count, classes] of integer images; see(name, x) is shown tensors, returns x."""
        x = see("embedding", self._embed(images))
        if self.post_norm:
            x = see("embedding_norm", self._norm(x, "norm"))
        for layer in range(self.layers):
            x = self._block(x, f"blocks.{layer}.", see)
        x = x[:, 0]
        if not self.post_norm:
            x = see("norm", self._norm(x, "norm"))
        return see("logits", self._linear(x, "head"))

    def calibrate(self, images):
        """Returns the largest magnitude of every watched tensor, by name."""
        ranges = {}

        def see(name, x):
            ranges[name] = float(np.abs(x).max())
            return x

        self.forward(images, see)
        return ranges

    def _unpack(self, mask):
        """u8 [heads, tokens, ceil(tokens / 8)], key 0 in bit 0 -> bool [heads, tokens, tokens]."""
        return np.unpackbits(mask, -1, count=mask.shape[1], bitorder="little") != 0

    def _linear(self, x, name):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def _norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + NORM_EPSILON)
        return x * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def _embed(self, images):
        weight = self.tensors["patch_embed.proj.weight"].reshape(self.width, -1)
        pixels = to_patches(images, self.patch) / float(INPUT_MAX)
        x = pixels @ weight.T + self.tensors["patch_embed.proj.bias"]
        cls_token = np.broadcast_to(self.tensors["cls_token"], (len(images), 1, self.width))
        return np.concatenate([cls_token, x], 1) + self.tensors["pos_embed"][0]

    def _block(self, x, block, see):
        if self.post_norm:
            x = see(block + "proj", x + self._attention(x, block, see))
            x = see(block + "norm1", self._norm(x, block + "norm1"))
            x = see(block + "fc2", x + self._mlp(x, block, see))
            return see(block + "norm2", self._norm(x, block + "norm2"))
        operand = see(block + "norm1", self._norm(x, block + "norm1"))
        x = see(block + "proj", x + self._attention(operand, block, see))
        operand = see(block + "norm2", self._norm(x, block + "norm2"))
        return see(block + "fc2", x + self._mlp(operand, block, see))

    def _attention(self, x, block, see):
        parts = np.split(self._linear(x, block + "attn.qkv"), 3, axis=-1)
        query, key, value = (see(block + name, split_heads(part, self.heads))
                             for name, part in zip(("query", "key", "value"), parts))
        if self.linked:
            query, key = (self._recode(x, block, operand, see)
                          for x, operand in ((query, "q"), (key, "k")))
        scores = query @ key.transpose(0, 1, 3, 2) * query.shape[-1] ** -0.5
        if block in self.keep:
            scores = np.where(self.keep[block], scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        context = see(block + "context", merge_heads(weights @ value))
        return self._linear(context, block + "attn.proj")

    def _recode(self, x, block, operand, see):
        """[count, heads, tokens, head_width] through the auto-encoder across heads."""
        for name in ("encoder_" + operand, "decoder_" + operand):
            x = see(block + name, across_heads(x, lambda x: self._linear(x, block + "attn." + name)))
        return x

    def _mlp(self, x, block, see):
        x = see(block + "fc1", self._linear(x, block + "mlp.fc1"))
        x = see(block + "gelu", 0.5 * x * (1 + erf(x / math.sqrt(2))))
        return self._linear(x, block + "mlp.fc2")
