"""Small folders of Hugging Face with seeded weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HEADS, HIDDEN, LAYERS, WORDS, POSITIONS = 16, 2, 24, 2, 30, 12
EXPERTS = 5
DTYPES = {
    "float32": "F32",
    "float16": "F16",
    "float64": "F64",
    "int64": "I64",
    "uint16": "BF16",
    "int8": "I8",
}

Tensors = dict[str, np.ndarray[Any, Any]]


def save(path: Path, tensors: Tensors, metadata: dict[str, str] | None = None) -> None:
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in tensors.items():
        begin = len(data)
        data += np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def bf16(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


class Seeded:
    def __init__(self) -> None:
        self.random = np.random.default_rng(5)
        self.tensors: Tensors = {}

    def add(self, name: str, *shape: int, centre: float = 0.0) -> None:
        self.tensors[name] = (centre + 0.3 * self.random.standard_normal(shape)).astype(np.float32)

    def linear(self, name: str, outputs: int, inputs: int, bias: bool = True) -> None:
        self.add(f"{name}.weight", outputs, inputs)
        if bias:
            self.add(f"{name}.bias", outputs)

    def norm(self, name: str, width: int = WIDTH, bias: bool = True) -> None:
        self.add(f"{name}.weight", width, centre=1.0)
        if bias:
            self.add(f"{name}.bias", width)


def bert_tensors(prefix: str = "bert.", positions: int = POSITIONS, types: int = 2) -> Tensors:
    s = Seeded()
    e = f"{prefix}embeddings."
    s.add(f"{e}word_embeddings.weight", WORDS, WIDTH)
    s.add(f"{e}position_embeddings.weight", positions, WIDTH)
    s.add(f"{e}token_type_embeddings.weight", types, WIDTH)
    s.norm(f"{e}LayerNorm")
    for i in range(LAYERS):
        p = f"{prefix}encoder.layer.{i}."
        for part in ("query", "key", "value"):
            s.linear(f"{p}attention.self.{part}", WIDTH, WIDTH)
        s.linear(f"{p}attention.output.dense", WIDTH, WIDTH)
        s.norm(f"{p}attention.output.LayerNorm")
        s.linear(f"{p}intermediate.dense", HIDDEN, WIDTH)
        s.linear(f"{p}output.dense", WIDTH, HIDDEN)
        s.norm(f"{p}output.LayerNorm")
    return s.tensors


def bert_config(**more: Any) -> dict[str, Any]:
    return {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": HIDDEN, "vocab_size": WORDS, "max_position_embeddings": POSITIONS,
            "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, **more}  # fmt: skip


def gpt2_tensors(prefix: str = "transformer.") -> Tensors:
    s = Seeded()
    s.add(f"{prefix}wte.weight", WORDS, WIDTH)
    s.add(f"{prefix}wpe.weight", POSITIONS, WIDTH)
    for i in range(LAYERS):
        p = f"{prefix}h.{i}."
        s.norm(f"{p}ln_1")
        s.norm(f"{p}ln_2")
        for name, inputs, outputs in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                      ("mlp.c_fc", WIDTH, HIDDEN), ("mlp.c_proj", HIDDEN, WIDTH)):  # fmt: skip
            s.add(f"{p}{name}.weight", inputs, outputs)
            s.add(f"{p}{name}.bias", outputs)
    s.norm(f"{prefix}ln_f")
    return s.tensors


def gpt2_config(**more: Any) -> dict[str, Any]:
    return {"model_type": "gpt2", "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": HIDDEN,
            "vocab_size": WORDS, "n_positions": POSITIONS, **more}  # fmt: skip


def vit_tensors(prefix: str = "vit.") -> Tensors:
    s = Seeded()
    e = f"{prefix}embeddings."
    s.add(f"{e}cls_token", 1, 1, WIDTH)
    s.add(f"{e}position_embeddings", 1, 5, WIDTH)
    s.add(f"{e}patch_embeddings.projection.weight", WIDTH, 3, 4, 4)
    s.add(f"{e}patch_embeddings.projection.bias", WIDTH)
    for i in range(LAYERS):
        p = f"{prefix}encoder.layer.{i}."
        for part in ("query", "key", "value"):
            s.linear(f"{p}attention.attention.{part}", WIDTH, WIDTH)
        s.linear(f"{p}attention.output.dense", WIDTH, WIDTH)
        s.norm(f"{p}layernorm_before")
        s.norm(f"{p}layernorm_after")
        s.linear(f"{p}intermediate.dense", 2 * WIDTH, WIDTH)
        s.linear(f"{p}output.dense", WIDTH, 2 * WIDTH)
    s.norm(f"{prefix}layernorm")
    s.linear("classifier", 3, WIDTH)
    return s.tensors


def vit_config(**more: Any) -> dict[str, Any]:
    return {"model_type": "vit", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": 2 * WIDTH, "image_size": 8, "patch_size": 4, "num_channels": 3,
            "hidden_act": "gelu", "layer_norm_eps": 1e-6, **more}  # fmt: skip


def llama_tensors(
    kv_heads: int = 1,
    head_norms: bool = False,
    biases: bool = False,
    head: bool = True,
    experts: str = "",
) -> Tensors:
    """`experts`: of the family whose names they have."""
    s = Seeded()
    kv = WIDTH // HEADS * kv_heads
    s.add("model.embed_tokens.weight", WORDS, WIDTH)
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        s.norm(f"{p}input_layernorm", bias=False)
        s.norm(f"{p}post_attention_layernorm", bias=False)
        s.linear(f"{p}self_attn.q_proj", WIDTH, WIDTH, biases)
        s.linear(f"{p}self_attn.k_proj", kv, WIDTH, biases)
        s.linear(f"{p}self_attn.v_proj", kv, WIDTH, biases)
        s.linear(f"{p}self_attn.o_proj", WIDTH, WIDTH, False)
        if head_norms:
            s.norm(f"{p}self_attn.q_norm", WIDTH // HEADS, False)
            s.norm(f"{p}self_attn.k_norm", WIDTH // HEADS, False)
        if not experts:
            s.linear(f"{p}mlp.gate_proj", HIDDEN, WIDTH, False)
            s.linear(f"{p}mlp.up_proj", HIDDEN, WIDTH, False)
            s.linear(f"{p}mlp.down_proj", WIDTH, HIDDEN, False)
            continue
        place = p + ("block_sparse_moe." if experts == "mixtral" else "mlp.")
        names = (
            ("w1", "w3", "w2") if experts == "mixtral" else ("gate_proj", "up_proj", "down_proj")
        )
        s.linear(f"{place}gate", EXPERTS, WIDTH, False)
        for e in range(EXPERTS):
            for name, outputs in zip(names, (HIDDEN, HIDDEN, WIDTH), strict=True):
                s.linear(f"{place}experts.{e}.{name}", outputs, WIDTH + HIDDEN - outputs, False)
    s.norm("model.norm", bias=False)
    if head:
        s.add("lm_head.weight", WORDS, WIDTH)
    return s.tensors


def llama_config(kind: str = "llama", **more: Any) -> dict[str, Any]:
    return {"model_type": kind, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": 1, "intermediate_size": HIDDEN, "vocab_size": WORDS,
            "max_position_embeddings": POSITIONS, "rms_norm_eps": 1e-5, "rope_theta": 1e4, **more}  # fmt: skip


def t5_tensors() -> Tensors:
    s = Seeded()
    s.add("shared.weight", WORDS, WIDTH)
    for side in ("encoder", "decoder"):
        for i in range(LAYERS):
            parts = ["SelfAttention", *(["EncDecAttention"] if side == "decoder" else [])]
            for j, part in enumerate(parts):
                p = f"{side}.block.{i}.layer.{j}."
                for name in "qkvo":
                    s.linear(f"{p}{part}.{name}", WIDTH, WIDTH, False)
                s.norm(f"{p}layer_norm", bias=False)
            p = f"{side}.block.{i}.layer.{len(parts)}."
            s.linear(f"{p}DenseReluDense.wi", HIDDEN, WIDTH, False)
            s.linear(f"{p}DenseReluDense.wo", WIDTH, HIDDEN, False)
            s.norm(f"{p}layer_norm", bias=False)
        s.add(f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 8, HEADS)
        s.norm(f"{side}.final_layer_norm", bias=False)
    return s.tensors


def t5_config(**more: Any) -> dict[str, Any]:
    return {"model_type": "t5", "d_model": WIDTH, "d_kv": WIDTH // HEADS, "num_heads": HEADS, "d_ff": HIDDEN,
            "num_layers": LAYERS, "vocab_size": WORDS, "relative_attention_num_buckets": 8, **more}  # fmt: skip


def folder(path: Path, config: dict[str, Any], tensors: Tensors) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    save(path / "model.safetensors", tensors)
    return path


def shards(path: Path, config: dict[str, Any], tensors: Tensors) -> Path:
    """The same in three files and an index."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    index = {}
    for number in range(3):
        name = f"model-{number}.safetensors"
        part = {key: value for i, (key, value) in enumerate(tensors.items()) if i % 3 == number}
        save(path / name, part)
        index.update({key: name for key in part})
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return path
