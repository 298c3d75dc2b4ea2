"""A vision transformer whose parts are networks too: the first blocks, the first channels.

Parameters are those of a checkpoint that `systole quantise` reads (pre-norm, a class token). Every
smaller network uses the first rows and columns of the largest one's weights, so that all are
trained together. Shapes: B images, T tokens with the class token, d channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""Of float32; of float64 in the check of gradients."""
Weights = dict[str, Array]

CLASSES = 10
EPSILON = 1e-6
_GELU = np.float32(np.sqrt(2 / np.pi))


@dataclass(frozen=True, order=True)
class Shape:
    """Blocks, channels, heads, and hidden channels of the MLP over those of the residual stream."""

    depth: int
    width: int
    heads: int
    ratio: int

    @property
    def hidden(self) -> int:
        return self.ratio * self.width

    def __str__(self) -> str:
        return f"{self.depth} x {self.width}, {self.heads} heads, MLP {self.hidden}"


def random_weights(largest: Shape, patch_inputs: int, tokens: int, seed: int) -> Weights:
    """Normal with deviation 1 / sqrt(inputs); norms about 1."""
    random = np.random.default_rng(seed)
    d, hidden = largest.width, largest.hidden
    shapes: dict[str, tuple[int, ...]] = {
        "patch": (patch_inputs, d),
        "patch.bias": (d,),
        "cls": (d,),
        "position": (tokens, d),
        "norm.weight": (d,),
        "norm.bias": (d,),
        "head": (d, CLASSES),
        "head.bias": (CLASSES,),
    }
    for block in range(largest.depth):
        for layer, inputs, outputs in (
            ("q", d, d),
            ("k", d, d),
            ("v", d, d),
            ("proj", d, d),
            ("fc1", d, hidden),
            ("fc2", hidden, d),
        ):
            shapes[f"{block}.{layer}"] = (inputs, outputs)
            shapes[f"{block}.{layer}.bias"] = (outputs,)
        for norm in ("norm1", "norm2"):
            shapes[f"{block}.{norm}.weight"] = (d,)
            shapes[f"{block}.{norm}.bias"] = (d,)
    weights = {}
    for name, shape in shapes.items():
        values = random.standard_normal(shape) / np.sqrt(max(shape[0], 4))
        weights[name] = (values + (1 if name.endswith(".weight") else 0)).astype(np.float32)
    return weights


def weights_of(tensors: Mapping[str, Array]) -> Weights:
    """The inverse of checkpoint(): of a whole network."""
    t = {name: np.array(value, np.float32) for name, value in tensors.items()}
    d = t["norm.weight"].size
    weights = {
        "patch": t["patch_embed.proj.weight"].reshape(d, -1).T,
        "patch.bias": t["patch_embed.proj.bias"],
        "cls": t["cls_token"].reshape(d),
        "position": t["pos_embed"][0],
        "norm.weight": t["norm.weight"],
        "norm.bias": t["norm.bias"],
        "head": t["head.weight"].T,
        "head.bias": t["head.bias"],
    }
    for block in range(sum(name.endswith(".norm1.bias") for name in t)):
        at, to = f"{block}.", f"blocks.{block}."
        for i, part in enumerate(("q", "k", "v")):
            weights[at + part] = t[to + "attn.qkv.weight"][i * d : (i + 1) * d].T
            weights[at + part + ".bias"] = t[to + "attn.qkv.bias"][i * d : (i + 1) * d]
        for layer, path in (("proj", "attn.proj"), ("fc1", "mlp.fc1"), ("fc2", "mlp.fc2")):
            weights[at + layer] = t[f"{to}{path}.weight"].T
            weights[at + layer + ".bias"] = t[f"{to}{path}.bias"]
        for norm in ("norm1", "norm2"):
            for name in ("weight", "bias"):
                weights[f"{at}{norm}.{name}"] = t[f"{to}{norm}.{name}"]
    return {name: np.ascontiguousarray(value) for name, value in weights.items()}


def part_of(weights: Weights, shape: Shape) -> Weights:
    """Views of the weights that the network of that shape uses."""
    d, hidden = shape.width, shape.hidden
    part = {name: weights[name] for name in ("head.bias",)}
    part["patch"] = weights["patch"][:, :d]
    part["position"] = weights["position"][:, :d]
    part["head"] = weights["head"][:d]
    for name in ("patch.bias", "cls", "norm.weight", "norm.bias"):
        part[name] = weights[name][:d]
    for block in range(shape.depth):
        at = f"{block}."
        for name in ("q", "k", "v", "proj"):
            part[at + name] = weights[at + name][:d, :d]
            part[at + name + ".bias"] = weights[at + name + ".bias"][:d]
        part[at + "fc1"] = weights[at + "fc1"][:d, :hidden]
        part[at + "fc1.bias"] = weights[at + "fc1.bias"][:hidden]
        part[at + "fc2"] = weights[at + "fc2"][:hidden, :d]
        part[at + "fc2.bias"] = weights[at + "fc2.bias"][:d]
        for norm in ("norm1", "norm2"):
            part[at + norm + ".weight"] = weights[at + norm + ".weight"][:d]
            part[at + norm + ".bias"] = weights[at + norm + ".bias"][:d]
    return part


class Network:
    """A part of the weights, forwards and backwards."""

    def __init__(self, weights: Weights, shape: Shape) -> None:
        self.shape = shape
        self.weights = part_of(weights, shape)
        self.gradients: Weights = {}
        self._tape: list[Any] = []

    def logits(self, patches: Array) -> Array:
        """[B, T - 1, inputs of a patch] -> [B, classes]."""
        w = self.weights
        self._tape = []
        embedded = patches @ w["patch"] + w["patch.bias"]
        cls = np.broadcast_to(w["cls"], (len(patches), 1, self.shape.width))
        x = np.concatenate([cls, embedded], axis=1) + w["position"]
        for block in range(self.shape.depth):
            x = x + self._attention(f"{block}.", self._norm(f"{block}.norm1", x))
            x = x + self._mlp(f"{block}.", self._norm(f"{block}.norm2", x))
        out = self._norm("norm", x[:, 0])
        self._tape.append((patches, out, x.shape))
        result: Array = out @ w["head"] + w["head.bias"]
        return result

    def backward(self, by_logits: Array) -> Weights:
        """Gradients of the last logits(), by name, in the shapes of this network's weights."""
        self.gradients = {}
        patches, out, shape = self._tape.pop()
        self._add_linear("head", out, by_logits)
        by_out = self._norm_back("norm", by_logits @ self.weights["head"].T)
        by_x = np.zeros(shape, np.float32)
        by_x[:, 0] = by_out
        for block in reversed(range(self.shape.depth)):
            by_x = by_x + self._norm_back(f"{block}.norm2", self._mlp_back(f"{block}.", by_x))
            by_x = by_x + self._norm_back(f"{block}.norm1", self._attention_back(f"{block}.", by_x))
        self.gradients["position"] = by_x.sum(0)
        self.gradients["cls"] = by_x[:, 0].sum(0)
        self._add_linear("patch", patches, by_x[:, 1:])
        return self.gradients

    def _linear(self, name: str, x: Array) -> Array:
        result: Array = x @ self.weights[name] + self.weights[name + ".bias"]
        return result

    def _add_linear(self, name: str, x: Array, by_y: Array) -> None:
        rows, by_rows = x.reshape(-1, x.shape[-1]), by_y.reshape(-1, by_y.shape[-1])
        self.gradients[name] = rows.T @ by_rows
        self.gradients[name + ".bias"] = by_rows.sum(0)

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scale = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
        normal = centred * scale
        self._tape.append((normal, scale))
        result: Array = normal * self.weights[name + ".weight"] + self.weights[name + ".bias"]
        return result

    def _norm_back(self, name: str, by_y: Array) -> Array:
        normal, scale = self._tape.pop()
        axes = tuple(range(by_y.ndim - 1))
        self.gradients[name + ".weight"] = (by_y * normal).sum(axes)
        self.gradients[name + ".bias"] = by_y.sum(axes)
        by_normal = by_y * self.weights[name + ".weight"]
        mean = by_normal.mean(-1, keepdims=True)
        along = (by_normal * normal).mean(-1, keepdims=True)
        result: Array = scale * (by_normal - mean - normal * along)
        return result

    def _split(self, x: Array) -> Array:
        """[B, T, d] -> [B, heads, T, d / heads]."""
        batch, tokens, width = x.shape
        heads = self.shape.heads
        result: Array = x.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)
        return result

    def _join(self, x: Array) -> Array:
        batch, heads, tokens, features = x.shape
        result: Array = x.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * features)
        return result

    def _attention(self, at: str, x: Array) -> Array:
        q, k, v = (self._split(self._linear(at + name, x)) for name in ("q", "k", "v"))
        scale = np.float32(1 / np.sqrt(q.shape[-1]))
        scores = (q @ k.swapaxes(-1, -2)) * scale
        codes = np.exp(scores - scores.max(-1, keepdims=True))
        codes = codes / codes.sum(-1, keepdims=True)
        context = self._join(codes @ v)
        self._tape.append((x, q, k, v, codes, context, scale))
        return self._linear(at + "proj", context)

    def _attention_back(self, at: str, by_y: Array) -> Array:
        x, q, k, v, codes, context, scale = self._tape.pop()
        w = self.weights
        self._add_linear(at + "proj", context, by_y)
        by_context = self._split(by_y @ w[at + "proj"].T)
        by_codes = by_context @ v.swapaxes(-1, -2)
        by_scores = codes * (by_codes - (by_codes * codes).sum(-1, keepdims=True)) * scale
        by_parts = {
            "q": by_scores @ k,
            "k": by_scores.swapaxes(-1, -2) @ q,
            "v": codes.swapaxes(-1, -2) @ by_context,
        }
        by_x: Array = np.zeros_like(x)
        for name, by_part in by_parts.items():
            joined = self._join(by_part)
            self._add_linear(at + name, x, joined)
            by_x += joined @ w[at + name].T
        return by_x

    def _mlp(self, at: str, x: Array) -> Array:
        hidden = self._linear(at + "fc1", x)
        inner = np.tanh(_GELU * (hidden + np.float32(0.044715) * hidden * hidden * hidden))
        active = np.float32(0.5) * hidden * (1 + inner)
        self._tape.append((x, hidden, inner, active))
        return self._linear(at + "fc2", active)

    def _mlp_back(self, at: str, by_y: Array) -> Array:
        x, hidden, inner, active = self._tape.pop()
        self._add_linear(at + "fc2", active, by_y)
        by_active = by_y @ self.weights[at + "fc2"].T
        slope = _GELU * (1 + np.float32(3 * 0.044715) * hidden * hidden)
        by_hidden = by_active * np.float32(0.5) * (1 + inner + hidden * (1 - inner * inner) * slope)
        self._add_linear(at + "fc1", x, by_hidden)
        result: Array = by_hidden @ self.weights[at + "fc1"].T
        return result


def checkpoint(weights: Weights, shape: Shape, patch: int, image: int) -> dict[str, Array]:
    """The tensors of a network by the names that DeiT's checkpoints have, [outputs, inputs]."""
    w = part_of(weights, shape)
    d = shape.width
    tensors = {
        "patch_embed.proj.weight": w["patch"].T.reshape(d, 1, patch, patch),
        "patch_embed.proj.bias": w["patch.bias"],
        "cls_token": w["cls"].reshape(1, 1, d),
        "pos_embed": w["position"][None],
        "norm.weight": w["norm.weight"],
        "norm.bias": w["norm.bias"],
        "head.weight": w["head"].T,
        "head.bias": w["head.bias"],
    }
    for block in range(shape.depth):
        at, to = f"{block}.", f"blocks.{block}."
        for kind in ("", ".bias"):
            parts = [w[at + part + kind] for part in ("q", "k", "v")]
            name = "bias" if kind else "weight"
            joined = np.concatenate(parts, axis=-1)
            tensors[f"{to}attn.qkv.{name}"] = joined if kind else joined.T
            for layer, path in (("proj", "attn.proj"), ("fc1", "mlp.fc1"), ("fc2", "mlp.fc2")):
                value = w[at + layer + kind]
                tensors[f"{to}{path}.{name}"] = value if kind else value.T
        for norm in ("norm1", "norm2"):
            for name in ("weight", "bias"):
                tensors[f"{to}{norm}.{name}"] = w[f"{at}{norm}.{name}"]
    assert (image // patch) ** 2 + 1 == len(w["position"])
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}
