"""BERT, RoBERTa, DistilBERT, GPT-2, ViT and DeiT under Hugging Face's names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from . import strict_json
from .checkpoint import Checkpoint
from .errors import ConvertError
from .graph import TOKENS, Network, Source
from .strict_json import Config

_GELU = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}


def gelu_form(config: Config, key: str, default: str) -> str:
    return _GELU[config.word(key, default, tuple(_GELU))]


@dataclass(frozen=True)
class Projection:
    weight: Source
    bias: Source


class Blocks:
    """The layers of an encoder, written one after the other."""

    def __init__(
        self, net: Network, heads: int, hidden: int, epsilon: float, gelu: str, causal: bool
    ) -> None:
        self.net, self.heads, self.hidden = net, heads, hidden
        self.epsilon, self.gelu, self.causal = epsilon, gelu, causal

    def attend(self, prefix: str, x: str, qkv: list[Projection], proj: Projection) -> str:
        q, k, v = (
            self.net.linear(f"{prefix}attn.{part}", x, layer.weight, layer.bias)
            for part, layer in zip(("query", "key", "value"), qkv, strict=True)
        )
        context = self.net.attention(f"{prefix}attn.context", q, k, v, self.heads, self.causal)
        return self.net.linear(f"{prefix}attn.proj", context, proj.weight, proj.bias)

    def mlp(self, prefix: str, x: str, fc1: Projection, fc2: Projection) -> str:
        hidden = self.net.linear(f"{prefix}mlp.fc1", x, fc1.weight, fc1.bias)
        shape = self.net.shape(hidden)
        active = self.net.node(f"{prefix}mlp.gelu", "gelu", [hidden], shape, form=self.gelu)
        return self.net.linear(f"{prefix}mlp.fc2", active, fc2.weight, fc2.bias)

    def norm(self, name: str, x: str, norm: Projection) -> str:
        return self.net.layer_norm(name, x, norm.weight, norm.bias, self.epsilon)

    def post_norm(self, index: int, x: str, qkv: list[Projection], proj: Projection, norm1: Projection,
                  fc1: Projection, fc2: Projection, norm2: Projection) -> str:  # fmt: skip
        p = f"blocks.{index}."
        x = self.net.add(f"{p}attn.residual", x, self.attend(p, x, qkv, proj))
        x = self.norm(f"{p}norm1", x, norm1)
        x = self.net.add(f"{p}mlp.residual", x, self.mlp(p, x, fc1, fc2))
        return self.norm(f"{p}norm2", x, norm2)

    def pre_norm(self, index: int, x: str, qkv: list[Projection], proj: Projection, norm1: Projection,
                 fc1: Projection, fc2: Projection, norm2: Projection) -> str:  # fmt: skip
        p = f"blocks.{index}."
        attended = self.attend(p, self.norm(f"{p}norm1", x, norm1), qkv, proj)
        x = self.net.add(f"{p}attn.residual", x, attended)
        return self.net.add(
            f"{p}mlp.residual", x, self.mlp(p, self.norm(f"{p}norm2", x, norm2), fc1, fc2)
        )


def prefix_of(checkpoint: Checkpoint, first: str, prefixes: tuple[str, ...]) -> str:
    for prefix in prefixes:
        if checkpoint.has(prefix + first):
            return prefix
    raise ConvertError(checkpoint.folder, f"tensor '{prefixes[0]}{first}': missing")


def projection(checkpoint: Checkpoint, name: str, outputs: int, inputs: int) -> Projection:
    return Projection(
        checkpoint.get(f"{name}.weight", outputs, inputs), checkpoint.get(f"{name}.bias", outputs)
    )


def norm(checkpoint: Checkpoint, name: str, width: int) -> Projection:
    """Old files have gamma and beta."""
    old = checkpoint.has(f"{name}.gamma")
    return Projection(
        checkpoint.get(f"{name}.{'gamma' if old else 'weight'}", width),
        checkpoint.get(f"{name}.{'beta' if old else 'bias'}", width),
    )


def words_at_positions(
    net: Network, ids: str, words: Source, positions: Source, offset: int = 0
) -> str:
    """The rows of the words, each with that of its position added."""
    word = net.embedding("word", ids, words)
    return net.add("embedding", word, net.positions("position", positions, offset))


def refuse(config: Config, key: str, allowed: tuple[str, ...], default: str) -> None:
    config.word(key, default, allowed)


_TASK_HEADS = ("cls.", "classifier.", "qa_outputs.", "lm_head.", "score.", "pre_classifier.",
               "vocab_transform.", "vocab_layer_norm.", "vocab_projector.")  # fmt: skip


def _classified(net: Network, checkpoint: Checkpoint, x: str, width: int, function: str,
                dense: str, out: str) -> str:  # fmt: skip
    """The logits of the first token, where the checkpoint has both layers and two classes or more."""
    if not checkpoint.has(f"{dense}.weight") or not checkpoint.has(f"{out}.weight"):
        return x
    shape = checkpoint.shape(f"{out}.weight")
    if shape[0] < 2:
        return x
    x = net.node("class_row", "select_row", [x], [1, width], row=0)
    pooler = projection(checkpoint, dense, width, width)
    x = net.linear("pooler", x, pooler.weight, pooler.bias)
    x = net.node("pooled", function, [x], [1, width])
    head = projection(checkpoint, out, shape[0], width)
    return net.linear("logits", x, head.weight, head.bias)


class _BlockNames(NamedTuple):
    """What the parts of a block are called, after its number."""

    query: str
    key: str
    value: str
    out: str
    norm: str
    up: str
    down: str
    out_norm: str


def _post_norm_blocks(
    checkpoint: Checkpoint,
    blocks: Blocks,
    x: str,
    sizes: tuple[int, int, int],
    prefix: str,
    names: _BlockNames,
) -> str:
    """The blocks of an encoder with LayerNorms after them; sizes: layers, width, hidden."""
    layers, width, hidden = sizes
    for i in range(layers):
        p = f"{prefix}{i}."
        x = blocks.post_norm(
            i, x,
            [projection(checkpoint, p + part, width, width) for part in names[:3]],
            projection(checkpoint, p + names.out, width, width),
            norm(checkpoint, p + names.norm, width),
            projection(checkpoint, p + names.up, hidden, width),
            projection(checkpoint, p + names.down, width, hidden),
            norm(checkpoint, p + names.out_norm, width),
        )  # fmt: skip
    return x


def bert(net: Network, checkpoint: Checkpoint) -> None:
    """BERT and RoBERTa, which differ in where positions begin."""
    config = checkpoint.config
    roberta = config.word("model_type") in ("roberta", "xlm-roberta")
    refuse(config, "position_embedding_type", ("absolute",), "absolute")
    if config.flag("is_decoder", False) or config.flag("add_cross_attention", False):
        raise ConvertError(config.place, "'is_decoder': expected an encoder")
    width, layers = config.count("hidden_size"), config.count("num_hidden_layers", high=256)
    heads, hidden = config.count("num_attention_heads"), config.count("intermediate_size")
    vocabulary, positions = (
        config.count("vocab_size", high=1 << 24),
        config.count("max_position_embeddings"),
    )
    types = config.count("type_vocab_size", 2, 1, 256)
    # RoBERTa numbers positions from the one after that of padding.
    offset = config.count("pad_token_id", 1, 0) + 1 if roberta else 0
    prefix = prefix_of(checkpoint, "embeddings.word_embeddings.weight", ("bert.", "roberta.", ""))
    get = checkpoint.get
    ids, type_ids = (
        net.input("input_ids", "i64", [TOKENS]),
        net.input("token_type_ids", "i64", [TOKENS]),
    )
    e = f"{prefix}embeddings."
    x = words_at_positions(
        net,
        ids,
        get(f"{e}word_embeddings.weight", vocabulary, width),
        get(f"{e}position_embeddings.weight", positions, width),
        offset,
    )
    x = net.add(
        "typed_embedding",
        x,
        net.embedding(
            "token_type", type_ids, get(f"{e}token_type_embeddings.weight", types, width)
        ),
    )
    blocks = Blocks(
        net,
        heads,
        hidden,
        config.real("layer_norm_eps", 1e-12),
        gelu_form(config, "hidden_act", "gelu"),
        False,
    )
    x = blocks.norm("norm", x, norm(checkpoint, f"{e}LayerNorm", width))
    names = _BlockNames(
        "attention.self.query", "attention.self.key", "attention.self.value",
        "attention.output.dense", "attention.output.LayerNorm",
        "intermediate.dense", "output.dense", "output.LayerNorm",
    )  # fmt: skip
    sizes = (layers, width, hidden)
    x = _post_norm_blocks(checkpoint, blocks, x, sizes, f"{prefix}encoder.layer.", names)
    # RoBERTa's head has a layer of its own, which is no part of the encoder.
    dense, out = (
        ("classifier.dense", "classifier.out_proj")
        if roberta
        else (f"{prefix}pooler.dense", "classifier")
    )
    net.outputs = [_classified(net, checkpoint, x, width, "tanh", dense, out)]
    checkpoint.skip(f"{prefix}pooler.", f"{e}position_ids", f"{e}token_type_ids", *_TASK_HEADS)


def distilbert(net: Network, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    width, layers = config.count("dim"), config.count("n_layers", high=256)
    heads, hidden = config.count("n_heads"), config.count("hidden_dim")
    vocabulary, positions = (
        config.count("vocab_size", high=1 << 24),
        config.count("max_position_embeddings"),
    )
    prefix = prefix_of(checkpoint, "embeddings.word_embeddings.weight", ("distilbert.", ""))
    ids = net.input("input_ids", "i64", [TOKENS])
    e = f"{prefix}embeddings."
    x = words_at_positions(
        net,
        ids,
        checkpoint.get(f"{e}word_embeddings.weight", vocabulary, width),
        checkpoint.get(f"{e}position_embeddings.weight", positions, width),
    )
    # The network has no key for it: modeling_distilbert.py says 1e-12.
    blocks = Blocks(net, heads, hidden, 1e-12, gelu_form(config, "activation", "gelu"), False)
    x = blocks.norm("norm", x, norm(checkpoint, f"{e}LayerNorm", width))
    names = _BlockNames(
        "attention.q_lin", "attention.k_lin", "attention.v_lin",
        "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm",
    )  # fmt: skip
    sizes, blocks_at = (layers, width, hidden), f"{prefix}transformer.layer."
    x = _post_norm_blocks(checkpoint, blocks, x, sizes, blocks_at, names)
    net.outputs = [_classified(net, checkpoint, x, width, "relu", "pre_classifier", "classifier")]
    checkpoint.skip(*_TASK_HEADS)


def gpt2(net: Network, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    if config.flag("scale_attn_by_inverse_layer_idx", False) or not config.flag(
        "scale_attn_weights", True
    ):
        raise ConvertError(
            config.place, "scores are not divided by the root of a head's width alone"
        )
    width, layers = config.count("n_embd"), config.count("n_layer", high=256)
    hidden = config.count("n_inner", 4 * width)
    vocabulary, positions = config.count("vocab_size", high=1 << 24), config.count("n_positions")
    prefix = prefix_of(checkpoint, "wte.weight", ("transformer.", ""))
    ids = net.input("input_ids", "i64", [TOKENS])
    x = words_at_positions(
        net,
        ids,
        checkpoint.get(f"{prefix}wte.weight", vocabulary, width),
        checkpoint.get(f"{prefix}wpe.weight", positions, width),
    )
    blocks = Blocks(net, config.count("n_head"), hidden, config.real("layer_norm_epsilon", 1e-5),
                    gelu_form(config, "activation_function", "gelu_new"), True)  # fmt: skip

    def conv1d(name: str, outputs: int, inputs: int) -> Projection:
        """GPT-2 stores its matrices by input."""
        return Projection(
            checkpoint.get(f"{name}.weight", inputs, outputs).transposed(),
            checkpoint.get(f"{name}.bias", outputs),
        )

    for i in range(layers):
        p = f"{prefix}h.{i}."
        qkv = conv1d(f"{p}attn.c_attn", 3 * width, width)
        parts = [
            Projection(qkv.weight.rows(j * width, width), qkv.bias.rows(j * width, width))
            for j in range(3)
        ]
        x = blocks.pre_norm(
            i, x, parts,
            conv1d(f"{p}attn.c_proj", width, width),
            norm(checkpoint, f"{p}ln_1", width),
            conv1d(f"{p}mlp.c_fc", hidden, width),
            conv1d(f"{p}mlp.c_proj", width, hidden),
            norm(checkpoint, f"{p}ln_2", width),
        )  # fmt: skip
    x = blocks.norm("norm", x, norm(checkpoint, f"{prefix}ln_f", width))
    if checkpoint.has("lm_head.weight"):
        x = net.linear("logits", x, checkpoint.get("lm_head.weight", vocabulary, width))
    elif prefix:
        # GPT2LMHeadModel has the prefix; its head is the table of words unless the file says else.
        x = net.linear("logits", x, "word.table")
    net.outputs = [x]
    checkpoint.skip_endings(".attn.bias", ".attn.masked_bias")
    checkpoint.skip("score.", "lm_head.")


def vit(net: Network, checkpoint: Checkpoint) -> None:
    """ViT and DeiT for classification."""
    config = checkpoint.config
    kind = config.word("model_type")
    width, layers = config.count("hidden_size"), config.count("num_hidden_layers", high=256)
    heads, hidden = config.count("num_attention_heads"), config.count("intermediate_size")
    pixels, patch = config.count("image_size", 224), config.count("patch_size", 16)
    channels = config.count("num_channels", 3, 1, 16)
    if not config.flag("qkv_bias", True):
        raise ConvertError(config.place, "'qkv_bias': expected true")
    prefix = prefix_of(checkpoint, "embeddings.cls_token", ("vit.", "deit.", ""))
    e = f"{prefix}embeddings."
    if checkpoint.has(f"{e}distillation_token"):
        raise ConvertError(
            checkpoint.folder,
            f"tensor '{e}distillation_token': a distilled network, expected one with a class token alone",
        )
    if pixels % patch != 0:
        raise ConvertError(
            config.place, f"'patch_size': {patch} does not divide 'image_size', {pixels}"
        )
    count = (pixels // patch) ** 2
    picture = net.input("picture", "u8", [channels, pixels, pixels])
    x = normalised(net, picture, checkpoint.folder, channels)
    samples = channels * patch * patch
    x = net.node("patches", "patches", [x], [count, samples], patch=patch, upsample=1, levels=256)
    weight = checkpoint.get(f"{e}patch_embeddings.projection.weight", width, channels, patch, patch)
    x = net.linear(
        "patch_embed",
        x,
        weight.reshaped((width, samples)),
        checkpoint.get(f"{e}patch_embeddings.projection.bias", width),
    )
    token = net.constant(
        "class_token.row", checkpoint.get(f"{e}cls_token", 1, 1, width).reshaped((1, width))
    )
    x = net.node("class_token", "prepend", [x, token], [count + 1, width])
    table = net.constant(
        "embedding.table",
        checkpoint.get(f"{e}position_embeddings", 1, count + 1, width).reshaped((count + 1, width)),
    )
    x = net.node("embedding", "add_table", [x, table], [count + 1, width])
    blocks = Blocks(
        net,
        heads,
        hidden,
        config.real("layer_norm_eps", 1e-12),
        gelu_form(config, "hidden_act", "gelu"),
        False,
    )
    for i in range(layers):
        p = f"{prefix}encoder.layer.{i}."
        qkv = [
            projection(checkpoint, f"{p}attention.attention.{part}", width, width)
            for part in ("query", "key", "value")
        ]
        x = blocks.pre_norm(
            i, x, qkv,
            projection(checkpoint, f"{p}attention.output.dense", width, width),
            norm(checkpoint, f"{p}layernorm_before", width),
            projection(checkpoint, f"{p}intermediate.dense", hidden, width),
            projection(checkpoint, f"{p}output.dense", width, hidden),
            norm(checkpoint, f"{p}layernorm_after", width),
        )  # fmt: skip
    x = blocks.norm("norm", x, norm(checkpoint, f"{prefix}layernorm", width))
    x = net.node("class_row", "select_row", [x], [1, width], row=0)
    classes = (
        checkpoint.shape("classifier.weight")[0] if checkpoint.shape("classifier.weight") else 0
    )
    head = projection(checkpoint, "classifier", classes, width)
    net.outputs = [net.linear("logits", x, head.weight, head.bias)]
    checkpoint.skip(f"{prefix}pooler.")
    net.architecture["family"] = kind


def normalised(net: Network, picture: str, folder: Path, channels: int) -> str:
    """As preprocessor_config.json says; what is missing is as in Hugging Face's ViTImageProcessor."""
    path = folder / "preprocessor_config.json"
    config = Config(path, strict_json.load(path) if path.is_file() else {})
    rescale = (
        config.real("rescale_factor", 1 / 255, 1e-6, 1e6)
        if config.flag("do_rescale", True)
        else 1.0
    )
    mean, deviation = [0.0] * channels, [1.0] * channels
    if config.flag("do_normalize", True):
        mean = config.reals("image_mean", [0.5] * channels, channels)
        deviation = config.reals("image_std", [0.5] * channels, channels)
    return net.node("normalise", "normalise", [picture], net.shape(picture),
                    rescale=rescale, mean=mean, deviation=deviation)  # fmt: skip
