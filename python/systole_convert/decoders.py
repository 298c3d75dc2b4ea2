"""Llama, Mistral, Qwen 2 and 3, Gemma and T5 as graphs. `systole quantise` takes all but those of T5,
of which its checker names the first operator that it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from . import tokenisers
from .checkpoint import Checkpoint
from .errors import ConvertError
from .graph import TOKENS, Network, Source
from .strict_json import Config


@dataclass(frozen=True)
class LlamaShape:
    """What Llama and its kin differ in."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    hidden: int
    vocabulary: int
    positions: int
    epsilon: float
    rope_base: float
    activation: str  # silu, gelu_tanh, gelu_erf
    interleaved: bool = False  # RoPE turns neighbours (GGUF's Llama) instead of halves
    window: int = 0  # tokens that one of them attends to, itself included; 0: all before it
    # Radians from a position to the next, by pair of a head; none: those of the base.
    frequencies: tuple[float, ...] = ()
    experts: int = 0  # MLPs of a block, of which a token goes to `active`
    active: int = 0
    unit_norms: bool = False  # weights of norms count from 1, and the embedding is scaled (Gemma)


Tensor = Callable[..., Source]


def llama_graph(net: Network, shape: LlamaShape, get: Tensor, has: Callable[[str], bool]) -> None:
    """`get(role, shape...)` gives a tensor by its role: "word", "blocks.0.attn.query.weight", ..."""
    s = shape
    queries, keys = s.heads * s.head_width, s.kv_heads * s.head_width
    ids = net.input("input_ids", "i64", [TOKENS])
    x = net.embedding("word", ids, get("word", s.vocabulary, s.width))
    if s.unit_norms:
        x = net.node("scaled_word", "scale", [x], net.shape(x), factor=s.width**0.5)

    def norm(name: str, x: str, width: int) -> str:
        weight = get(f"{name}.weight", width)
        return net.rms_norm(name, x, weight.plus(1.0) if s.unit_norms else weight, s.epsilon)

    def linear(name: str, x: str, outputs: int, inputs: int) -> str:
        bias = get(f"{name}.bias", outputs) if has(f"{name}.bias") else None
        return net.linear(name, x, get(f"{name}.weight", outputs, inputs), bias)

    def gated(p: str, h: str) -> str:
        gate = linear(f"{p}gate", h, s.hidden, s.width)
        up = linear(f"{p}up", h, s.hidden, s.width)
        form = {"form": s.activation.removeprefix("gelu_")} if s.activation != "silu" else {}
        gate = net.node(
            f"{p}activation", s.activation.split("_")[0], [gate], net.shape(gate), **form
        )
        return net.node(f"{p}product", "multiply", [gate, up], net.shape(gate))

    for i in range(s.layers):
        p = f"blocks.{i}."
        h = norm(f"{p}norm1", x, s.width)
        parts = {}
        for part, width, heads in (("query", queries, s.heads), ("key", keys, s.kv_heads)):
            y = linear(f"{p}attn.{part}", h, width, s.width)
            if has(f"{p}attn.{part}_norm.weight"):  # Qwen 3: per head
                weight = net.constant(
                    f"{p}attn.{part}_norm.weight", get(f"{p}attn.{part}_norm.weight", s.head_width)
                )
                y = net.node(
                    f"{p}attn.{part}_norm",
                    "rms_norm",
                    [y, weight],
                    net.shape(y),
                    heads=heads,
                    epsilon=s.epsilon,
                )
            scaled = {"frequencies": list(s.frequencies)} if s.frequencies else {}
            parts[part] = net.node(f"{p}attn.{part}_rope", "rope", [y], net.shape(y), heads=heads, base=s.rope_base,
                                   interleaved=s.interleaved, positions=s.positions, **scaled)  # fmt: skip
        value = linear(f"{p}attn.value", h, keys, s.width)
        more = {} if s.heads == s.kv_heads else {"kv_heads": s.kv_heads}
        if s.window:
            more["window"] = s.window
        context = net.attention(
            f"{p}attn.context", parts["query"], parts["key"], value, s.heads, True, **more
        )
        y = linear(f"{p}attn.proj", context, s.width, queries)
        x = net.add(f"{p}attn.residual", x, y)
        h = norm(f"{p}norm2", x, s.width)
        if s.experts == 0:
            product = gated(f"{p}mlp.", h)
            y = linear(f"{p}mlp.down", product, s.width, s.hidden)
            x = net.add(f"{p}mlp.residual", x, y)
            continue
        scores = linear(f"{p}mlp.router", h, s.experts, s.width)
        shares = net.node(f"{p}mlp.shares", "route", [scores], net.shape(scores), active=s.active)
        for e in range(s.experts):
            name = f"{p}mlp.expert{e}."
            product = gated(name, h)
            y = net.node(f"{name}share", "weigh", [product, shares], net.shape(product), expert=e)
            y = linear(f"{name}down", y, s.width, s.hidden)
            x = net.add(f"{name}residual", x, y)
    x = norm("norm", x, s.width)
    if has("logits.weight"):
        x = net.linear("logits", x, get("logits.weight", s.vocabulary, s.width))
    else:
        x = net.linear("logits", x, "word.table")
    net.outputs = [x]


_HF_NAMES = {
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "attn.query": "self_attn.q_proj",
    "attn.key": "self_attn.k_proj",
    "attn.value": "self_attn.v_proj",
    "attn.proj": "self_attn.o_proj",
    "attn.query_norm": "self_attn.q_norm",
    "attn.key_norm": "self_attn.k_norm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.up": "mlp.up_proj",
    "mlp.down": "mlp.down_proj",
}
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu_erf",
}


#: Of experts, by family: where they are in a block, and their layers.
_HF_EXPERTS = {
    "mixtral": ("block_sparse_moe", {"gate": "w1", "up": "w3", "down": "w2"}),
    "qwen3_moe": ("mlp", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}),
}


def hf_name(role: str, family: str = "llama") -> str:
    """Hugging Face's name of a role of llama_graph()."""
    if role == "word":
        return "model.embed_tokens.weight"
    if role == "norm.weight":
        return "model.norm.weight"
    if role == "logits.weight":
        return "lm_head.weight"
    _, index, rest = role.split(".", 2)
    layer, kind = rest.rsplit(".", 1)
    if layer == "mlp.router":
        return f"model.layers.{index}.{_HF_EXPERTS[family][0]}.gate.{kind}"
    if layer.startswith("mlp.expert"):
        place, names = _HF_EXPERTS[family]
        expert, part = layer.removeprefix("mlp.expert").split(".")
        return f"model.layers.{index}.{place}.experts.{expert}.{names[part]}.{kind}"
    return f"model.layers.{index}.{_HF_NAMES[layer]}.{kind}"


def rope_of(config: Config) -> tuple[float, Config | None]:
    """Base of RoPE, and what scales it, if anything does; newer files have both in one place."""
    base = config.real("rope_theta", 1e4, 1.0)
    for key in ("rope_parameters", "rope_scaling"):
        values = config.values.get(key)
        if values is None:
            continue
        if not isinstance(values, dict):
            raise ConvertError(config.place, f"'{key}': expected an object")
        inner = Config(f"{config.place}: '{key}'", values)
        base = inner.real("rope_theta", base, 1.0)
        name = "rope_type" if inner.has("rope_type") or not inner.has("type") else "type"
        if inner.word(name, "default", ("default", "linear", "llama3")) != "default":
            return base, inner
    return base, None


def scaled_frequencies(scaling: Config | None, head_width: int, base: float) -> tuple[float, ...]:
    """As Hugging Face's `modeling_rope_utils` computes them for "linear" and for "llama3", which
    slows down the pairs that turn less than once in the text that the model was trained on."""
    if scaling is None:
        return ()
    plain = [base ** (-i / head_width) for i in range(0, head_width, 2)]
    factor = scaling.real("factor", None, 1.0)
    if "linear" in (scaling.values.get("rope_type"), scaling.values.get("type")):
        return tuple(f / factor for f in plain)
    low, high = scaling.real("low_freq_factor", 1.0), scaling.real("high_freq_factor", 4.0)
    if low >= high:
        raise ConvertError(scaling.place, f"'high_freq_factor': {high}, expected more than {low}")
    trained = scaling.count("original_max_position_embeddings", high=1 << 30)
    result = []
    for frequency in plain:
        turns = trained * frequency / (2 * math.pi)
        share = min(max((turns - low) / (high - low), 0.0), 1.0)
        result.append((1 - share) * frequency / factor + share * frequency)
    return tuple(result)


def experts_of(config: Config, kind: str) -> tuple[int, int]:
    """How many MLPs a block has, and how many of them a token goes to."""
    if kind not in _HF_EXPERTS:
        return 0, 0
    if kind == "qwen3_moe":
        if not config.flag("norm_topk_prob", False):
            raise ConvertError(config.place, "'norm_topk_prob': expected true: shares add up to 1")
        if config.count("decoder_sparse_step", 1) != 1 or config.values.get("mlp_only_layers"):
            raise ConvertError(
                config.place,
                "'decoder_sparse_step', 'mlp_only_layers': expected experts in all blocks",
            )
    experts = config.count("num_local_experts" if kind == "mixtral" else "num_experts", high=1024)
    return experts, config.count("num_experts_per_tok", high=experts)


def llama(net: Network, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    kind = config.word("model_type")
    experts, active = experts_of(config, kind)
    if config.flag("use_sliding_window", False):
        raise ConvertError(
            config.place, "'use_sliding_window': expected windows in no block or in all"
        )
    base, scaling = rope_of(config)
    width, heads = config.count("hidden_size"), config.count("num_attention_heads")
    if width % heads and not config.has("head_dim"):
        raise ConvertError(
            config.place, f"'num_attention_heads': {heads} does not divide the width {width}"
        )
    head_width = config.count("head_dim", max(width // heads, 1))
    shape = LlamaShape(
        layers=config.count("num_hidden_layers", high=1024),
        width=width,
        heads=heads,
        kv_heads=config.count("num_key_value_heads", heads),
        head_width=head_width,
        hidden=config.count("moe_intermediate_size" if kind == "qwen3_moe" else "intermediate_size"),
        experts=experts,
        active=active,
        vocabulary=config.count("vocab_size", high=1 << 24),
        positions=config.count("max_position_embeddings", 2048, high=1 << 30),
        epsilon=config.real("rms_norm_eps", 1e-6),
        rope_base=base,
        window=config.count("sliding_window") if kind in ("mistral", "mixtral") and config.has("sliding_window") else 0,
        frequencies=scaled_frequencies(scaling, head_width, base),
        activation=_ACTIVATIONS[config.word("hidden_activation" if config.has("hidden_activation") else "hidden_act",
                                            "gelu_pytorch_tanh" if kind == "gemma" else "silu", tuple(_ACTIVATIONS))],
        unit_norms=kind == "gemma",
    )  # fmt: skip
    if shape.heads % shape.kv_heads:
        raise ConvertError(
            config.place,
            f"'num_key_value_heads': {shape.kv_heads} does not divide {shape.heads} heads",
        )
    tied = config.flag("tie_word_embeddings", kind == "gemma")
    llama_graph(
        net,
        shape,
        lambda role, *sizes: checkpoint.get(hf_name(role, kind), *sizes),
        lambda role: not (tied and role == "logits.weight") and checkpoint.has(hf_name(role, kind)),
    )
    if not tied and not checkpoint.has("lm_head.weight"):
        raise ConvertError(
            checkpoint.folder,
            "tensor 'lm_head.weight': missing, and 'tie_word_embeddings' is false",
        )
    if tied:
        checkpoint.skip("lm_head.")
    checkpoint.skip_endings(".rotary_emb.inv_freq")
    net.tokeniser = tokenisers.of_folder(checkpoint.folder, shape.vocabulary)


def t5(net: Network, checkpoint: Checkpoint) -> None:
    """Both stacks of a T5; the decoder's input is its own graph input."""
    config = checkpoint.config
    width, inner = config.count("d_model"), config.count("num_heads") * config.count("d_kv")
    heads, hidden = config.count("num_heads"), config.count("d_ff")
    vocabulary = config.count("vocab_size", high=1 << 24)
    epsilon = config.real("layer_norm_epsilon", 1e-6)
    buckets = config.count("relative_attention_num_buckets", 32)
    distance = config.count("relative_attention_max_distance", 128)
    form = config.word("feed_forward_proj", "relu", ("relu", "gated-gelu"))
    get = checkpoint.get
    shared = net.constant("word.table", get("shared.weight", vocabulary, width))

    def attention(p: str, q: str, kv: str, name: str, bias: str | None, causal: bool) -> str:
        y = [net.linear(f"{name}.{part}", source, get(f"{p}.{part}.weight", inner, width))
             for part, source in (("q", q), ("k", kv), ("v", kv))]  # fmt: skip
        if bias is not None:
            # T5 does not divide scores, and adds a learned bias per head and bucket of distance.
            context = net.node(f"{name}.context", "biased_attention", [*y, bias], [TOKENS, inner], heads=heads,
                               causal=causal, buckets=buckets, distance=distance)  # fmt: skip
        else:
            context = net.node(
                f"{name}.context", "cross_attention", y, [TOKENS, inner], heads=heads
            )
        return net.linear(f"{name}.o", context, get(f"{p}.o.weight", width, inner))

    def stack(side: str, layers: int, memory: str | None) -> str:
        causal = memory is not None
        ids = net.input("decoder_input_ids" if causal else "input_ids", "i64", [TOKENS])
        x = net.node(f"{side}.word", "embedding", [ids, shared], [TOKENS, width])
        bias = net.constant(
            f"{side}.bias",
            get(
                f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                buckets,
                heads,
            ),
        )
        for i in range(layers):
            for j, part in enumerate(
                ["SelfAttention", *(["EncDecAttention"] if causal else []), "DenseReluDense"]
            ):
                p, name = f"{side}.block.{i}.layer.{j}", f"{side}.{i}.{part}"
                h = net.rms_norm(f"{name}.norm", x, get(f"{p}.layer_norm.weight", width), epsilon)
                if part == "SelfAttention":
                    y = attention(f"{p}.{part}", h, h, name, bias, causal)
                elif part == "EncDecAttention" and memory is not None:
                    y = attention(f"{p}.{part}", h, memory, name, None, False)
                elif form == "relu":
                    h = net.linear(f"{name}.wi", h, get(f"{p}.{part}.wi.weight", hidden, width))
                    h = net.node(f"{name}.relu", "relu", [h], net.shape(h))
                    y = net.linear(f"{name}.wo", h, get(f"{p}.{part}.wo.weight", width, hidden))
                else:
                    gate = net.linear(
                        f"{name}.wi_0", h, get(f"{p}.{part}.wi_0.weight", hidden, width)
                    )
                    gate = net.node(f"{name}.gelu", "gelu", [gate], net.shape(gate), form="tanh")
                    up = net.linear(
                        f"{name}.wi_1", h, get(f"{p}.{part}.wi_1.weight", hidden, width)
                    )
                    h = net.node(f"{name}.product", "multiply", [gate, up], net.shape(up))
                    y = net.linear(f"{name}.wo", h, get(f"{p}.{part}.wo.weight", width, hidden))
                x = net.add(f"{name}.residual", x, y)
        return net.rms_norm(
            f"{side}.norm", x, get(f"{side}.final_layer_norm.weight", width), epsilon
        )

    layers = config.count("num_layers", high=256)
    memory = stack("encoder", layers, None)
    x = stack("decoder", config.count("num_decoder_layers", layers, high=256), memory)
    if config.flag("tie_word_embeddings", True):
        x = net.node("scaled", "scale", [x], net.shape(x), factor=width**-0.5)
        x = net.linear("logits", x, "word.table")
        checkpoint.skip("lm_head.")
    else:
        x = net.linear("logits", x, get("lm_head.weight", vocabulary, width))
    net.outputs = [x]
    checkpoint.skip("encoder.embed_tokens.", "decoder.embed_tokens.")
    checkpoint.skip_endings("EncDecAttention.relative_attention_bias.weight")
