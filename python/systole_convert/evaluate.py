"""A network in NumPy, float64: to see that a converted one computes what its source does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .graph import Network, Node

Array = np.ndarray[Any, Any]
_erf: Any = np.vectorize(math.erf, otypes=[np.float64])


def evaluate(net: Network, inputs: dict[str, Array]) -> Array:
    """The first output. A picture is what `normalise` gives: that operator passes it through."""
    values: dict[str, Array] = dict(inputs)
    tokens = max((len(v) for v in inputs.values() if v.ndim == 1), default=0)
    for node in net.nodes:
        operands = [
            net.constants[name].reals().astype(np.float64)
            if name in net.constants
            else values[name]
            for name in node.inputs
        ]
        values[node.name] = _OPS[node.op](node, operands, tokens)
    result: Array = values[net.outputs[0]]
    return result


def _layer_norm(node: Node, x: list[Array]) -> Any:
    centred = x[0] - x[0].mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + node.attributes["epsilon"]) * x[1] + x[2]


def _gelu(node: Node, x: list[Array]) -> Any:
    if node.attributes["form"] == "erf":
        return x[0] * 0.5 * (1 + _erf(x[0] / math.sqrt(2)))
    return x[0] * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x[0] + 0.044715 * x[0] ** 3)))


def _attention(node: Node, x: list[Array]) -> Any:
    heads = node.attributes["heads"]
    tokens, width = x[0].shape
    q, k, v = (part.reshape(tokens, heads, width // heads).swapaxes(0, 1) for part in x[:3])
    scores = q @ k.swapaxes(1, 2) / math.sqrt(width // heads)
    if node.attributes["causal"]:
        scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return (shares / shares.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(tokens, width)


def _patches(node: Node, x: list[Array]) -> Any:
    channels, side, _ = x[0].shape
    p = node.attributes["patch"]
    n = side // p
    return (
        x[0].reshape(channels, n, p, n, p).transpose(1, 3, 0, 2, 4).reshape(n * n, channels * p * p)
    )


def _around(node: Node) -> list[tuple[int, int]]:
    """What `padding` adds before and after each axis of a picture."""
    p = node.attributes.get("padding", 0)
    top, left, bottom, right = p if isinstance(p, list) else [p] * 4
    return [(0, 0), (top, bottom), (left, right)]


def _places(node: Node, x: Array, rows: int, cols: int, outside: float) -> Array:
    """[channels, height, width, rows, cols] of what a window sees of a picture."""
    stride = node.attributes.get("stride", 1)
    padded = np.pad(x, _around(node), constant_values=outside)
    seen: Array = np.lib.stride_tricks.sliding_window_view(padded, (rows, cols), (1, 2))
    return seen[:, ::stride, ::stride]


def _convolution(node: Node, x: list[Array]) -> Any:
    weight = x[1]
    outputs, inputs, rows, cols = weight.shape
    groups = node.attributes.get("groups", 1)
    seen = _places(node, x[0], rows, cols, 0.0)
    parts = [
        np.einsum(
            "ihwrc,oirc->ohw",
            seen[g * inputs : (g + 1) * inputs],
            weight[g * outputs // groups : (g + 1) * outputs // groups],
        )
        for g in range(groups)
    ]
    bias = x[2][:, None, None] if len(x) > 2 else 0.0
    return np.concatenate(parts) + bias


def _pool(node: Node, x: list[Array], largest: bool) -> Any:
    rows, cols = node.attributes["rows"], node.attributes["cols"]
    seen = _places(node, x[0], rows, cols, -np.inf if largest else 0.0)
    return seen.max((3, 4)) if largest else seen.mean((3, 4))


_OPS: dict[str, Any] = {
    "convolution": lambda node, x, tokens: _convolution(node, x),
    "max_pool": lambda node, x, tokens: _pool(node, x, True),
    "average_pool": lambda node, x, tokens: _pool(node, x, False),
    "pad": lambda node, x, tokens: np.pad(x[0], _around(node)),
    "embedding": lambda node, x, tokens: x[1][x[0]],
    "positions": lambda node, x, tokens: x[0][node.attributes["offset"] :][:tokens],
    "add": lambda node, x, tokens: x[0] + x[1],
    "divide": lambda node, x, tokens: x[0] / x[1],
    "add_table": lambda node, x, tokens: x[0] + x[1],
    "layer_norm": lambda node, x, tokens: _layer_norm(node, x),
    "linear": lambda node, x, tokens: x[0] @ x[1].T + (x[2] if len(x) > 2 else 0.0),
    "gelu": lambda node, x, tokens: _gelu(node, x),
    "tanh": lambda node, x, tokens: np.tanh(x[0]),
    "relu": lambda node, x, tokens: np.maximum(x[0], 0.0),
    "attention": lambda node, x, tokens: _attention(node, x),
    "normalise": lambda node, x, tokens: x[0],
    "patches": lambda node, x, tokens: _patches(node, x),
    "prepend": lambda node, x, tokens: np.concatenate([x[1], x[0]]),
    "select_row": lambda node, x, tokens: x[0][node.attributes["row"]][None],
}
