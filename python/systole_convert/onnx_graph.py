"""An ONNX file, checked: its nodes in order, its constants, and what is between them."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx import TensorProto, helper, numpy_helper

from .errors import ConvertError
from .graph import Source

MAX_NODES = 1 << 18
_MAX_BYTES = (1 << 31) - 1  # of a protobuf message

_DTYPES: dict[int, str] = {
    TensorProto.FLOAT: "F32",
    TensorProto.FLOAT16: "F16",
    TensorProto.DOUBLE: "F64",
    TensorProto.INT8: "I8",
    TensorProto.UINT8: "U8",
    TensorProto.INT32: "I32",
    TensorProto.INT64: "I64",
    TensorProto.BOOL: "BOOL",
}
_NUMPY: dict[int, str] = {
    TensorProto.FLOAT: "<f4",
    TensorProto.FLOAT16: "<f2",
    TensorProto.DOUBLE: "<f8",
    TensorProto.INT8: "<i1",
    TensorProto.UINT8: "<u1",
    TensorProto.INT32: "<i4",
    TensorProto.INT64: "<i8",
    TensorProto.BOOL: "<u1",
}

#: What networks that are known are made of; `If`, `Loop` and their like are not.
STANDARD = frozenset(
    [
        "Abs",
        "Add",
        "And",
        "AveragePool",
        "BatchNormalization",
        "Cast",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Conv",
        "DequantizeLinear",
        "Div",
        "Dropout",
        "Equal",
        "Erf",
        "Expand",
        "Flatten",
        "Gather",
        "GatherND",
        "Gelu",
        "Gemm",
        "GlobalAveragePool",
        "Greater",
        "GreaterOrEqual",
        "Identity",
        "IsNaN",
        "LayerNormalization",
        "Less",
        "LessOrEqual",
        "MatMul",
        "Max",
        "MaxPool",
        "Min",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pad",
        "Pow",
        "QuantizeLinear",
        "Range",
        "Reciprocal",
        "ReduceMean",
        "ReduceSum",
        "Relu",
        "Reshape",
        "ScatterND",
        "Shape",
        "Slice",
        "Softmax",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Tanh",
        "Tile",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
    ]
)
#: Deeploy's integer operators (pulp-platform/Deeploy @ bf64cfa, DeeployTest/Tests/Models).
DEEPLOY = frozenset(
    [
        "RequantShift",
        "iRMSNorm",
        "iLayerNorm",
        "iSoftmax",
        "ITAMax",
        "ITAPartialMax",
        "iGELU",
        "iHardswish",
        "TrueIntegerDiv",
        "IntegerMean",
    ]
)


@dataclass(frozen=True)
class Op:
    """A node of the file."""

    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class OnnxGraph:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = _load(path)
        graph = self.model.graph
        if self.model.functions:
            raise ConvertError(
                path, f"function '{self.model.functions[0].name}': functions are not supported"
            )
        if len(graph.node) > MAX_NODES:
            raise ConvertError(path, f"{len(graph.node)} nodes, expected at most {MAX_NODES}")
        if graph.sparse_initializer:
            raise ConvertError(path, "sparse initialisers are not supported")
        self.constants: dict[str, Source] = {}
        for tensor in graph.initializer:
            if not tensor.name or tensor.name in self.constants:
                raise ConvertError(path, f"initialiser '{tensor.name}': no name, or there twice")
            self.constants[tensor.name] = self._constant(tensor)
        self.inputs = [value.name for value in graph.input if value.name not in self.constants]
        self.outputs = [value.name for value in graph.output]
        if not self.outputs:
            raise ConvertError(path, "no outputs")
        self.shapes = {value.name: self._shape(value) for value in (*graph.input, *graph.output)}
        self.ops = self._ordered(self._ops())
        self.makers = {output: op for op in self.ops for output in op.outputs}
        for output in self.outputs:
            if output not in self.makers:
                raise ConvertError(path, f"output '{output}': no node makes it")

    def fail(self, op: Op, what: str) -> ConvertError:
        return ConvertError(self.path, f"node '{op.name}' ({op.type}): {what}")

    def _shape(self, value: Any) -> list[int]:
        """0 for what is open."""
        dims = value.type.tensor_type.shape.dim
        shape = [d.dim_value for d in dims]
        if (
            any(not 0 <= size < 1 << 31 for size in shape)
            or math.prod(s or 1 for s in shape) >= 1 << 40
        ):
            raise ConvertError(
                self.path,
                f"value '{value.name}': shape {shape}, expected sizes that a machine can hold",
            )
        return shape

    def _constant(self, tensor: TensorProto) -> Source:
        place = f"{self.path}: tensor '{tensor.name}'"
        if tensor.data_type not in _DTYPES:
            names = [TensorProto.DataType.Name(kind) for kind in _DTYPES]
            raise ConvertError(place, f"type {tensor.data_type}, expected {', '.join(names)}")
        shape = tuple(tensor.dims)
        dtype = np.dtype(_NUMPY[tensor.data_type])
        if len(shape) > 8 or any(size < 0 for size in shape):
            raise ConvertError(place, f"shape {list(shape)}")
        need = math.prod(shape) * dtype.itemsize
        name = _DTYPES[tensor.data_type]
        if tensor.data_location == TensorProto.EXTERNAL:
            return Source(shape, _external(self.path, tensor, need, dtype, shape), name)
        if tensor.raw_data:
            if len(tensor.raw_data) != need:
                raise ConvertError(
                    place, f"{len(tensor.raw_data)} bytes, but shape {list(shape)} has {need}"
                )
            return Source(shape, lambda: np.frombuffer(tensor.raw_data, dtype).reshape(shape), name)
        field = getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type))
        if len(field) != math.prod(shape):
            raise ConvertError(
                place, f"{len(field)} elements, but shape {list(shape)} has {math.prod(shape)}"
            )
        return Source(shape, lambda: numpy_helper.to_array(tensor), name)

    def _ops(self) -> list[Op]:
        ops = []
        names: set[str] = set()
        for index, node in enumerate(self.model.graph.node):
            name = node.name or f"{node.op_type}_{index}"
            if name in names:
                raise ConvertError(self.path, f"node '{name}': another node has this name")
            names.add(name)
            if node.op_type not in STANDARD and node.op_type not in DEEPLOY:
                known = ", ".join(sorted(STANDARD))
                raise ConvertError(
                    self.path,
                    f"node '{name}': operator {node.op_type:.40} is not supported, expected {known}",
                )
            attributes = {}
            for attribute in node.attribute:
                if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                    raise ConvertError(self.path, f"node '{name}': contains a subgraph")
                if attribute.name in attributes:
                    raise ConvertError(
                        self.path, f"node '{name}': attribute '{attribute.name}' occurs twice"
                    )
                if attribute.type == onnx.AttributeProto.TENSOR:
                    attributes[attribute.name] = self._constant(attribute.t)
                else:
                    attributes[attribute.name] = helper.get_attribute_value(attribute)
            op = Op(
                name,
                node.op_type,
                tuple(node.input),
                tuple(o for o in node.output if o),
                attributes,
            )
            if op.type == "Constant":
                self._add_constant(op)
            else:
                ops.append(op)
        return ops

    def _add_constant(self, op: Op) -> None:
        found = op.attributes
        if len(op.outputs) != 1 or op.outputs[0] in self.constants:
            raise self.fail(op, "expected one output with a unique name")
        if "value" in found and isinstance(found["value"], Source):
            self.constants[op.outputs[0]] = found["value"]
            return
        for key, dtype, name in (("value_int", "<i8", "I64"), ("value_ints", "<i8", "I64"),
                                 ("value_float", "<f4", "F32"), ("value_floats", "<f4", "F32")):  # fmt: skip
            if key in found:
                array = np.array(found[key], dtype)
                self.constants[op.outputs[0]] = Source(
                    array.shape, partial(np.asarray, array), name
                )
                return
        raise self.fail(op, "expected a tensor or numbers")

    def _ordered(self, ops: list[Op]) -> list[Op]:
        """Each after those whose results it reads."""
        makers: dict[str, int] = {}
        known = set(self.inputs) | set(self.constants) | {""}
        for index, op in enumerate(ops):
            for output in op.outputs:
                if output in makers or output in known:
                    raise self.fail(op, f"output '{output}': another value has this name")
                makers[output] = index
        waits = []
        readers: list[list[int]] = [[] for _ in ops]
        for index, op in enumerate(ops):
            for name in op.inputs:
                if name not in makers and name not in known:
                    raise self.fail(
                        op,
                        f"input '{name}': missing: no input, no initialiser and no output of a node",
                    )
            before = {makers[name] for name in op.inputs if name in makers}
            waits.append(len(before))
            for maker in before:
                readers[maker].append(index)
        order = [index for index, count in enumerate(waits) if count == 0]
        for index in order:
            for reader in readers[index]:
                waits[reader] -= 1
                if waits[reader] == 0:
                    order.append(reader)
        if len(order) != len(ops):
            stuck = next(op for op, count in zip(ops, waits, strict=True) if count)
            raise self.fail(stuck, "its inputs depend on its own output: a cycle")
        return [ops[index] for index in order]


def _load(path: Path) -> onnx.ModelProto:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConvertError(
                path, f"more than {_MAX_BYTES} bytes, expected the weights beside it"
            )
        model = onnx.ModelProto()
        model.ParseFromString(path.read_bytes())
    except OSError as error:
        raise ConvertError(path, error.strerror or "cannot be read") from None
    except (DecodeError, ValueError) as error:
        raise ConvertError(path, f"no ONNX file: {error}") from None
    if not model.graph.node:
        raise ConvertError(path, "no ONNX file, or a graph without nodes")
    for text in _texts_of(model):
        if not isinstance(text, str):
            raise ConvertError(path, f"found {text!r:.60}, expected texts in UTF-8")
    return model


def _texts_of(message: Message) -> Iterator[str | bytes]:
    """All texts of a message and of those in it; of what is no UTF-8, the library gives the bytes."""
    for field, value in message.ListFields():
        single = isinstance(value, (str, bytes, Message))
        if field.type == field.TYPE_STRING:
            yield from [value] if single else value
        elif field.type == field.TYPE_MESSAGE:
            for part in [value] if single else value:
                yield from _texts_of(part)


def _external(
    path: Path, tensor: TensorProto, need: int, dtype: np.dtype, shape: tuple[int, ...]
) -> Any:
    """Values in another file, which has to be in the same folder."""
    place = f"{path}: tensor '{tensor.name}'"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    target = (folder / location).resolve()
    if not location or Path(location).is_absolute() or folder not in target.parents:
        raise ConvertError(place, f"external data '{location}': outside of the folder of the file")
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(need)))
    except ValueError:
        raise ConvertError(
            place, "external data: offset and length: expected whole numbers"
        ) from None
    if not target.is_file():
        raise ConvertError(place, f"external data '{location}': missing")
    if length != need or offset < 0 or offset + need > target.stat().st_size:
        raise ConvertError(
            place, f"external data '{location}': {need} bytes at {offset} are not there: cut off?"
        )

    def make() -> np.ndarray:
        with target.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype, math.prod(shape), offset).reshape(shape)

    return make
