"""The operator graph of a network file, in the making."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import tensor_file
from .errors import ConvertError
from .tensor_file import OutTensor

FORMAT = "systole-network"
VERSION = 1
TOKENS = "tokens"

Size = int | str  # a number, or TOKENS
Make = Callable[[], np.ndarray]


@dataclass
class Source:
    """A constant of a checkpoint: its type and shape now, its values when they are wanted."""

    shape: tuple[int, ...]
    make: Make
    dtype: str = "F32"
    #: of I8 codes: one for each index of an axis, or one for all
    scales: Source | float | None = None
    axis: int = 0

    def transposed(self) -> Source:
        """Of a matrix."""
        rows, columns = self.shape
        return Source(
            (columns, rows), lambda: self.make().T, self.dtype, self.scales, 1 - self.axis
        )

    def rows(self, first: int, count: int) -> Source:
        """Some rows; those of a matrix of codes with a scale per column keep all scales."""
        scales = self.scales
        if isinstance(scales, Source) and self.axis == 0:
            scales = scales.rows(first, count)
        shape = (count, *self.shape[1:])
        return Source(
            shape, lambda: self.make()[first : first + count], self.dtype, scales, self.axis
        )

    def reshaped(self, shape: tuple[int, ...]) -> Source:
        return Source(shape, lambda: self.make().reshape(shape), self.dtype)

    def plus(self, offset: float) -> Source:
        return Source(self.shape, lambda: self.reals() + np.float32(offset))

    def reals(self) -> np.ndarray:
        """Decoded, float32 or float64."""
        values = self.make()
        if self.scales is None:
            return values if values.dtype == np.float64 else values.astype(np.float32, copy=False)
        if isinstance(self.scales, Source):
            shape = [1] * values.ndim
            shape[self.axis] = -1
            scale = self.scales.make().astype(np.float32).reshape(shape)
        else:
            scale = np.array(self.scales, np.float32)
        return values.astype(np.float32) * scale


@dataclass
class Node:
    name: str
    op: str
    inputs: list[str]
    attributes: dict[str, Any]


@dataclass
class Network:
    """Every node has one result, named like the node."""

    name: str
    source: str
    architecture: dict[str, Any]
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    constants: dict[str, Source] = field(default_factory=dict)
    #: of a network that reads ids (docs/network-format.md), or None
    tokeniser: dict[str, Any] | None = None

    def input(self, name: str, kind: str, shape: Sequence[Size]) -> str:
        self.inputs.append(name)
        self.values[name] = {"type": kind, "shape": list(shape)}
        return name

    def constant(self, name: str, source: Source) -> str:
        if name in self.constants:
            raise ConvertError(f"constant '{name}'", "occurs twice")
        self.constants[name] = source
        return name

    def shape(self, value: str) -> list[Size]:
        if value in self.constants:
            return list(self.constants[value].shape)
        return list(self.values[value]["shape"])

    def node(
        self, name: str, op: str, inputs: list[str], shape: Sequence[Size], **attributes: Any
    ) -> str:
        if name in self.values:
            raise ConvertError(f"node '{name}'", "occurs twice")
        self.nodes.append(Node(name, op, inputs, attributes))
        self.values[name] = {"type": "f32", "shape": list(shape)}
        return name

    # Operators that more than one family has.

    def embedding(self, name: str, ids: str, table: Source) -> str:
        return self.node(
            name,
            "embedding",
            [ids, self.constant(f"{name}.table", table)],
            [TOKENS, table.shape[1]],
        )

    def positions(self, name: str, table: Source, offset: int = 0) -> str:
        return self.node(
            name,
            "positions",
            [self.constant(f"{name}.table", table)],
            [TOKENS, table.shape[1]],
            offset=offset,
        )

    def add(self, name: str, a: str, b: str) -> str:
        return self.node(name, "add", [a, b], self.shape(a))

    def linear(self, name: str, x: str, weight: Source | str, bias: Source | None = None) -> str:
        inputs = [x, weight if isinstance(weight, str) else self.constant(f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.node(name, "linear", inputs, [self.shape(x)[0], self.shape(inputs[1])[0]])

    def layer_norm(self, name: str, x: str, weight: Source, bias: Source, epsilon: float) -> str:
        inputs = [x, self.constant(f"{name}.weight", weight), self.constant(f"{name}.bias", bias)]
        return self.node(name, "layer_norm", inputs, self.shape(x), epsilon=epsilon)

    def rms_norm(self, name: str, x: str, weight: Source, epsilon: float) -> str:
        inputs = [x, self.constant(f"{name}.weight", weight)]
        return self.node(name, "rms_norm", inputs, self.shape(x), epsilon=epsilon)

    def attention(
        self, name: str, q: str, k: str, v: str, heads: int, causal: bool, **more: Any
    ) -> str:
        return self.node(
            name, "attention", [q, k, v], self.shape(q), heads=heads, causal=causal, **more
        )

    def document(self) -> dict[str, Any]:
        tensors = dict(self.values)
        for name, source in self.constants.items():
            if isinstance(source.scales, Source):
                tensors[name] = {"scale": {"axis": source.axis, "values": f"{name}.scales"}}
            elif source.scales is not None:
                tensors[name] = {"scale": source.scales}
        return {
            "format_version": VERSION,
            "name": self.name,
            "source": self.source,
            "architecture": self.architecture,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "tensors": tensors,
            "nodes": [
                {"name": n.name, "op": n.op, "inputs": n.inputs, "outputs": [n.name],
                 "attributes": n.attributes}
                for n in self.nodes
            ],
        }  # fmt: skip

    def write(self, path: Path) -> None:
        tensors: dict[str, OutTensor] = {}
        for name, source in self.constants.items():
            tensors[name] = OutTensor(source.dtype, source.shape, source.make)
            if isinstance(source.scales, Source):
                scales = source.scales
                tensors[f"{name}.scales"] = OutTensor(scales.dtype, scales.shape, scales.make)
        text = json.dumps(self.document(), separators=(",", ":"), allow_nan=False)
        metadata = {"format": FORMAT, "network": text}
        if self.tokeniser is not None:
            metadata["tokeniser"] = json.dumps(self.tokeniser, separators=(",", ":"))
        tensor_file.write(path, tensors, metadata)
