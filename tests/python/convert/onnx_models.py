"""ONNX files of small networks, in the ways in which exporters write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


class Builder:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.last = ""  # of a builder that is not asked for its output

    def constant(self, value: Any, name: str = "") -> str:
        name = name or f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def f(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(
            helper.make_node(kind, list(inputs), names, f"{kind}_{len(self.nodes)}", **attributes)
        )
        return names[0] if outputs == 1 else names

    def input(self, name: str, kind: int, shape: list[int | str]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def model(self, output: str, rank: int = 3) -> onnx.ModelProto:
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "net", self.inputs, [out], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    # Layers.

    def linear(self, x: str, weight: Array, bias: Array | None, name: str = "") -> str:
        """`weight` [outputs, inputs], stored as PyTorch's exporter does: transposed."""
        y = self.op("MatMul", x, self.constant(np.ascontiguousarray(weight.T), name))
        return y if bias is None else self.op("Add", self.constant(bias), y)

    def norm(self, x: str, weight: Array, bias: Array, epsilon: float, fused: bool) -> str:
        if fused:
            return self.op(
                "LayerNormalization",
                x,
                self.constant(weight),
                self.constant(bias),
                axis=-1,
                epsilon=epsilon,
            )
        centred = self.op("Sub", x, self.op("ReduceMean", x, self.ints(-1)))
        variance = self.op("ReduceMean", self.op("Pow", centred, self.f(2)), self.ints(-1))
        ratio = self.op("Div", centred, self.op("Sqrt", self.op("Add", variance, self.f(epsilon))))
        return self.op("Add", self.op("Mul", ratio, self.constant(weight)), self.constant(bias))

    def gelu(self, x: str, form: str, fused: bool) -> str:
        if fused:
            return self.op("Gelu", x, approximate="tanh" if form == "tanh" else "none")
        if form == "erf":
            inner = self.op("Add", self.op("Erf", self.op("Div", x, self.f(2**0.5))), self.f(1))
            return self.op("Mul", self.op("Mul", x, inner), self.f(0.5))
        cube = self.op("Mul", self.op("Pow", x, self.f(3)), self.f(0.044715))
        inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.f((2 / np.pi) ** 0.5)))
        return self.op("Mul", self.op("Mul", self.f(0.5), x), self.op("Add", self.f(1), inner))

    def attention(self, q: str, k: str, v: str, width: int, heads: int, mask: Any) -> str:
        shape = self.ints(0, -1, heads, width // heads)
        q = self.op("Transpose", self.op("Reshape", q, shape), perm=[0, 2, 1, 3])
        k = self.op("Transpose", self.op("Reshape", k, shape), perm=[0, 2, 3, 1])
        v = self.op("Transpose", self.op("Reshape", v, shape), perm=[0, 2, 1, 3])
        scores = mask(self.op("Div", self.op("MatMul", q, k), self.f((width // heads) ** 0.5)))
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op(
            "Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, -1, width)
        )


def bert(
    t: dict[str, Array],
    heads: int,
    fused: bool = False,
    prefix: str = "bert.",
    epsilon: float = 1e-12,
) -> Builder:
    b = Builder()
    e = f"{prefix}embeddings."
    width = t[f"{e}LayerNorm.weight"].shape[0]
    ids = b.input("input_ids", TensorProto.INT64, ["batch", "tokens"])
    given = b.input("attention_mask", TensorProto.INT64, ["batch", "tokens"])
    types = b.input("token_type_ids", TensorProto.INT64, ["batch", "tokens"])
    hidden = b.op("Unsqueeze", b.op("Cast", given, to=TensorProto.FLOAT), b.ints(1, 2))
    bias = b.op("Mul", b.op("Sub", b.f(1), hidden), b.f(-1e9))
    count = b.op("Slice", b.op("Shape", ids), b.ints(1), b.ints(2), b.ints(0))
    numbers = b.op(
        "Slice",
        b.constant(np.arange(len(t[f"{e}position_embeddings.weight"]))[None]),
        b.ints(0),
        count,
        b.ints(1),
    )
    x = b.op("Add", b.op("Gather", b.constant(t[f"{e}word_embeddings.weight"]), ids),
             b.op("Gather", b.constant(t[f"{e}token_type_embeddings.weight"]), types))  # fmt: skip
    x = b.op("Add", x, b.op("Gather", b.constant(t[f"{e}position_embeddings.weight"]), numbers))

    def norm(name: str, x: str) -> str:
        return b.norm(x, t[f"{name}.weight"], t[f"{name}.bias"], epsilon, fused)

    def linear(name: str, x: str) -> str:
        return b.linear(x, t[f"{name}.weight"], t[f"{name}.bias"])

    x = norm(f"{e}LayerNorm", x)
    i = 0
    while f"{prefix}encoder.layer.{i}.output.dense.bias" in t:
        p = f"{prefix}encoder.layer.{i}."
        q, k, v = (linear(f"{p}attention.self.{part}", x) for part in ("query", "key", "value"))
        y = b.attention(q, k, v, width, heads, lambda s: b.op("Add", s, bias))
        x = norm(
            f"{p}attention.output.LayerNorm",
            b.op("Add", linear(f"{p}attention.output.dense", y), x),
        )
        y = b.gelu(linear(f"{p}intermediate.dense", x), "erf", fused)
        x = norm(f"{p}output.LayerNorm", b.op("Add", linear(f"{p}output.dense", y), x))
        i += 1
    b.nodes[-1].output[0] = "last_hidden_state"
    return b


def gpt2(t: dict[str, Array], heads: int, prefix: str = "transformer.") -> Builder:
    b = Builder()
    width = t[f"{prefix}ln_f.weight"].shape[0]
    ids = b.input("input_ids", TensorProto.INT64, ["batch", "tokens"])
    count = b.op("Slice", b.op("Shape", ids), b.ints(1), b.ints(2), b.ints(0))
    positions = t[f"{prefix}wpe.weight"]
    numbers = b.op(
        "Slice", b.constant(np.arange(len(positions))[None]), b.ints(0), count, b.ints(1)
    )
    x = b.op(
        "Add",
        b.op("Gather", b.constant(t[f"{prefix}wte.weight"]), ids),
        b.op("Gather", b.constant(positions), numbers),
    )
    seen = b.op(
        "ConstantOfShape",
        b.op("Concat", count, count, axis=0),
        value=numpy_helper.from_array(np.ones(1, np.float32)),
    )
    keep = b.op("Cast", b.op("Trilu", seen, upper=0), to=TensorProto.BOOL)

    def conv1d(name: str, x: str) -> str:
        weight = t[f"{name}.weight"]
        flat = b.op("Reshape", x, b.ints(-1, weight.shape[0]))
        y = b.op("Gemm", flat, b.constant(weight), b.constant(t[f"{name}.bias"]))
        return b.op("Reshape", y, b.op("Concat", b.ints(1), count, b.ints(weight.shape[1]), axis=0))

    i = 0
    while f"{prefix}h.{i}.ln_1.weight" in t:
        p = f"{prefix}h.{i}."
        y = b.norm(x, t[f"{p}ln_1.weight"], t[f"{p}ln_1.bias"], 1e-5, False)
        q, k, v = b.op(
            "Split", conv1d(f"{p}attn.c_attn", y), b.ints(width, width, width), outputs=3, axis=2
        )
        y = b.attention(q, k, v, width, heads, lambda s: b.op("Where", keep, s, b.f(-3e38)))
        x = b.op("Add", conv1d(f"{p}attn.c_proj", y), x)
        y = b.norm(x, t[f"{p}ln_2.weight"], t[f"{p}ln_2.bias"], 1e-5, False)
        y = conv1d(f"{p}mlp.c_proj", b.gelu(conv1d(f"{p}mlp.c_fc", y), "tanh", False))
        x = b.op("Add", x, y)
        i += 1
    x = b.norm(x, t[f"{prefix}ln_f.weight"], t[f"{prefix}ln_f.bias"], 1e-5, False)
    b.linear(x, t[f"{prefix}wte.weight"], None)
    b.nodes[-1].output[0] = "logits"
    return b


def vit(t: dict[str, Array], heads: int, side: int, prefix: str = "vit.") -> Builder:
    b = Builder()
    e = f"{prefix}embeddings."
    kernel = t[f"{e}patch_embeddings.projection.weight"]
    width, channels, patch, _ = kernel.shape
    x = b.input("pixel_values", TensorProto.FLOAT, ["batch", channels, side, side])
    y = b.op("Conv", x, b.constant(kernel), b.constant(t[f"{e}patch_embeddings.projection.bias"]),
             strides=[patch, patch], kernel_shape=[patch, patch])  # fmt: skip
    y = b.op("Transpose", b.op("Reshape", y, b.ints(0, width, -1)), perm=[0, 2, 1])
    token = b.op("Expand", b.constant(t[f"{e}cls_token"]), b.ints(1, 1, width))
    x = b.op("Add", b.op("Concat", token, y, axis=1), b.constant(t[f"{e}position_embeddings"]))

    def linear(name: str, x: str) -> str:
        return b.linear(x, t[f"{name}.weight"], t[f"{name}.bias"])

    i = 0
    while f"{prefix}encoder.layer.{i}.layernorm_before.weight" in t:
        p = f"{prefix}encoder.layer.{i}."
        y = b.norm(
            x, t[f"{p}layernorm_before.weight"], t[f"{p}layernorm_before.bias"], 1e-6, i == 0
        )
        q, k, v = (
            linear(f"{p}attention.attention.{part}", y) for part in ("query", "key", "value")
        )
        y = b.attention(q, k, v, width, heads, lambda s: s)
        x = b.op("Add", linear(f"{p}attention.output.dense", y), x)
        y = b.norm(x, t[f"{p}layernorm_after.weight"], t[f"{p}layernorm_after.bias"], 1e-6, i == 0)
        x = b.op(
            "Add",
            linear(f"{p}output.dense", b.gelu(linear(f"{p}intermediate.dense", y), "erf", i == 0)),
            x,
        )
        i += 1
    x = b.norm(x, t[f"{prefix}layernorm.weight"], t[f"{prefix}layernorm.bias"], 1e-6, True)
    x = b.op("Gather", x, b.constant(np.int64(0)), axis=1)
    b.op("Gemm", x, b.constant(t["classifier.weight"]), b.constant(t["classifier.bias"]), transB=1)
    b.nodes[-1].output[0] = "logits"
    return b


def save(path: Path, model: onnx.ModelProto) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def cnn(random: np.random.Generator, dense: str = "Gemm") -> Builder:
    """A small convolutional network, as exporters write it: norms of batches, a residual, zeros around a
    picture, depthwise, poolings, and a dense layer of what is flattened."""
    b = Builder()

    def conv(x: str, outputs: int, inputs: int, side: int, **attributes: Any) -> Any:
        weight = (
            random.standard_normal((outputs, inputs, side, side)) / (inputs * side * side) ** 0.5
        )
        bias = 0.1 * random.standard_normal(outputs)
        return b.op(
            "Conv",
            x,
            b.constant(weight.astype(np.float32)),
            b.constant(bias.astype(np.float32)),
            kernel_shape=[side, side],
            **attributes,
        )

    def batch_norm(x: str, channels: int) -> Any:
        parts = [
            random.uniform(0.5, 1.5, channels),
            0.1 * random.standard_normal(channels),
            0.1 * random.standard_normal(channels),
            random.uniform(0.5, 1.5, channels),
        ]
        constants = [b.constant(part.astype(np.float32)) for part in parts]
        return b.op("BatchNormalization", x, *constants, epsilon=1e-3)

    x = b.input("input", TensorProto.FLOAT, [1, 3, 12, 12])
    x = b.op("Relu", batch_norm(conv(x, 8, 3, 3, pads=[1] * 4), 8))
    x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    branch = b.op("Relu", conv(b.op("Pad", x, b.ints(0, 0, 1, 1, 0, 0, 1, 1)), 8, 1, 3, group=8))
    x = b.op("Relu", b.op("Add", conv(branch, 8, 8, 1), x))
    x = batch_norm(b.op("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1]), 8)
    if dense == "mean":
        x = b.op("Flatten", b.op("GlobalAveragePool", x))
        pixels = 1
    else:
        x = b.op("Reshape", x, b.ints(1, -1))
        pixels = 16
    weight = (random.standard_normal((10, 8 * pixels)) / (8 * pixels) ** 0.5).astype(np.float32)
    bias = random.standard_normal(10).astype(np.float32)
    if dense == "MatMul":
        b.last = b.linear(x, weight, bias)
    else:
        b.last = b.op("Gemm", x, b.constant(weight), b.constant(bias), transB=1)
    return b


def uneven_cnn(random: np.random.Generator) -> Builder:
    """Padding that differs by side, as exporters from TensorFlow write it, and quotients: by a constant after
    a convolution, by one for each channel alone, and of two results."""
    b = Builder()

    def conv(x: str, outputs: int, inputs: int, rows: int, cols: int, **attributes: Any) -> Any:
        size = inputs * rows * cols
        weight = random.standard_normal((outputs, inputs, rows, cols)) / size**0.5
        return b.op(
            "Conv",
            x,
            b.constant(weight.astype(np.float32)),
            b.constant((0.1 * random.standard_normal(outputs)).astype(np.float32)),
            kernel_shape=[rows, cols],
            **attributes,
        )

    def constant(*shape: int) -> Any:
        return b.constant(random.uniform(0.5, 2, shape).astype(np.float32))

    x = b.input("input", TensorProto.FLOAT, [1, 3, 12, 12])
    x = b.op("Relu", conv(x, 8, 3, 3, 3, auto_pad="SAME_UPPER", strides=[2, 2]))
    x = b.op("Div", conv(x, 8, 8, 2, 4, auto_pad="SAME_LOWER"), constant(1))
    x = b.op("Pad", b.op("Relu", x), b.ints(0, 0, 0, 1, 0, 0, 2, 0))
    x = b.op(
        "Div", b.op("MaxPool", x, kernel_shape=[2, 3], pads=[1, 0, 0, 2]), constant(1, 8, 1, 1)
    )
    small = b.constant(np.full((8, 8, 2, 1), 0.02, np.float32))
    two = b.constant(np.full(8, 2, np.float32))
    x = b.op(
        "Div",
        conv(x, 8, 8, 3, 3, pads=[0, 2, 1, 0]),
        b.op("Conv", x, small, two, pads=[0, 0, 0, 0]),
    )
    x = b.op("AveragePool", x, kernel_shape=[3, 3], pads=[0, 1, 2, 0], count_include_pad=1)
    b.last = b.op("Flatten", b.op("GlobalAveragePool", conv(x, 10, 8, 1, 1)))
    return b
