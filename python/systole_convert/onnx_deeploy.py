"""Deeploy's integer networks (pulp-platform/Deeploy @ bf64cfa), operator by operator.

A node stays a node, with its operator's name in snake case and its attributes. Weights are integers
that the file stores as float32; here they are of the narrowest integer type. `systole run` does not
compute these operators yet: its checker names the first one.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .errors import ConvertError
from .graph import Network, Source
from .onnx_graph import OnnxGraph, Op

_INTEGERS = (("I8", np.int8), ("I16", np.int16), ("I32", np.int32), ("I64", np.int64))
_LARGEST_EXACT = 1 << 53


def convert(graph: OnnxGraph, name: str) -> Network:
    net = Network(name, graph.path.name, {"family": "deeploy"})
    shapes = dict(graph.shapes)
    for value in graph.model.graph.value_info:
        shapes[value.name] = [d.dim_value for d in value.type.tensor_type.shape.dim]
    for value in (*graph.inputs, *(output for op in graph.ops for output in op.outputs)):
        if value not in shapes or not all(0 < size < 1 << 31 for size in shapes[value]):
            raise ConvertError(
                graph.path, f"value '{value}': its shape is open, expected that of every value"
            )
        if math.prod(shapes[value]) >= 1 << 40:
            raise ConvertError(graph.path, f"value '{value}': shape {shapes[value]} is too large")
    names = {value: net.input(value, "s32", shapes[value]) for value in graph.inputs}
    for op in graph.ops:
        if len(op.outputs) != 1:
            raise graph.fail(op, "expected one output")
        inputs = [_operand(graph, net, names, value) for value in op.inputs if value]
        attributes = {
            key: _attribute(graph, op, value) for key, value in sorted(op.attributes.items())
        }
        # A graph input may have the name of a node.
        place = f"{op.name}.output" if op.name in net.values else op.name
        made = net.node(place, _snake(op.type), inputs, shapes[op.outputs[0]], **attributes)
        net.values[made]["type"] = "s32"
        names[op.outputs[0]] = made
    net.outputs = [names[output] for output in graph.outputs]
    return net


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _operand(graph: OnnxGraph, net: Network, names: dict[str, str], value: str) -> str:
    if value in names:
        return names[value]
    source = graph.constants[value]
    array = np.asarray(source.make())
    whole = array.astype(np.int64) if np.isfinite(array).all() else None
    if whole is None or (np.abs(array) > _LARGEST_EXACT).any() or (whole != array).any():
        raise ConvertError(graph.path, f"tensor '{value}': expected whole numbers")
    low, high = (int(whole.min()), int(whole.max())) if whole.size else (0, 0)
    dtype, kind = next(
        (d, k) for d, k in _INTEGERS if np.iinfo(k).min <= low and high <= np.iinfo(k).max
    )
    names[value] = net.constant(
        value, Source(source.shape, lambda: source.make().astype(kind), dtype)
    )
    return names[value]


def _attribute(graph: OnnxGraph, op: Op, value: Any) -> Any:
    if isinstance(value, Source):
        if math.prod(value.shape) > 64:
            raise graph.fail(op, "an attribute of more than 64 elements")
        array = np.asarray(value.make()).reshape(-1)
        value = array.tolist() if array.size != 1 else array[0].item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_attribute(graph, op, entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise graph.fail(op, "an attribute that is not finite")
    return value
