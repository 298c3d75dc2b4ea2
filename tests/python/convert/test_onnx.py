from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import folders

onnx = pytest.importorskip("onnx", reason="NOT TESTED: the library onnx is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from systole_convert import tensor_file  # noqa: E402
from systole_convert.__main__ import read  # noqa: E402
from systole_convert.graph import Network  # noqa: E402
from systole_convert.tensor_file import OutTensor, TensorFile  # noqa: E402

from . import onnx_models  # noqa: E402
from .test_hugging_face import integers, run  # noqa: E402


def bert_model(fused: bool = False) -> Any:
    return onnx_models.bert(folders.bert_tensors(), folders.HEADS, fused).model("last_hidden_state")


def same(a: Network, b: Network) -> None:
    """The same graph with the same constants."""
    assert [(n.name, n.op, n.inputs, n.attributes) for n in a.nodes] == [
        (n.name, n.op, n.inputs, n.attributes) for n in b.nodes
    ]
    assert a.constants.keys() == b.constants.keys()
    for name, source in a.constants.items():
        assert np.array_equal(source.reals(), b.constants[name].reals()), name


@pytest.mark.parametrize("fused", [False, True])
def test_bert_is_that_of_its_folder(fused: bool, tmp_path: Path) -> None:
    net = read(onnx_models.save(tmp_path / "m.onnx", bert_model(fused)), "m")
    same(
        net,
        read(folders.folder(tmp_path / "hf", folders.bert_config(), folders.bert_tensors()), "m"),
    )


def test_gpt2_is_that_of_its_folder(tmp_path: Path) -> None:
    model = onnx_models.gpt2(folders.gpt2_tensors(), folders.HEADS).model("logits")
    net = read(onnx_models.save(tmp_path / "m.onnx", model), "m")
    other = read(
        folders.folder(tmp_path / "hf", folders.gpt2_config(), folders.gpt2_tensors()), "m"
    )
    assert net.nodes[-1].inputs[1] == "logits.weight"  # the file has the table twice
    net.constants.pop("logits.weight")
    net.nodes[-1].inputs[1] = "word.table"
    same(net, other)
    assert all(node.attributes["causal"] for node in net.nodes if node.op == "attention")


def test_vit_is_that_of_its_folder(tmp_path: Path) -> None:
    model = onnx_models.vit(folders.vit_tensors(), folders.HEADS, 8).model("logits", 2)
    net = read(onnx_models.save(tmp_path / "m.onnx", model), "m")
    same(
        net, read(folders.folder(tmp_path / "hf", folders.vit_config(), folders.vit_tensors()), "m")
    )


def test_integers_are_those_of_the_folder(tmp_path: Path, program: str) -> None:
    """The same in every integer; SYSTOLE_MINILM names a folder with all-MiniLM-L6-v2 to do it with."""
    source = Path(os.environ.get("SYSTOLE_MINILM", tmp_path / "hf"))
    if "SYSTOLE_MINILM" in os.environ:
        file = TensorFile(source / "model.safetensors")
        tensors = {name: file.codes(name) for name in file.entries}
        builder, words = onnx_models.bert(tensors, 12, prefix=""), 30522
    else:
        folders.folder(source, folders.bert_config(), folders.bert_tensors())
        builder, words = onnx_models.bert(folders.bert_tensors(), folders.HEADS), folders.WORDS
    calibration = tmp_path / "c.safetensors"
    folders.save(calibration, {"input_ids": np.random.default_rng(2).integers(0, words, (4, 9))})
    path = onnx_models.save(tmp_path / "m.onnx", builder.model("last_hidden_state"))
    read(path, "m").write(tmp_path / "n.safetensors")
    a, b = tmp_path / "a.int8.safetensors", tmp_path / "b.int8.safetensors"
    run(program, "quantise", source / "model.safetensors", "-c", calibration, "-o", a)
    run(program, "quantise", tmp_path / "n.safetensors", "-c", calibration, "-o", b)
    assert integers(a) == integers(b)


@pytest.mark.parametrize("per_channel", [False, True])
def test_qdq_as_onnxruntime_makes_it(per_channel: bool, tmp_path: Path, program: str) -> None:
    pytest.importorskip(
        "onnxruntime", reason="NOT TESTED: the library onnxruntime is not installed"
    )
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            ids = np.random.default_rng(4).integers(0, folders.WORDS, (1, 7))
            self.left = [
                {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": ids % 2}
            ]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    path = onnx_models.save(tmp_path / "m.onnx", bert_model())
    quantize_static(path, tmp_path / "q.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])  # fmt: skip
    model = onnx.load(tmp_path / "q.onnx")
    assert sum(node.op_type == "QuantizeLinear" for node in model.graph.node) > 10
    net = read(tmp_path / "q.onnx", "q")
    weights = [n for n, s in net.constants.items() if s.dtype == "I8"]
    assert len(weights) == 6 * folders.LAYERS
    key = net.constants["blocks.0.mlp.fc1.weight"]
    plain = read(path, "m").constants["blocks.0.mlp.fc1.weight"].reals()
    step = np.abs(plain).max(1 if per_channel else None, keepdims=True) / 127
    assert (np.abs(key.reals() - plain) <= 0.51 * step + 1e-6).all()
    net.write(tmp_path / "n.safetensors")
    assert "linear" in run(program, "model", tmp_path / "n.safetensors")
    ids = tmp_path / "c.safetensors"
    folders.save(ids, {"input_ids": np.random.default_rng(2).integers(0, folders.WORDS, (4, 9))})
    run(
        program,
        "quantise",
        tmp_path / "n.safetensors",
        "-c",
        ids,
        "-o",
        tmp_path / "n.int8.safetensors",
    )


def test_weights_beside_the_file(tmp_path: Path) -> None:
    model = bert_model()
    onnx.save_model(
        model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=64
    )
    assert (tmp_path / "m.data").stat().st_size > 1000
    same(
        read(tmp_path / "m.onnx", "m"),
        read(onnx_models.save(tmp_path / "n.onnx", bert_model()), "m"),
    )


def test_other_networks_are_found_out(tmp_path: Path, refusal: Any) -> None:
    """Graphs that look like a Transformer from their main operators alone."""

    def scaled_residual(b: Any) -> None:
        add = next(
            n
            for n in b.nodes
            if n.op_type == "Add"
            and n.input[1].startswith("v")
            and n.input[0].startswith("v")
            and b.nodes.index(n) > 40
        )
        add.op_type = "Sub"

    def swapped_heads(b: Any) -> None:
        for node in [
            n
            for n in b.nodes
            if n.op_type == "Transpose" and list(n.attribute[0].ints) == [0, 2, 1, 3]
        ][-1:]:
            node.attribute[0].ints[:] = [0, 3, 1, 2]

    def other_root(b: Any) -> None:
        next(n for n in b.nodes if n.op_type == "Softmax").attribute[0].i = -2

    def shifted(b: Any) -> None:
        name = next(n for n in b.nodes if n.op_type == "Slice" and n.input[0] in b.constants).input[
            0
        ]
        b.constants[name] = b.constants[name][:, ::-1].copy()

    def other_gelu(b: Any) -> None:
        erf = next(n for n in b.nodes if n.op_type == "Erf")
        divided = next(n for n in b.nodes if n.output[0] == erf.input[0])
        b.constants[divided.input[1]] = np.float32(1.7)

    for number, spoil in enumerate(
        (scaled_residual, swapped_heads, other_root, shifted, other_gelu)
    ):
        builder = onnx_models.bert(folders.bert_tensors(), folders.HEADS)
        spoil(builder)
        text = refusal(
            onnx_models.save(tmp_path / f"{number}.onnx", builder.model("last_hidden_state"))
        )
        assert (
            spoil is scaled_residual
            or "compute something else" in text
            or "cannot be computed" in text
        )


def nodes(change: Any) -> Any:
    def spoil(model: Any) -> None:
        change(model.graph.node)

    return spoil


def first(model: Any, kind: str) -> Any:
    return next(node for node in model.graph.node if node.op_type == kind)


def weight(model: Any) -> Any:
    return next(
        t for t in model.graph.initializer if list(t.dims) == [folders.WIDTH, folders.HIDDEN]
    )


def external(location: str, **more: str) -> Any:
    def spoil(model: Any) -> None:
        tensor = weight(model)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            tensor.external_data.add(key=key, value=value)

    return spoil


def cycle(model: Any) -> None:
    first(model, "Erf").input[0] = first(model, "Erf").output[0]


def long_cycle(model: Any) -> None:
    softmax = [n for n in model.graph.node if n.op_type == "Softmax"]
    first(model, "Gather").input[1] = softmax[-1].output[0]


def if_node(model: Any) -> None:
    body = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "g", [], [])
    model.graph.node.append(
        helper.make_node("If", ["x"], ["y"], "branch", then_branch=body, else_branch=body)
    )


def function(model: Any) -> None:
    made = helper.make_function(
        "d",
        "F",
        ["a"],
        ["b"],
        [helper.make_node("Identity", ["a"], ["b"])],
        [helper.make_opsetid("", 20)],
    )
    model.functions.append(made)


def huge_expand(side: int) -> Any:
    """A mask of side x side elements."""

    def spoil(model: Any) -> None:
        add = next(n for n in model.graph.node if n.op_type == "Sub")
        model.graph.initializer.append(
            numpy_helper.from_array(np.array([side, side], np.int64), "huge")
        )
        model.graph.node.append(
            helper.make_node("Expand", [add.input[0], "huge"], ["wide"], "widen")
        )
        add.input[0] = "wide"

    return spoil


HOSTILE: list[tuple[str, Any, str]] = [
    ("unknown operator", nodes(lambda n: setattr(n[9], "op_type", "Frobnicate")), "operator Frobnicate is not supported, expected Abs, Add"),
    ("control characters", nodes(lambda n: setattr(n[9], "op_type", "F\n\x1b[2J")), "is not supported"),
    ("a branch", if_node, "node 'branch': operator If is not supported"),
    ("a function", function, "function 'F': functions are not supported"),
    ("missing input", nodes(lambda n: n[20].input.__setitem__(0, "nothing")), "input 'nothing': missing: no input, no initialiser"),
    ("cycle", cycle, "its inputs depend on its own output: a cycle"),
    ("long cycle", long_cycle, "its inputs depend on its own output: a cycle"),
    ("output twice", nodes(lambda n: n[20].output.__setitem__(0, n[19].output[0])), "another value has this name"),
    ("output is input", nodes(lambda n: n[20].output.__setitem__(0, "input_ids")), "another value has this name"),
    ("name twice", nodes(lambda n: setattr(n[20], "name", n[19].name)), "another node has this name"),
    ("no outputs", lambda m: m.graph.ClearField("output"), "no outputs"),
    ("output of none", lambda m: setattr(m.graph.output[0], "name", "nothing"), "output 'nothing': no node makes it"),
    ("no nodes", lambda m: m.graph.ClearField("node"), "a graph without nodes"),
    ("initialiser twice", lambda m: m.graph.initializer.append(m.graph.initializer[0]), "no name, or there twice"),
    ("initialiser without name", lambda m: setattr(m.graph.initializer[0], "name", ""), "no name, or there twice"),
    ("unknown type", lambda m: setattr(weight(m), "data_type", TensorProto.COMPLEX128), "type 15, expected FLOAT"),
    ("type 99", lambda m: setattr(weight(m), "data_type", 99), "type 99, expected FLOAT"),
    ("cut values", lambda m: setattr(weight(m), "raw_data", weight(m).raw_data[:-4]), "1532 bytes, but shape [16, 24] has 1536"),
    ("huge shape", lambda m: weight(m).dims.__setitem__(0, 1 << 50), "but shape [1125899906842624, 24] has"),
    ("negative shape", lambda m: weight(m).dims.__setitem__(0, -16), "shape [-16, 24]"),
    ("another shape", lambda m: weight(m).dims.__setitem__(slice(None), [24, 16]), "m.onnx: "),
    ("no values", lambda m: weight(m).ClearField("raw_data"), "0 elements, but shape [16, 24] has 384"),
    ("huge input", lambda m: [d.__setattr__("dim_value", 1 << 40) for d in m.graph.input[0].type.tensor_type.shape.dim], "expected sizes that a machine can hold"),
    ("external outside", external("../secret"), "external data '../secret': outside of the folder"),
    ("external absolute", external("/etc/passwd"), "external data '/etc/passwd': outside of the folder"),
    ("external without name", external(""), "external data '': outside of the folder"),
    ("external missing", external("no.data"), "external data 'no.data': missing"),
    ("external cut", external("cut.data"), "1536 bytes at 0 are not there: cut off?"),
    ("external offset", external("cut.data", offset="99999999999"), "are not there: cut off?"),
    ("external negative", external("cut.data", offset="-8"), "are not there: cut off?"),
    ("external words", external("cut.data", offset="0x8"), "offset and length: expected whole numbers"),
    ("external link", external("link.data"), "outside of the folder"),
    ("NaN weights", lambda m: setattr(weight(m), "raw_data", np.full((16, 24), np.nan, np.float32).tobytes()), "m.onnx: "),
    ("huge mask", huge_expand(1 << 20), "takes more memory than such a network needs"),
    ("large mask", huge_expand(1 << 14), "takes more memory than such a network needs"),
    ("attribute twice", lambda m: first(m, "Softmax").attribute.append(first(m, "Softmax").attribute[0]), "attribute 'axis' occurs twice"),
    ("sparse", lambda m: m.graph.sparse_initializer.add(), "sparse initialisers are not supported"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "hint"), [entry[1:] for entry in HOSTILE], ids=[entry[0] for entry in HOSTILE]
)
def test_hostile_files(spoil: Any, hint: str, tmp_path: Path, refusal: Any) -> None:
    model = bert_model()
    spoil(model)
    path = onnx_models.save(tmp_path / "in" / "m.onnx", model)
    (path.parent / "cut.data").write_bytes(b"\0" * 100)
    (tmp_path / "secret").write_bytes(b"\0" * 9999)
    (path.parent / "link.data").symlink_to(tmp_path / "secret")
    assert hint in refusal(path)


def test_hostile_bytes(tmp_path: Path, refusal: Any) -> None:
    whole = bert_model().SerializeToString()
    for number, data in enumerate(
        (b"", b"ONNX", b"\0" * 64, whole[: len(whole) // 2], whole[:-1], whole[::-1], b"\xff" * 999)
    ):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(data)
        refusal(path)


def test_names_that_are_no_text(tmp_path: Path, refusal: Any) -> None:
    whole = bert_model().SerializeToString()
    for name in (b"MatMul", b"input_ids"):
        at = whole.index(name)
        path = tmp_path / "n.onnx"
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        assert "expected texts in UTF-8" in refusal(path)


def test_scales_of_weights(tmp_path: Path, refusal: Any) -> None:
    """int8 weights times a scale for each output, by Cast and Mul or by DequantizeLinear."""

    def coded(by: str, scale: float = 0.01) -> Any:
        model = bert_model()
        for tensor in list(model.graph.initializer):
            if list(tensor.dims) != [folders.WIDTH, folders.HIDDEN]:
                continue
            codes = (
                np.random.default_rng(1)
                .integers(-127, 128, (folders.WIDTH, folders.HIDDEN))
                .astype(np.int8)
            )
            name = tensor.name
            model.graph.initializer.remove(tensor)
            scales = np.linspace(scale, 2 * scale, folders.HIDDEN).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(codes, f"{name}_q"))
            model.graph.initializer.append(numpy_helper.from_array(scales, f"{name}_s"))
            if by == "Mul":
                made = [helper.make_node("Cast", [f"{name}_q"], [f"{name}_f"], f"{name}_c", to=1),
                        helper.make_node("Mul", [f"{name}_f", f"{name}_s"], [name], f"{name}_m")]  # fmt: skip
            else:
                made = [
                    helper.make_node(
                        "DequantizeLinear", [f"{name}_q", f"{name}_s"], [name], f"{name}_d", axis=1
                    )
                ]
            model.graph.node.extend(made)
        return model

    a = read(onnx_models.save(tmp_path / "a.onnx", coded("Mul")), "m")
    b = read(onnx_models.save(tmp_path / "b.onnx", coded("DequantizeLinear")), "m")
    same(a, b)
    key = a.constants["blocks.0.mlp.fc1.weight"]
    assert key.dtype == "I8" and key.axis == 0 and key.shape == (folders.HIDDEN, folders.WIDTH)
    for bad in (float("nan"), -1.0, 0.0):
        path = onnx_models.save(tmp_path / "bad.onnx", coded("Mul", bad))
        assert "scale: expected finite numbers above 0" in refusal(path)


def test_zero_points_of_weights(tmp_path: Path) -> None:
    """Codes with a zero point become float32."""
    model = bert_model()
    tensor = weight(model)
    codes = (
        np.random.default_rng(1).integers(0, 256, (folders.WIDTH, folders.HIDDEN)).astype(np.uint8)
    )
    name = tensor.name
    model.graph.initializer.remove(tensor)
    points = np.arange(folders.HIDDEN).astype(np.uint8)
    scales = np.linspace(0.01, 0.02, folders.HIDDEN).astype(np.float32)
    for part, value in (("q", codes), ("s", scales), ("z", points)):
        model.graph.initializer.append(numpy_helper.from_array(value, f"{name}_{part}"))
    made = helper.make_node(
        "DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [name], f"{name}_d", axis=1
    )
    model.graph.node.append(made)
    net = read(onnx_models.save(tmp_path / "m.onnx", model), "m")
    expected = (codes.astype(np.int32) - points).astype(np.float32) * scales
    found = net.constants["blocks.0.mlp.fc1.weight"]
    assert found.scales is None and np.array_equal(found.reals(), expected.T)


def test_integer_operators(tmp_path: Path, refusal: Any) -> None:
    """As Deeploy writes them: whole numbers as float32, constants as attributes."""

    def model(factor: float) -> Any:
        b = onnx_models.Builder()
        x = b.input("x", TensorProto.FLOAT, [1, 4])
        y = b.op("MatMul", x, b.constant(np.full((4, 3), -7, np.float32), "w"))
        div = numpy_helper.from_array(np.array(65536.0, np.float32))
        y = b.op("RequantShift", y, b.constant(np.array([factor], np.float32), "mul"), b.constant(np.float32(-300), "add"),
                 div=div, n_levels_out=256, signed=1)  # fmt: skip
        made = b.model(y, 2)
        for node in made.graph.node:
            made.graph.value_info.append(
                helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [1, 3])
            )
        return made

    net = read(onnx_models.save(tmp_path / "m.onnx", model(100000.0)), "m")
    assert [node.op for node in net.nodes] == ["mat_mul", "requant_shift"]
    assert net.nodes[1].attributes == {"div": 65536, "n_levels_out": 256, "signed": 1}
    assert {n: (s.dtype, s.make().reshape(-1)[0]) for n, s in net.constants.items()} == {
        "w": ("I8", -7), "mul": ("I32", 100000), "add": ("I16", -300)}  # fmt: skip
    assert "tensor 'mul': expected whole numbers" in refusal(
        onnx_models.save(tmp_path / "m.onnx", model(0.5))
    )
    assert "tensor 'mul': expected whole numbers" in refusal(
        onnx_models.save(tmp_path / "m.onnx", model(float("nan")))
    )


@pytest.mark.parametrize("name", ["microLlama1", "microLlama64", "ICCT", "ICCT_ITA"])
def test_deeploys_networks(name: str, tmp_path: Path) -> None:
    path = Path(os.environ.get("SYSTOLE_SHARED_DATA", "")) / "deeploy" / name / "network.onnx"
    if not path.is_file():
        pytest.skip(
            f"NOT TESTED: no {path}: SYSTOLE_SHARED_DATA names the folder with the data of others"
        )
    net = read(path, name)
    kinds = {node.op for node in net.nodes}
    assert len(net.nodes) == (505 if "Llama" in name else 46)
    assert ("i_rms_norm" in kinds) == ("Llama" in name) and "requant_shift" in kinds
    assert all(source.dtype in ("I8", "I16", "I32", "I64") for source in net.constants.values())
    for tensor in onnx.load(path).graph.initializer:
        assert np.array_equal(net.constants[tensor.name].make(), numpy_helper.to_array(tensor)), (
            tensor.name
        )
    net.write(tmp_path / "n.safetensors")


def values_of(folder: Path, net: Path, program: str, tmp_path: Path) -> dict[str, Any]:
    """What the program makes of each node, from the inputs in `folder`."""
    names = read(folder / "network.onnx", "n").inputs
    given: dict[str, OutTensor] = {}
    with np.load(folder / "inputs.npz") as arrays:
        for name, key in zip(names, arrays.files, strict=True):
            array = arrays[key].astype("<i8")
            given[name] = OutTensor("I64", array.shape, partial(np.copy, array))
    tensor_file.write(tmp_path / "inputs.safetensors", given, {})
    out = tmp_path / "values.safetensors"
    command = [program, "model", net, "-i", tmp_path / "inputs.safetensors", "--values", out]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    file = TensorFile(out)
    return {name: np.copy(file.codes(name)) for name in file.entries}


@pytest.mark.parametrize("name", ["microLlama1", "microLlama64", "ICCT", "ICCT_ITA"])
def test_deeploys_values(name: str, tmp_path: Path, program: str) -> None:
    """Every output and every intermediate tensor is Deeploy's."""
    folder = Path(os.environ.get("SYSTOLE_SHARED_DATA", "")) / "deeploy" / name
    if not folder.is_dir():
        pytest.skip(
            f"NOT TESTED: no {folder}: SYSTOLE_SHARED_DATA names the folder with the data of others"
        )
    net = read(folder / "network.onnx", name)
    net.write(tmp_path / "n.safetensors")
    values = values_of(folder, tmp_path / "n.safetensors", program, tmp_path)
    with np.load(folder / "outputs.npz") as arrays:
        assert len(arrays.files) == len(net.outputs)
        for output, key in zip(net.outputs, arrays.files, strict=True):
            assert np.array_equal(values[output], arrays[key]), output
    compared = 0
    with np.load(folder / "activations.npz") as arrays:
        for key in arrays.files:
            node = maker(net, key)
            assert np.array_equal(values[node.name].reshape(-1), arrays[key].reshape(-1)), key
            compared += arrays[key].size
    assert compared > 6000


def maker(net: Network, key: str) -> Any:
    """The node whose result a golden tensor is: of those that share a name but for the operator,
    the last one."""
    if key == "tokenizer_conv_layers_0_3":
        return next(n for n in net.nodes if n.op == "max_pool")
    nodes = [n for n in net.nodes if key.endswith(stem(n.name))]
    longest = max(len(stem(n.name)) for n in nodes)
    return [n for n in nodes if len(stem(n.name)) == longest][-1]


def stem(name: str) -> str:
    """The part of a node's name that keys of the golden tensors end with."""
    return name.lstrip("_").rsplit("_", 1)[0].lower()
