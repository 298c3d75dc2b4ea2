"""From the operators of an ONNX file to a convolutional network, node by node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .encoders import normalised
from .errors import ConvertError
from .graph import Network, Source
from .onnx_graph import OnnxGraph, Op

#: Operators that a network file has, or that become one of them.
OPERATORS = frozenset(
    [
        "Add",
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "Div",
        "Dropout",
        "Flatten",
        "Gemm",
        "GlobalAveragePool",
        "Identity",
        "MatMul",
        "MaxPool",
        "Pad",
        "ReduceMean",
        "Relu",
        "Reshape",
    ]
)
_POOLS = frozenset(["AveragePool", "BatchNormalization", "GlobalAveragePool", "MaxPool", "Pad"])
_SAME = ("Dropout", "Flatten", "Identity", "Reshape")
_AUTOMATIC = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
_MOST_SIDE = 255


def is_convolutional(graph: OnnxGraph) -> bool:
    """A ViT has one Conv, of its patches, and no pooling."""
    types = [op.type for op in graph.ops]
    return types.count("Conv") > 1 or ("Conv" in types and any(t in _POOLS for t in types))


def convert(graph: OnnxGraph, name: str) -> Network:
    return _Converter(graph, name).run()


@dataclass
class _Place:
    """Where a window moves: its stride, and padding [top, left, bottom, right]."""

    stride: int = 1
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def attributes(self) -> dict[str, Any]:
        return {"stride": self.stride, "padding": _padding(self.padding)}

    def around(self) -> tuple[int, int]:
        """Rows and columns that padding adds."""
        top, left, bottom, right = self.padding
        return top + bottom, left + right


def _padding(sides: tuple[int, int, int, int]) -> int | list[int]:
    """As a network file has it: one number where all sides have it."""
    return sides[0] if len(set(sides)) == 1 else list(sides)


@dataclass
class _Layer:
    """Weights [outputs, inputs of a group, rows, columns], of the operator that has them."""

    weight: np.ndarray
    bias: np.ndarray


class _Converter:
    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph = graph
        self.net = Network(name, str(graph.path.name), {"family": "cnn"})
        self.values: dict[str, str] = {}  # of the file to those of the network
        self.readers: dict[str, list[Op]] = {}
        self.skipped: set[str] = set()  # operators that are a part of one before them
        for op in graph.ops:
            for value in op.inputs:
                self.readers.setdefault(value, []).append(op)

    def run(self) -> Network:
        graph = self.graph
        if len(graph.inputs) != 1:
            raise ConvertError(graph.path, f"{len(graph.inputs)} inputs, expected one of pictures")
        source = graph.inputs[0]
        shape = graph.shapes[source]
        if len(shape) != 4 or shape[0] not in (0, 1) or 0 in shape[1:] or shape[2] != shape[3]:
            raise ConvertError(
                graph.path,
                f"input '{source}': shape {shape}, expected [1, channels, side, side]",
            )
        picture = self.net.input("picture", "u8", shape[1:])
        self.values[source] = normalised(self.net, picture, Path(graph.path).parent, shape[1])
        for op in graph.ops:
            if op.name not in self.skipped:
                self.values[op.outputs[0]] = self.converted(op)
        self.net.outputs = [self.values[graph.outputs[0]]]
        if not any(node.name == self.net.outputs[0] for node in self.net.nodes[1:]):
            raise ConvertError(graph.path, "its output is its input, expected operators between")
        return self.net

    def converted(self, op: Op) -> str:
        if op.type not in OPERATORS:
            known = ", ".join(sorted(OPERATORS))
            raise self.graph.fail(op, f"not supported between convolutions, expected {known}")
        if op.type in _SAME:
            return self.same(op)
        if op.type == "Add":
            return self.pair(op, "add")
        if op.type == "Div" and self.constant(op, 1) is None:
            return self.pair(op, "divide")
        if op.type in ("Conv", "Gemm", "MatMul", "BatchNormalization", "Div"):
            return self.layered(op)
        if op.type == "Relu":
            x = self.x(op)
            return self.net.node(self.name(op), "relu", [x], self.net.shape(x))
        return self.window(op)

    # Values.

    def name(self, op: Op) -> str:
        """A name of a network file: without the slashes that exporters put first."""
        return op.name.strip("/").replace("/", ".") or op.type

    def x(self, op: Op, index: int = 0) -> str:
        value = op.inputs[index]
        if value not in self.values:
            raise self.graph.fail(op, f"input '{value}': is a constant, expected a result")
        return self.values[value]

    def picture(self, op: Op, index: int = 0) -> tuple[str, int, int, int]:
        """A value with its channels, height and width."""
        x = self.x(op, index)
        channels, height, width = (int(size) for size in self.net.shape(x))
        return x, channels, height, width

    def constant(self, op: Op, index: int) -> np.ndarray | None:
        """Values of an operand, or None if it has none or another node makes them."""
        if index >= len(op.inputs) or not op.inputs[index]:
            return None
        source = self.graph.constants.get(op.inputs[index])
        return None if source is None else np.asarray(source.reals())

    def needed(self, op: Op, index: int) -> np.ndarray:
        found = self.constant(op, index)
        if found is None:
            raise self.graph.fail(op, f"operand {index}: expected a constant")
        return found

    def only_reader(self, op: Op, kind: str) -> Op | None:
        readers = self.readers.get(op.outputs[0], [])
        alone = len(readers) == 1 and op.outputs[0] not in self.graph.outputs
        return readers[0] if alone and readers[0].type == kind else None

    # Operators.

    def same(self, op: Op) -> str:
        """Flattened pictures stay pictures: the layer that reads them has weights for each pixel."""
        x, channels, height, width = self.picture(op)
        if op.type == "Flatten" and op.attributes.get("axis", 1) != 1:
            raise self.graph.fail(op, f"axis {op.attributes['axis']}, expected 1")
        if op.type == "Reshape":
            shape = [int(size) for size in self.needed(op, 1)]
            elements = channels * height * width
            if len(shape) != 2 or shape[0] not in (0, 1, -1) or shape[1] not in (-1, elements):
                raise self.graph.fail(op, f"to {shape}, expected [1, -1]")
        return x

    def pair(self, op: Op, kind: str) -> str:
        a, b = self.x(op, 0), self.x(op, 1)
        if self.net.shape(a) != self.net.shape(b):
            raise self.graph.fail(
                op, f"of {self.net.shape(a)} and {self.net.shape(b)}, expected equal shapes"
            )
        return self.net.node(self.name(op), kind, [a, b], self.net.shape(a))

    def layered(self, op: Op) -> str:
        x, channels, height, width = self.picture(op)
        place = _Place()
        groups = 1
        if op.type == "Conv":
            groups = int(op.attributes.get("group", 1))
            weight = self.needed(op, 1)
            if weight.ndim != 4:
                raise self.graph.fail(op, f"weights of {weight.ndim} axes, expected 4")
            place = self.place(op, (height, width), (weight.shape[2], weight.shape[3]))
            layer = self.layer(weight, self.constant(op, 2))
        elif op.type == "BatchNormalization":
            groups = channels
            layer = self.normed(op, self.layer(np.ones((channels, 1, 1, 1)), None))
        elif op.type == "Div":
            groups = channels
            layer = self.divided(op, self.layer(np.ones((channels, 1, 1, 1)), None))
        else:
            layer = self.dense(op, (channels, height, width))
        last = op
        after = self.only_reader(last, "BatchNormalization")
        if after is not None and op.type != "BatchNormalization":
            layer = self.normed(after, layer)
            last = self.skip(after)
        after = self.only_reader(last, "Add") if op.type == "MatMul" else None
        if after is not None and self.addend(after) is not None:
            layer.bias = layer.bias + np.asarray(self.addend(after)).reshape(-1)
            last = self.skip(after)
        after = self.only_reader(last, "Div") if op.type != "Div" else None
        if after is not None and self.constant(after, 1) is not None:
            layer = self.divided(after, layer)
            last = self.skip(after)
        if layer.weight.shape[1] * groups != channels:
            raise self.graph.fail(
                op, f"weights for {layer.weight.shape[1] * groups} channels, found {channels}"
            )
        name = self.name(op)
        weights = layer.weight.astype(np.float32)
        bias = layer.bias.astype(np.float32)
        inputs = [
            x,
            self.net.constant(
                f"{name}.weight", Source(weights.shape, partial(np.asarray, weights))
            ),
            self.net.constant(f"{name}.bias", Source(bias.shape, partial(np.asarray, bias))),
        ]
        shape = [weights.shape[0], *self.sides((height, width), weights.shape[2:], place, op)]
        more = {} if groups == 1 else {"groups": groups}
        result = self.net.node(name, "convolution", inputs, shape, **place.attributes(), **more)
        self.values[last.outputs[0]] = result
        return result

    def layer(self, weight: np.ndarray, bias: np.ndarray | None) -> _Layer:
        weight = weight.astype(np.float64)
        return _Layer(
            weight, np.zeros(weight.shape[0]) if bias is None else bias.astype(np.float64)
        )

    def skip(self, op: Op) -> Op:
        self.skipped.add(op.name)
        return op

    def addend(self, op: Op) -> np.ndarray | None:
        """The constant operand of an addition."""
        for index in (0, 1):
            found = self.constant(op, index)
            if found is not None:
                return found
        return None

    def normed(self, op: Op, layer: _Layer) -> _Layer:
        """A layer whose result is normalised with what was measured in training."""
        scale, shift, mean, variance = (self.needed(op, i).astype(np.float64) for i in range(1, 5))
        if scale.shape != layer.bias.shape:
            raise self.graph.fail(op, f"{scale.size} channels, expected {layer.bias.size}")
        factor = scale / np.sqrt(variance + float(op.attributes.get("epsilon", 1e-5)))
        return _Layer(
            layer.weight * factor[:, None, None, None], (layer.bias - mean) * factor + shift
        )

    def divided(self, op: Op, layer: _Layer) -> _Layer:
        """A layer whose result is divided by a constant, one for all channels or one for each."""
        divisor = self.needed(op, 1).astype(np.float64)
        by_channel = divisor.ndim in (3, 4) and divisor.shape[-3:] == (layer.bias.size, 1, 1)
        if divisor.size != 1 and not by_channel:
            raise self.graph.fail(
                op, f"by {list(divisor.shape)}, expected a number or one for each channel"
            )
        if not np.all(np.isfinite(divisor)) or np.any(divisor == 0):
            raise self.graph.fail(op, "by zero or no number, expected divisors that are not 0")
        factor = 1 / np.broadcast_to(divisor.reshape(-1), layer.bias.shape)
        return _Layer(layer.weight * factor[:, None, None, None], layer.bias * factor)

    def dense(self, op: Op, shape: tuple[int, int, int]) -> _Layer:
        """A layer of all pixels: one whose window is the whole picture."""
        weight = self.needed(op, 1)
        flags = op.attributes
        if (
            flags.get("transA", 0)
            or float(flags.get("alpha", 1)) != 1
            or float(flags.get("beta", 1)) != 1
        ):
            raise self.graph.fail(op, "transA, alpha or beta, expected x times weights plus bias")
        if op.type == "MatMul" or not flags.get("transB", 0):
            weight = weight.T
        if weight.ndim != 2 or weight.shape[1] != math.prod(shape):
            raise self.graph.fail(
                op, f"weights {list(weight.shape)}, expected {math.prod(shape)} columns"
            )
        bias = self.constant(op, 2)
        bias = None if bias is None else np.broadcast_to(bias.reshape(-1), (weight.shape[0],))
        return self.layer(weight.reshape(weight.shape[0], *shape), bias)

    def place(self, op: Op, sides: tuple[int, int], window: tuple[int, int]) -> _Place:
        """Stride, which has to be the same in both directions, and padding."""
        found = op.attributes
        if max(window) > _MOST_SIDE:
            raise self.graph.fail(
                op, f"a window of {window[0]} x {window[1]}, expected at most {_MOST_SIDE}"
            )
        if any(size != 1 for size in found.get("dilations", [])):
            raise self.graph.fail(op, f"dilations {list(found['dilations'])}, expected 1")
        strides = [int(size) for size in found.get("strides", [1] * 2)]
        if len(set(strides)) != 1:
            raise self.graph.fail(op, f"strides {strides}, expected the same in both directions")
        automatic = found.get("auto_pad", b"NOTSET").decode()
        if automatic not in _AUTOMATIC:
            raise self.graph.fail(op, f"auto_pad {automatic}, expected {', '.join(_AUTOMATIC)}")
        if automatic.startswith("SAME"):
            return _Place(strides[0], self.same_sides(sides, window, strides[0], automatic))
        pads = (
            [int(size) for size in found.get("pads", [0] * 4)] if automatic == "NOTSET" else [0] * 4
        )
        if len(pads) != 4 or min(pads) < 0 or max(pads) > _MOST_SIDE:
            raise self.graph.fail(
                op, f"pads {pads}, expected [top, left, bottom, right] from 0 to {_MOST_SIDE}"
            )
        return _Place(strides[0], (pads[0], pads[1], pads[2], pads[3]))

    def same_sides(
        self, sides: tuple[int, int], window: tuple[int, int], stride: int, automatic: str
    ) -> tuple[int, int, int, int]:
        """Padding with which a result has as many pixels as its input, or a stride-th of them."""
        less, more = [], []
        for side, size in zip(sides, window, strict=True):
            total = max((math.ceil(side / stride) - 1) * stride + size - side, 0)
            less.append(total // 2)
            more.append(total - total // 2)
        before, after = (less, more) if automatic == "SAME_UPPER" else (more, less)
        return before[0], before[1], after[0], after[1]

    def sides(
        self, sides: tuple[int, int], window: tuple[int, ...], place: _Place, op: Op
    ) -> list[int]:
        found = [
            (side + around - size) // place.stride + 1
            for side, around, size in zip(sides, place.around(), window, strict=True)
        ]
        if min(found) < 1:
            raise self.graph.fail(op, f"a window of {list(window)} on {list(sides)} pixels")
        return found

    def window(self, op: Op) -> str:
        x, channels, height, width = self.picture(op)
        if op.type == "Pad":
            zeros = self.zeros_around(op)
            rows, cols = _Place(1, zeros).around()
            if not any(zeros):
                return x
            shape = [channels, height + rows, width + cols]
            return self.net.node(self.name(op), "pad", [x], shape, padding=_padding(zeros))
        if op.type in ("GlobalAveragePool", "ReduceMean"):
            if op.type == "ReduceMean":
                self.check_axes(op)
            rows, cols, place = height, width, _Place()
            if max(rows, cols) > _MOST_SIDE:
                raise self.graph.fail(
                    op, f"of {rows} x {cols} pixels, expected at most {_MOST_SIDE}"
                )
        else:
            kernel = list(op.attributes.get("kernel_shape", []))
            if len(kernel) != 2 or op.attributes.get("ceil_mode", 0) or len(op.outputs) != 1:
                raise self.graph.fail(op, "expected a kernel of two sides, floors and one result")
            rows, cols = kernel
            place = self.place(op, (height, width), (rows, cols))
            top, left, bottom, right = place.padding
            if max(top, bottom) >= rows or max(left, right) >= cols:
                raise self.graph.fail(op, f"padding {list(place.padding)} of a window {kernel}")
            counted = op.attributes.get("count_include_pad", 0)
            if op.type == "AveragePool" and any(place.padding) and not counted:
                raise self.graph.fail(op, "means without the padding, expected count_include_pad 1")
        shape = [channels, *self.sides((height, width), (rows, cols), place, op)]
        kind = "max_pool" if op.type == "MaxPool" else "average_pool"
        return self.net.node(
            self.name(op), kind, [x], shape, rows=rows, cols=cols, **place.attributes()
        )

    def check_axes(self, op: Op) -> None:
        axes = op.attributes.get("axes")
        if axes is None:
            axes = [int(axis) for axis in self.needed(op, 1)]
        if sorted(axis % 4 for axis in axes) != [2, 3]:
            raise self.graph.fail(op, f"axes {list(axes)}, expected height and width")

    def zeros_around(self, op: Op) -> tuple[int, int, int, int]:
        pads = op.attributes.get("pads")
        if pads is None:
            pads = [int(size) for size in self.needed(op, 1)]
        value = self.constant(op, 2)
        filled = op.attributes.get("value", 0.0) if value is None else float(value.reshape(-1)[0])
        plain = len(op.inputs) < 4 and op.attributes.get("mode", b"constant") == b"constant"
        outer = len(pads) == 8 and not any(pads[i] for i in (0, 1, 4, 5))
        sides = [int(pads[i]) for i in (2, 3, 6, 7)] if outer else []
        if not plain or filled != 0 or not sides or min(sides) < 0 or max(sides) > _MOST_SIDE:
            raise self.graph.fail(
                op, f"pads {list(pads)}, expected zeros around the pictures, at most {_MOST_SIDE}"
            )
        return sides[0], sides[1], sides[2], sides[3]
