"""Convolutional networks of ONNX files: as graphs, as integers, and on a machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="NOT TESTED: the library onnx is not installed")

from onnx import helper  # noqa: E402

from systole_convert import tensor_file  # noqa: E402
from systole_convert.__main__ import read  # noqa: E402
from systole_convert.errors import ConvertError  # noqa: E402
from systole_convert.tensor_file import OutTensor  # noqa: E402

from . import onnx_models  # noqa: E402
from .test_hugging_face import run  # noqa: E402


def saved(path: Path, dense: str = "Gemm") -> Path:
    builder = onnx_models.cnn(np.random.default_rng(3), dense)
    return onnx_models.save(path, builder.model(builder.last, 2))


@pytest.mark.parametrize("dense", ["Gemm", "MatMul", "mean"])
def test_is_the_file_s_network(dense: str, tmp_path: Path) -> None:
    """read() computes both and refuses a difference."""
    net = read(saved(tmp_path / "cnn.onnx", dense), "cnn")
    ops = [node.op for node in net.nodes]
    first = ["normalise", "convolution", "relu", "max_pool", "pad", "convolution", "relu"]
    assert ops[:7] == first, "a norm of batches after a convolution is a part of it"
    assert ops[7:11] == ["convolution", "add", "relu", "average_pool"]
    depthwise = net.nodes[-2 if dense != "mean" else -3]
    assert depthwise.op == "convolution" and depthwise.attributes["groups"] == 8
    assert net.values[net.outputs[0]]["shape"] == [10, 1, 1]


def test_pads_each_side_as_the_file_does(tmp_path: Path) -> None:
    builder = onnx_models.uneven_cnn(np.random.default_rng(4))
    net = read(onnx_models.save(tmp_path / "cnn.onnx", builder.model(builder.last, 2)), "cnn")
    ops = [node.op for node in net.nodes]
    assert ops == [
        *[
            "normalise",
            "convolution",
            "relu",
            "convolution",
            "relu",
            "pad",
            "max_pool",
            "convolution",
        ],
        *["convolution", "convolution", "divide", "average_pool", "convolution", "average_pool"],
    ], "a quotient by a constant is a convolution, or a part of the one before it"
    padding = [node.attributes.get("padding") for node in net.nodes]
    assert padding[1] == [0, 0, 1, 1], (
        "12 pixels, every second one, three wide: one more, at the end"
    )
    assert padding[3] == [1, 2, 0, 1], "lower: the odd one comes first"
    assert padding[5:7] == [[0, 1, 2, 0], [1, 0, 0, 2]]


@pytest.mark.parametrize("uneven", [False, True])
def test_integers_run_on_a_machine(uneven: bool, tmp_path: Path, program: str) -> None:
    net, whole = str(tmp_path / "net.safetensors"), str(tmp_path / "net.int8.safetensors")
    if uneven:
        builder = onnx_models.uneven_cnn(np.random.default_rng(4))
        onnx_models.save(tmp_path / "cnn.onnx", builder.model(builder.last, 2))
    else:
        saved(tmp_path / "cnn.onnx")
    run(program, "convert", str(tmp_path / "cnn.onnx"), net)
    random = np.random.default_rng(5)
    pictures = random.integers(0, 256, (24, 3, 12, 12), np.uint8)
    # The labels are the file's own classes, so the accuracy says how often the integers agree.
    classes = np.array([np.argmax(reference(tmp_path / "cnn.onnx", p)) for p in pictures])
    data = tmp_path / "data.safetensors"
    tensor_file.write(
        data,
        {
            "images": OutTensor("U8", pictures.shape, lambda: pictures),
            "labels": OutTensor("U8", classes.shape, lambda: classes.astype(np.uint8)),
        },
        {},
    )
    run(program, "quantise", net, "-c", str(data), "-o", whole)
    for machine in ("transformer", "gemmini"):
        report = run(
            program, "run", "-m", machine, "--set", "postop.divider=1", "--model", whole, "-i", str(data), "-n", "3",
            "--check", "--json",
        )  # fmt: skip
        assert '"mismatched_bytes": 0' in report
        assert '"checked_bytes": 0' not in report
    shown = run(
        program, "model", whole, "--accuracy", "--checkpoint", net, "-i", str(data), "--json"
    )
    assert '"fp32_accuracy": 1.0' in shown
    integer = float(shown.split('"integer_accuracy": ')[1].split(",")[0])
    assert integer > 0.8


def reference(path: Path, picture: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    normal = (picture[None].astype(np.float32) / 255 - 0.5) / 0.5
    evaluator: Any = ReferenceEvaluator(onnx.load(str(path)))
    return evaluator.run(None, {"input": normal})[0][0]


def attribute(op: str, **values: Any) -> Callable[[Any], None]:
    """Changes attributes of the first node of that kind."""

    def change(model: Any) -> None:
        node = next(n for n in model.graph.node if n.op_type == op)
        kept = [a for a in node.attribute if a.name not in values]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in values.items())

    return change


def kind(op: str, other: str) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        next(n for n in model.graph.node if n.op_type == op).op_type = other

    return change


def shape(*sizes: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        dims = model.graph.input[0].type.tensor_type.shape.dim
        for dim, size in zip(dims, sizes, strict=True):
            dim.dim_value = size

    return change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (attribute("Conv", dilations=[2, 2]), "dilations [2, 2], expected 1"),
        (
            attribute("Conv", pads=[0, -1, 1, 1]),
            "expected [top, left, bottom, right] from 0 to 255",
        ),
        (
            attribute("Conv", pads=[0, 0, 256, 1]),
            "expected [top, left, bottom, right] from 0 to 255",
        ),
        (attribute("Conv", pads=[1, 1]), "expected [top, left, bottom, right] from 0 to 255"),
        (attribute("Conv", strides=[1, 2]), "expected the same in both directions"),
        (attribute("Conv", auto_pad="SAME"), "auto_pad SAME, expected NOTSET, VALID, SAME_UPPER"),
        (attribute("MaxPool", pads=[0, 2, 0, 0]), "padding [0, 2, 0, 0] of a window [2, 2]"),
        (attribute("MaxPool", ceil_mode=1), "expected a kernel of two sides, floors"),
        (attribute("AveragePool", pads=[1] * 4), "expected count_include_pad 1"),
        (attribute("Pad", mode="reflect"), "expected zeros around the pictures"),
        (attribute("Gemm", transA=1), "transA, alpha or beta"),
        (attribute("BatchNormalization", epsilon=9.0), ""),
        (kind("Relu", "Tanh"), "not supported between convolutions, expected Add, AveragePool"),
        (shape(1, 3, 12, 16), "expected [1, channels, side, side]"),
        (shape(2, 3, 12, 12), "expected [1, channels, side, side]"),
        (shape(1, 4, 12, 12), "weights for 3 channels, found 4"),
    ],
)
def test_refuses_in_one_line(change: Callable[[Any], None], error: str, tmp_path: Path) -> None:
    builder = onnx_models.cnn(np.random.default_rng(3))
    model = builder.model(builder.last, 2)
    change(model)
    path = onnx_models.save(tmp_path / "cnn.onnx", model)
    if not error:
        read(path, "cnn")
        return
    with pytest.raises(ConvertError) as raised:
        read(path, "cnn")
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)
