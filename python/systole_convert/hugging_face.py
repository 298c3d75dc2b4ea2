"""Folders of Hugging Face: which network, and who writes its graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import decoders, encoders, strict_json
from .checkpoint import Checkpoint
from .errors import ConvertError
from .graph import Network
from .strict_json import Config

FAMILIES: dict[str, Callable[[Network, Checkpoint], None]] = {
    "bert": encoders.bert,
    "roberta": encoders.bert,
    "xlm-roberta": encoders.bert,
    "distilbert": encoders.distilbert,
    "gpt2": encoders.gpt2,
    "vit": encoders.vit,
    "deit": encoders.vit,
    "llama": decoders.llama,
    "mistral": decoders.llama,
    "mixtral": decoders.llama,
    "qwen2": decoders.llama,
    "qwen3": decoders.llama,
    "qwen3_moe": decoders.llama,
    "gemma": decoders.llama,
    "t5": decoders.t5,
}


def convert(folder: Path, name: str) -> Network:
    path = folder / "config.json"
    if not path.is_file():
        raise ConvertError(folder, "no config.json, expected a folder of Hugging Face")
    config = Config(path, strict_json.load(path))
    family = config.word("model_type", None, tuple(FAMILIES))
    checkpoint = Checkpoint(folder, config)
    net = Network(name, folder.name, {"family": family, "config": shown(config)})
    FAMILIES[family](net, checkpoint)
    checkpoint.require_all_used()
    return net


def shown(config: Config) -> dict[str, object]:
    """The numbers, words and flags of a configuration, for people and for tokenisers."""
    return {
        key: value
        for key, value in sorted(config.values.items())
        if isinstance(value, (int, float, str))
        and len(str(value)) < 100
        and not key.startswith("_")
    }
