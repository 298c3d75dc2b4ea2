"""The operators that converted decoders have besides those of evaluate.py, from their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from systole_convert import evaluate
from systole_convert.graph import Node


def rms_norm(node: Node, x: list[Any], _: int) -> Any:
    """Zhang and Sennrich, arXiv 1910.07467; of each head by itself."""
    y = x[0].reshape(x[0].shape[0], node.attributes.get("heads", 1), -1)
    y = y / np.sqrt((y**2).mean(-1, keepdims=True) + node.attributes["epsilon"]) * x[1]
    return y.reshape(x[0].shape)


def rope(node: Node, x: list[Any], tokens: int) -> Any:
    """Su et al., arXiv 2104.09864: pairs of a head turn by position x frequency."""
    heads = node.attributes["heads"]
    width = x[0].shape[1] // heads
    plain = node.attributes["base"] ** (-np.arange(width // 2) * 2 / width)
    frequencies = np.array(node.attributes.get("frequencies", plain))
    angle = np.arange(tokens)[:, None, None] * frequencies
    y = x[0].reshape(tokens, heads, width).copy()
    if node.attributes["interleaved"]:
        first, second = y[..., 0::2].copy(), y[..., 1::2].copy()
    else:
        first, second = y[..., : width // 2].copy(), y[..., width // 2 :].copy()
    turned = (
        first * np.cos(angle) - second * np.sin(angle),
        first * np.sin(angle) + second * np.cos(angle),
    )
    if node.attributes["interleaved"]:
        y[..., 0::2], y[..., 1::2] = turned
    else:
        y[..., : width // 2], y[..., width // 2 :] = turned
    return y.reshape(tokens, heads * width)


def attention(node: Node, x: list[Any], tokens: int) -> Any:
    """Heads of queries in groups share one of keys and values."""
    heads, kv = node.attributes["heads"], node.attributes.get("kv_heads", node.attributes["heads"])
    width = x[0].shape[1] // heads
    q = x[0].reshape(tokens, heads, width).swapaxes(0, 1)
    k, v = (
        part.reshape(tokens, kv, width).swapaxes(0, 1).repeat(heads // kv, 0) for part in x[1:3]
    )
    scores = q @ k.swapaxes(1, 2) / math.sqrt(width)
    seen = np.tril(np.ones((tokens, tokens), bool))
    if "window" in node.attributes:
        seen &= ~np.tril(seen, -node.attributes["window"])
    scores = np.where(seen, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return (
        (shares / shares.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(tokens, heads * width)
    )


def route(node: Node, x: list[Any], _: int) -> Any:
    """A token's experts and their shares: Shazeer et al., arXiv 1701.06538, without noise."""
    shares = np.zeros_like(x[0])
    for scores, row in zip(x[0], shares, strict=True):
        best = np.argsort(-scores, kind="stable")[: node.attributes["active"]]
        row[best] = np.exp(scores[best]) / np.exp(scores[best]).sum()
    return shares


OPS = evaluate._OPS | {
    "route": route,
    "weigh": lambda node, x, tokens: x[0] * x[1][:, node.attributes["expert"]][:, None],
    "rms_norm": rms_norm,
    "rope": rope,
    "attention": attention,
    "scale": lambda node, x, tokens: node.attributes["factor"] * x[0],
    "silu": lambda node, x, tokens: x[0] / (1 + np.exp(-x[0])),
    "multiply": lambda node, x, tokens: x[0] * x[1],
}
