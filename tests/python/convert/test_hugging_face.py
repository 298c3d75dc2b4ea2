from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from systole_convert import decoders
from systole_convert import evaluate as evaluate_module
from systole_convert.__main__ import read
from systole_convert.errors import ConvertError
from systole_convert.evaluate import evaluate
from systole_convert.graph import Network
from systole_convert.strict_json import Config
from systole_convert.tensor_file import TensorFile

from . import folders, llama_ops

GOLDEN = Path(__file__).resolve().parents[2] / "golden/text_heads"
IDS = np.array([3, 17, 0, 29, 5])
TYPES = np.array([0, 0, 1, 1, 0])


def of_folder(path: Path) -> Network:
    return read(path, "net")


def outputs(net: Network) -> np.ndarray[Any, Any]:
    values = {"input_ids": IDS, "token_type_ids": TYPES}
    return evaluate(net, {name: values[name] for name in net.inputs})


def run(*arguments: object) -> str:
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def integers(path: Path) -> dict[str, bytes]:
    file = TensorFile(path)
    return {name: file.codes(name).tobytes() for name in file.entries}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "vit"])
def test_the_program_quantises_both_to_the_same_integers(
    kind: str, tmp_path: Path, program: str
) -> None:
    """The program reads these folders itself: another implementation, tested against oracles."""
    config: dict[str, Any] = getattr(folders, f"{kind}_config")()
    source = folders.folder(tmp_path / kind, config, getattr(folders, f"{kind}_tensors")())
    calibration = tmp_path / "c.safetensors"
    if kind == "vit":
        (source / "preprocessor_config.json").write_text(
            '{"rescale_factor": 0.005, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.25]}')  # fmt: skip
        pictures = (
            np.random.default_rng(2).integers(0, 256, (4, 3, 8, 8)).astype(np.int8).view(np.uint8)
        )
        text = json.dumps(
            {
                "images": {
                    "dtype": "U8",
                    "shape": list(pictures.shape),
                    "data_offsets": [0, pictures.size],
                }
            }
        ).encode()
        calibration.write_bytes(len(text).to_bytes(8, "little") + text + pictures.tobytes())
    else:
        folders.save(
            calibration, {"input_ids": np.random.default_rng(2).integers(0, folders.WORDS, (4, 9))}
        )
    network = tmp_path / "network.safetensors"
    of_folder(source).write(network)
    a, b = tmp_path / "a.int8.safetensors", tmp_path / "b.int8.safetensors"
    run(program, "quantise", source / "model.safetensors", "-c", calibration, "-o", a)
    run(program, "quantise", network, "-c", calibration, "-o", b)
    expected = integers(a)
    assert integers(b) == expected and len(expected) > 40


def test_shards_are_the_same_network(tmp_path: Path) -> None:
    config, tensors = folders.bert_config(), folders.bert_tensors()
    one = of_folder(folders.folder(tmp_path / "one", config, tensors))
    many = of_folder(folders.shards(tmp_path / "many", config, tensors))
    assert np.array_equal(outputs(one), outputs(many))


def test_types_of_numbers(tmp_path: Path) -> None:
    tensors = folders.bert_tensors()
    exact = {
        k: (folders.bf16(v).astype(np.uint32) << 16).view(np.float32) for k, v in tensors.items()
    }
    wide = outputs(of_folder(folders.folder(tmp_path / "f32", folders.bert_config(), exact)))
    short = {k: folders.bf16(v) for k, v in tensors.items()}
    assert np.array_equal(outputs_of_bf16(tmp_path / "bf16", short), wide)


def outputs_of_bf16(path: Path, tensors: folders.Tensors) -> np.ndarray[Any, Any]:
    net = of_folder(folders.folder(path, folders.bert_config(), tensors))
    for name, source in list(net.constants.items()):
        codes = source.make
        assert source.dtype == "BF16"
        net.constants[name].make = lambda codes=codes: (codes().astype(np.uint32) << 16).view(
            np.float32
        )  # type: ignore[misc]
    return outputs(net)


def test_roberta_counts_positions_from_its_padding(tmp_path: Path) -> None:
    tensors = folders.bert_tensors("roberta.", folders.POSITIONS + 2, 1)
    config = folders.bert_config(
        model_type="roberta",
        max_position_embeddings=folders.POSITIONS + 2,
        type_vocab_size=1,
        pad_token_id=1,
    )
    roberta = of_folder(folders.folder(tmp_path / "roberta", config, tensors))
    plain = {k.replace("roberta.", "bert."): v for k, v in tensors.items()}
    key = "bert.embeddings.position_embeddings.weight"
    plain[key] = plain[key][2:]
    bert = of_folder(
        folders.folder(tmp_path / "bert", folders.bert_config(type_vocab_size=1), plain)
    )
    zeros = np.zeros(5, int)
    a, b = (evaluate(net, {"input_ids": IDS, "token_type_ids": zeros}) for net in (roberta, bert))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_classifiers_give_the_logits_of_transformers(
    kind: str, tmp_path: Path, program: str
) -> None:
    """Texts with padding; the logits are transformers' own (script/train/make_text_head_goldens.py)."""
    source = GOLDEN / kind
    net = of_folder(source)
    texts = TensorFile(source / "texts.safetensors")
    ids, mask, labels, logits = (
        texts.codes(name) for name in ("input_ids", "attention_mask", "labels", "logits")
    )
    kinds = texts.codes("token_type_ids") if "token_type_ids" in texts.entries else 0 * ids
    for i in range(len(ids)):
        length = int(mask[i].sum())
        values = {"input_ids": ids[i, :length], "token_type_ids": kinds[i, :length]}
        found = evaluate(net, {name: values[name].astype(int) for name in net.inputs})
        assert np.abs(found[0] - logits[i]).max() < 5e-6
        assert found[0].argmax() == labels[i]
    network, model = tmp_path / "network.safetensors", tmp_path / "n.int8.safetensors"
    net.write(network)
    run(program, "quantise", network, "-c", source / "texts.safetensors", "-o", model)
    judged = json.loads(
        run(program, "model", model, "--accuracy", "--checkpoint", network,
            "-i", source / "texts.safetensors", "--json")
    )["accuracy"][0]  # fmt: skip
    assert judged["fp32_accuracy"] == 1.0
    assert judged["integer_accuracy"] >= 0.8


def test_a_head_of_one_output_is_left_out(tmp_path: Path) -> None:
    tensors = folders.bert_tensors()
    plain = outputs(of_folder(folders.folder(tmp_path / "plain", folders.bert_config(), tensors)))
    width = folders.WIDTH
    tensors["bert.pooler.dense.weight"] = np.ones((width, width), np.float32)
    tensors["bert.pooler.dense.bias"] = np.ones(width, np.float32)
    tensors["classifier.weight"] = np.ones((1, width), np.float32)
    tensors["classifier.bias"] = np.ones(1, np.float32)
    scored = of_folder(folders.folder(tmp_path / "score", folders.bert_config(), tensors))
    assert np.array_equal(outputs(scored), plain)
    tensors["classifier.weight"] = np.ones((3, width + 1), np.float32)
    tensors["classifier.bias"] = np.ones(3, np.float32)
    with pytest.raises(ConvertError, match=r"'classifier\.weight': shape is"):
        of_folder(folders.folder(tmp_path / "wrong", folders.bert_config(), tensors))


_DISTIL = {"attention.self.query": "attention.q_lin", "attention.self.key": "attention.k_lin",
           "attention.self.value": "attention.v_lin", "attention.output.dense": "attention.out_lin",
           "attention.output.LayerNorm": "sa_layer_norm", "intermediate.dense": "ffn.lin1",
           "output.dense": "ffn.lin2", "output.LayerNorm": "output_layer_norm"}  # fmt: skip


def test_distilbert_is_bert_without_types(tmp_path: Path) -> None:
    tensors = folders.bert_tensors()
    types = "bert.embeddings.token_type_embeddings.weight"
    tensors[types][:] = 0
    bert = of_folder(folders.folder(tmp_path / "bert", folders.bert_config(), tensors))
    renamed = {}
    for name, value in tensors.items():
        if name == types:
            continue
        name = name.replace("bert.encoder.layer.", "distilbert.transformer.layer.").replace(
            "bert.embeddings", "distilbert.embeddings"
        )
        for old in sorted(_DISTIL, key=len, reverse=True):
            if f".{old}." in name:
                name = name.replace(f".{old}.", f".{_DISTIL[old]}.")
                break
        renamed[name.replace("distildistil", "distil")] = value
    config = {"model_type": "distilbert", "dim": folders.WIDTH, "n_layers": folders.LAYERS, "n_heads": folders.HEADS,
              "hidden_dim": folders.HIDDEN, "vocab_size": folders.WORDS, "max_position_embeddings": folders.POSITIONS}  # fmt: skip
    distil = of_folder(folders.folder(tmp_path / "distil", config, renamed))
    assert np.array_equal(outputs(distil), outputs(bert))


def test_gpt2_head(tmp_path: Path) -> None:
    tied = of_folder(folders.folder(tmp_path / "a", folders.gpt2_config(), folders.gpt2_tensors()))
    assert tied.nodes[-1].inputs[1] == "word.table"
    bare = of_folder(
        folders.folder(tmp_path / "b", folders.gpt2_config(), folders.gpt2_tensors(""))
    )
    assert bare.nodes[-1].op == "layer_norm"
    own = folders.gpt2_tensors() | {
        "lm_head.weight": np.ones((folders.WORDS, folders.WIDTH), np.float32)
    }
    net = of_folder(folders.folder(tmp_path / "c", folders.gpt2_config(), own))
    assert outputs(net).shape == (5, folders.WORDS) and np.ptp(outputs(net), axis=1).max() < 1e-9


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
MIXTRAL = {"num_local_experts": folders.EXPERTS, "num_experts_per_tok": 2}
QWEN3_MOE = {"num_experts": folders.EXPERTS, "num_experts_per_tok": 3, "norm_topk_prob": True, "head_dim": 8,
             "moe_intermediate_size": folders.HIDDEN, "intermediate_size": 99}  # fmt: skip
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}


def test_scaled_rope() -> None:
    """Llama 3.1's rule as its authors wrote it, by wavelengths."""

    def rule(frequency: float) -> float:
        wavelength = 2 * math.pi / frequency
        if wavelength < 64 / 4.0:
            return frequency
        if wavelength > 64 / 1.0:
            return frequency / 8.0
        smooth = (64 / wavelength - 1.0) / (4.0 - 1.0)
        return (1 - smooth) * frequency / 8.0 + smooth * frequency

    def found(**values: Any) -> tuple[float, ...]:
        base, scaling = decoders.rope_of(Config("here", values))
        return decoders.scaled_frequencies(scaling, 16, base)

    plain = [500.0 ** (-2 * i / 16) for i in range(8)]
    expected = [rule(frequency) for frequency in plain]
    assert len({round(e / p, 6) for e, p in zip(expected, plain, strict=True)}) > 2
    assert found(rope_theta=500.0, rope_scaling=LLAMA3) == pytest.approx(expected, rel=1e-12)
    quarter = {"type": "linear", "factor": 4.0}
    assert found(rope_theta=500.0, rope_scaling=quarter) == pytest.approx([p / 4 for p in plain])
    assert (
        found() == found(rope_scaling=None) == found(rope_parameters={"rope_type": "default"}) == ()
    )
    wrongs: list[tuple[Any, str]] = [
        ([1.0], "'rope_scaling': expected an object"),
        ({"type": "yarn"}, "'type': found 'yarn', expected default, linear, llama3"),
        (LLAMA3 | {"low_freq_factor": 5.0}, "'high_freq_factor': 4.0, expected more than 5.0"),
        (LLAMA3 | {"original_max_position_embeddings": None}, "'original_max_position_embeddings'"),
    ]
    for wrong, error in wrongs:
        with pytest.raises(ConvertError, match=error):
            found(rope_scaling=wrong)


def test_experts_of_another_kind() -> None:
    for kind, config, error in (
        ("qwen3_moe", QWEN3_MOE | {"norm_topk_prob": False}, "'norm_topk_prob': expected true"),
        ("qwen3_moe", QWEN3_MOE | {"mlp_only_layers": [1]}, "expected experts in all blocks"),
        ("qwen3_moe", QWEN3_MOE | {"decoder_sparse_step": 2}, "expected experts in all blocks"),
        ("mixtral", MIXTRAL | {"num_experts_per_tok": 6}, "'num_experts_per_tok': found 6"),
        ("mixtral", {"num_experts_per_tok": 1}, "'num_local_experts': found None"),
    ):
        with pytest.raises(ConvertError, match=error):
            decoders.experts_of(Config("here", config), kind)
    assert decoders.experts_of(Config("here", MIXTRAL), "llama") == (0, 0)


def letters() -> dict[str, Any]:
    """A tokeniser whose words are letters."""
    words = ["<end>", *(chr(97 + i) for i in range(folders.WORDS - 1))]
    digits = {"type": "Digits", "individual_digits": True}
    level = {"type": "ByteLevel", "add_prefix_space": False}
    return {
        "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words) if i}, "merges": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, level]},
        "added_tokens": [{"id": 0, "content": "<end>"}],
    }


@pytest.mark.parametrize(
    ("kind", "make", "config"),
    [
        ("llama", {}, {}),
        ("llama", {}, {"rope_scaling": LLAMA3}),
        ("llama", {}, {"rope_parameters": LINEAR}),
        ("mistral", {}, {"sliding_window": None}),
        ("mistral", {}, {"sliding_window": 3}),
        ("qwen2", {"biases": True}, {}),
        ("qwen3", {"head_norms": True}, {"head_dim": 8}),
        ("gemma", {"head": False}, {}),
        ("gemma", {"head": False}, {"hidden_activation": "gelu"}),
        ("mixtral", {"experts": "mixtral"}, MIXTRAL),
        ("qwen3_moe", {"experts": "qwen3_moe", "head_norms": True}, QWEN3_MOE),
    ],
)
def test_decoders_are_what_numpy_says(
    kind: str,
    make: dict[str, Any],
    config: dict[str, Any],
    tmp_path: Path,
    program: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In float32, and nearly so in integers on the simulated machine."""
    path = folders.folder(
        tmp_path / kind, folders.llama_config(kind, **config), folders.llama_tensors(**make)
    )
    (path / "tokenizer.json").write_text(json.dumps(letters()))
    net = of_folder(path)
    ops = [node.op for node in net.nodes]
    assert ops.count("rope") == 2 * folders.LAYERS and ops.count("attention") == folders.LAYERS
    norms = [node for node in net.nodes if node.op == "rms_norm" and "heads" in node.attributes]
    assert len(norms) == (2 * folders.LAYERS if kind.startswith("qwen3") else 0)
    weighed = [node for node in net.nodes if node.op == "weigh"]
    assert len(weighed) == (folders.LAYERS * folders.EXPERTS if "experts" in make else 0)
    attention = next(node for node in net.nodes if node.op == "attention")
    window = {"window": 3} if config.get("sliding_window") else {}
    assert attention.attributes == {"heads": 2, "causal": True, "kv_heads": 1, **window}

    monkeypatch.setattr(evaluate_module, "_OPS", llama_ops.OPS)
    ids = np.random.default_rng(3).integers(1, 27, folders.POSITIONS)

    def bits() -> float:
        logits = evaluate(net, {"input_ids": ids})[:-1]
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return float(-logs[np.arange(len(ids) - 1), ids[1:]].mean() / math.log(2))

    real, integer, text = (
        tmp_path / "n.safetensors",
        tmp_path / "i.int8.safetensors",
        tmp_path / "t",
    )
    net.write(real)
    text.write_text("".join(chr(96 + i) for i in ids))
    done = subprocess.run([program, "model", str(real)], capture_output=True, text=True, check=True)
    assert "rope" in done.stdout
    subprocess.run(
        [program, "quantise", str(real), "-c", str(text), "-o", str(integer)], check=True
    )
    found = json.loads(
        subprocess.run([program, "generate", "--model", str(integer), "--evaluate", "64", "--text", str(text),
                        "--checkpoint", str(real), "--json"], capture_output=True, text=True, check=True).stdout
    )  # fmt: skip
    expected = bits()
    assert found["tokens"] == len(ids) - 1
    assert found["float32_bits_per_token"] == pytest.approx(expected, rel=1e-5)
    assert found["bits_per_token"] == pytest.approx(expected, rel=0.02)
    # What a family adds makes a difference.
    for name, instead in (("frequencies", None), ("window", None), ("factor", 1.0)):
        nodes = [node for node in net.nodes if name in node.attributes]
        for node in nodes:
            del node.attributes[name]
            if instead is not None:
                node.attributes[name] = instead
        assert not nodes or abs(bits() - expected) > 1e-4 * expected, name


def test_tokeniser_of_a_folder(tmp_path: Path) -> None:
    document = letters()
    words = ["<end>", *document["model"]["vocab"]]
    level = document["pre_tokenizer"]["pretokenizers"][1]
    path = folders.folder(tmp_path / "m", folders.llama_config("llama"), folders.llama_tensors())
    file = path / "tokenizer.json"
    file.write_text(json.dumps(document))
    found = of_folder(path).tokeniser
    assert found is not None and found["tokens"] == words and found["control"] == [0]
    assert found["digits_alone"] and found["merges"] == []
    document["pre_tokenizer"] = level
    file.write_text(json.dumps(document))
    found = of_folder(path).tokeniser
    assert found is not None and not found["digits_alone"]
    for other in ({"type": "Metaspace"}, level | {"add_prefix_space": True}):
        document["pre_tokenizer"] = other
        file.write_text(json.dumps(document))
        assert of_folder(path).tokeniser is None
    file.write_text("{}")
    with pytest.raises(ConvertError, match="no tokeniser of the library"):
        of_folder(path)


def test_t5_is_a_graph_of_two_stacks(tmp_path: Path) -> None:
    net = of_folder(folders.folder(tmp_path / "t5", folders.t5_config(), folders.t5_tensors()))
    ops = [node.op for node in net.nodes]
    assert net.inputs == ["input_ids", "decoder_input_ids"]
    assert (
        ops.count("biased_attention") == 4
        and ops.count("cross_attention") == 2
        and ops.count("relu") == 4
    )


def schema() -> dict[str, Any]:
    path = Path(__file__).parents[3] / "docs/network-schema.json"
    return json.loads(path.read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "vit"])
def test_documents_fit_the_schema(kind: str, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip(
        "jsonschema", reason="NOT TESTED: the library jsonschema is not installed"
    )
    config: dict[str, Any] = getattr(folders, f"{kind}_config")()
    net = of_folder(folders.folder(tmp_path / kind, config, getattr(folders, f"{kind}_tensors")()))
    document = json.loads(json.dumps(net.document()))
    jsonschema.validate(document, schema())
    document["nodes"][0]["op"] = "loop"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_what_the_program_writes_fits_the_schema(tmp_path: Path, program: str) -> None:
    jsonschema = pytest.importorskip(
        "jsonschema", reason="NOT TESTED: the library jsonschema is not installed"
    )
    for model in ("vit17", "vit65-sparse90-ae", "vit17-post", "kjv"):
        run(program, "model", model, "--out", tmp_path / "n.safetensors")
        jsonschema.validate(
            json.loads(TensorFile(tmp_path / "n.safetensors").metadata["network"]), schema()
        )


def header(path: Path, change: Any) -> None:
    data = (path / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    text = change(data[8 : 8 + length])
    (path / "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + data[8 + length :]
    )


def weights(path: Path, change: Any) -> None:
    file = path / "model.safetensors"
    file.write_bytes(change(file.read_bytes()))


def configured(**more: Any) -> Any:
    return lambda path: (path / "config.json").write_text(json.dumps(folders.bert_config(**more)))


def tensors(change: Any) -> Any:
    def spoil(path: Path) -> None:
        values = folders.bert_tensors()
        change(values)
        folders.save(path / "model.safetensors", values)

    return spoil


def index(text: str) -> Any:
    def spoil(path: Path) -> None:
        (path / "model.safetensors").unlink()
        (path / "model.safetensors.index.json").write_text(text)

    return spoil


QUERY = "bert.encoder.layer.0.attention.self.query.weight"
HOSTILE: list[tuple[str, Any, str]] = [
    ("no config", lambda p: (p / "config.json").unlink(), "no config.json"),
    ("config is a list", lambda p: (p / "config.json").write_text("[]"), "expected a JSON object"),
    ("config is cut", lambda p: (p / "config.json").write_text('{"model_type": "be'), "not valid JSON"),
    ("config is deep", lambda p: (p / "config.json").write_text("[" * 100_000), "not valid JSON"),
    ("config is very deep", lambda p: (p / "config.json").write_text("[" * 600_000), "more than 500000"),
    ("config has NaN", lambda p: (p / "config.json").write_text('{"a": NaN}'), "found NaN"),
    ("config has a key twice", lambda p: (p / "config.json").write_text('{"a": 1, "a": 2}'), "'a' occurs twice"),
    ("config is no text", lambda p: (p / "config.json").write_bytes(b"\xff\xfe{"), "not valid JSON"),
    ("config has a long number", lambda p: (p / "config.json").write_text('{"model_type": ' + "9" * 5000 + "}"), "config.json"),
    ("unknown family", configured(model_type="mamba"), "found 'mamba', expected bert, roberta"),
    ("control characters", configured(model_type="be\nrt\x1b[2J"), "expected bert"),
    ("no width", configured(hidden_size=None), "'hidden_size': found None"),
    ("absurd layers", configured(num_hidden_layers=10**9), "'num_hidden_layers': found 1000000000, expected a whole number from 1 to 256"),
    ("negative width", configured(hidden_size=-16), "'hidden_size': found -16"),
    ("width is text", configured(hidden_size="16"), "'hidden_size': found '16'"),
    ("width is true", configured(hidden_size=True), "'hidden_size': found True"),
    ("another width", configured(hidden_size=32), "expected [30, 32]"),
    ("relative positions", configured(position_embedding_type="relative_key"), "'position_embedding_type'"),
    ("another activation", configured(hidden_act="relu"), "'hidden_act': found 'relu', expected gelu"),
    ("epsilon is infinite", lambda p: (p / "config.json").write_text(json.dumps(folders.bert_config(layer_norm_eps=float("inf")))), "found Infinity"),
    ("no weights", lambda p: (p / "model.safetensors").unlink(), "neither model.safetensors nor"),
    ("pickle", lambda p: (p / "model.safetensors").rename(p / "pytorch_model.bin"), "a pickle, which can run code"),
    ("pickle under another name", lambda p: weights(p, lambda b: b"\x80\x04" + b), "a pickle of PyTorch"),
    ("zip under another name", lambda p: weights(p, lambda b: b"PK\x03\x04" + b), "a pickle of PyTorch"),
    ("empty weights", lambda p: weights(p, lambda b: b""), "0 bytes, expected a safetensors file"),
    ("cut in its header", lambda p: weights(p, lambda b: b[:100]), "the length of its header is wrong"),
    ("cut in its data", lambda p: weights(p, lambda b: b[:-1]), "cut off?"),
    ("more data", lambda p: weights(p, lambda b: b + b"\0"), "cut off?"),
    ("absurd header", lambda p: weights(p, lambda b: b"\xff" * 7 + b"\x7f" + b[8:]), "the length of its header is wrong"),
    ("big-endian header", lambda p: weights(p, lambda b: b[:8][::-1] + b[8:]), "the length of its header is wrong"),
    ("tensor twice", lambda p: header(p, lambda t: t[:-1] + b", " + t[1:]), "occurs twice"),
    ("header is a list", lambda p: header(p, lambda t: b"[" + t[1:]), "the length of its header is wrong"),
    ("unknown dtype", lambda p: header(p, lambda t: t.replace(b'"F32"', b'"F31"', 1)), "dtype 'F31'"),
    ("negative size", lambda p: header(p, lambda t: t.replace(b"[30, 16]", b"[-3, 16]", 1)), "expected whole numbers from 0"),
    ("absurd size", lambda p: header(p, lambda t: t.replace(b"[30, 16]", b"[4611686018427387903, 9]", 1)), "data_offsets say otherwise"),
    ("size is fractional", lambda p: header(p, lambda t: t.replace(b"[30, 16]", b"[3.5, 16]", 1)), "expected whole numbers from 0"),
    ("many sizes", lambda p: header(p, lambda t: t.replace(b"[30, 16]", b"[" + b"1, " * 99 + b"1]", 1)), "expected whole numbers from 0"),
    ("offsets reversed", lambda p: header(p, lambda t: t.replace(b"[0, 1920]", b"[1920, 0]", 1)), "expected begin and end"),
    ("overlap", lambda p: header(p, lambda t: t.replace(b"[1920, 2688]", b"[1152, 1920]", 1)), "data begin at"),
    ("hole", lambda p: header(p, lambda t: t.replace(b"[1920, 2688]", b"[2688, 3456]", 1)), "data begin at"),
    ("tensor missing", tensors(lambda t: t.pop(QUERY)), f"tensor '{QUERY}': missing"),
    ("tensor too many", tensors(lambda t: t.update(odd=np.zeros(1, np.float32))), "tensor 'odd': no part of the network"),
    ("another shape", tensors(lambda t: t.update({QUERY: np.zeros((16, 8), np.float32)})), "shape is [16, 8], expected [16, 16]"),
    ("integers", tensors(lambda t: t.update({QUERY: np.zeros((16, 16), np.int64)})), "dtype is I64, expected F16"),
    ("index without map", index("{}"), "'weight_map': expected the file of each tensor"),
    ("shard outside", index('{"weight_map": {"a": "../model.safetensors"}}'), "outside of the folder"),
    ("shard absolute", index('{"weight_map": {"a": "/etc/passwd"}}'), "outside of the folder"),
    ("shard missing", index('{"weight_map": {"a": "b.safetensors"}}'), "missing shard"),
    ("shard is a number", index('{"weight_map": {"a": 1}}'), "'weight_map': expected"),
    ("no shards", index('{"weight_map": {}}'), "no tensors"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "hint"), [entry[1:] for entry in HOSTILE], ids=[entry[0] for entry in HOSTILE]
)
def test_hostile_folders(spoil: Any, hint: str, tmp_path: Path, refusal: Any) -> None:
    path = folders.folder(tmp_path / "hostile", folders.bert_config(), folders.bert_tensors())
    spoil(path)
    assert hint in refusal(path)


def test_index_and_shard_disagree(tmp_path: Path, refusal: Any) -> None:
    path = folders.shards(tmp_path / "hostile", folders.bert_config(), folders.bert_tensors())
    folders.save(path / "model-1.safetensors", {"odd": np.zeros(1, np.float32)})
    assert "the index and this shard disagree" in refusal(path)


def test_errors_have_a_place() -> None:
    text = str(ConvertError("a\nb", "c\x1bd" + "x" * 1000))
    assert text.startswith("a\\x0ab: c\\x1bd") and len(text) < 410
