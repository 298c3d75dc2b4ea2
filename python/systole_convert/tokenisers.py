"""Tokenisers of byte pairs as a network file has them (docs/network-format.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import ConvertError

#: how the names of GGUF treat digits; both cut a text into words as GPT-2 does
_GGUF_DIGITS = {"gpt-2": False, "gpt2": False, "default": False, "smollm": True}
_CONTROL, _USER_DEFINED = 3, 4  # llama.cpp's types of tokens
_PATTERN = "ByteLevel"


def byte_pairs(
    place: Path | str,
    tokens: list[str],
    merges: list[str],
    control: list[int],
    end: int | None,
    digits_alone: bool,
) -> dict[str, Any]:
    known = set(tokens)
    if len(known) != len(tokens):
        raise ConvertError(place, "tokeniser: a token comes twice")
    for merge in merges:
        left, blank, right = merge.partition(" ")
        if not blank or left + right not in known:
            raise ConvertError(place, f"tokeniser: merge '{merge:.40}' gives no token")
    if any(not 0 <= i < len(tokens) for i in [*control, *([] if end is None else [end])]):
        raise ConvertError(place, "tokeniser: a control token is no token")
    result: dict[str, Any] = {
        "kind": "byte_pairs",
        "digits_alone": digits_alone,
        "tokens": tokens,
        "merges": merges,
        "control": sorted(control),
    }
    if end is not None:
        result["end"] = end
    return result


def of_gguf(path: Path, values: dict[str, Any], vocabulary: int) -> dict[str, Any] | None:
    """None if the file has none, or one of another kind."""
    pre = values.get("tokenizer.ggml.pre", "default")
    if values.get("tokenizer.ggml.model") != "gpt2" or pre not in _GGUF_DIGITS:
        return None
    tokens, merges = values.get("tokenizer.ggml.tokens"), values.get("tokenizer.ggml.merges")
    types = values.get("tokenizer.ggml.token_type") or []
    if not isinstance(tokens, list) or not isinstance(merges, list) or len(tokens) != vocabulary:
        raise ConvertError(
            path, f"'tokenizer.ggml': expected merges and the {vocabulary} tokens of the network"
        )
    control = [i for i, kind in enumerate(types) if kind in (_CONTROL, _USER_DEFINED)]
    end = values.get("tokenizer.ggml.eos_token_id")
    if not all(isinstance(text, str) for text in [*tokens, *merges]) or not (
        end is None or isinstance(end, int)
    ):
        raise ConvertError(path, "'tokenizer.ggml': expected texts, and the id of the last token")
    return byte_pairs(path, tokens, merges, control, end, _GGUF_DIGITS[pre])


def of_folder(folder: Path, vocabulary: int) -> dict[str, Any] | None:
    """From `tokenizer.json` as the library `tokenizers` writes it; None if there is none, or one of
    another kind."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        model, pre = document["model"], document.get("pre_tokenizer") or {}
        steps = pre.get("pretokenizers", [pre])
        kinds = [step["type"] for step in steps]
        if model.get("type") != "BPE" or kinds not in ([_PATTERN], ["Digits", _PATTERN]):
            return None
        if steps[-1].get("add_prefix_space") or document.get("normalizer"):
            return None
        if kinds[0] == "Digits" and not steps[0].get("individual_digits"):
            return None
        words: dict[str, int] = dict(model["vocab"])
        control = []
        for token in document.get("added_tokens") or []:
            words[token["content"]] = token["id"]
            control.append(int(token["id"]))
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ConvertError(path, "no tokeniser of the library `tokenizers`") from None
    if sorted(words.values()) != list(range(vocabulary)):
        return None  # a table of words that is padded has rows without a token
    tokens = sorted(words, key=lambda word: words[word])
    return byte_pairs(path, tokens, merges, control, None, kinds[0] == "Digits")
