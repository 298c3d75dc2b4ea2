#!/usr/bin/env python3
"""Fuzzes what the Python packages read: files that are changed at random, without a look at coverage.

usage: script/python tests/fuzz/python_targets.py [TARGET...] [SECONDS]    60 seconds each

A target has to accept an input or refuse it by its package's own error, in one line, within a second
of processor time and, as in tests/python, in ten times the input's memory and 4 MiB; memory is
traced of one input in eight. Inputs that break it go to build/fuzz/defects; exit code 1.
"""

from __future__ import annotations

import functools
import json
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

_TIMES, _PLUS = 10, 4 << 20
_SECONDS = 1.0
#: Runs of bytes that formats treat in a special way.
_WORDS = [b"\0" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"-1", b"1e999", b"NaN", b"[" * 40, b'"', b"{}"]

Read = Callable[[Path], object]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """`data` with one to eight changes."""
    out = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 3, 8])):
        # Most of a file are numbers of tensors: what describes them is at one of its ends.
        edge = dice.choice([64, 512, 4096, len(out) + 1])
        at = dice.randrange(min(len(out), edge) + 1)
        if dice.random() < 0.2:
            at = max(0, len(out) - at)
        match dice.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << dice.randrange(8)
            case 1 if at < len(out):
                out[at] = dice.randrange(256)
            case 2:
                del out[at : at + dice.choice([1, 2, 4, 8, 100])]
            case 3:
                out[at:at] = out[at : at + dice.choice([1, 4, 8, 30])]
            case 4:
                word = dice.choice(_WORDS)
                out[at : at + len(word)] = word
            case 5:
                out[at:at] = dice.choice(_WORDS)
            case 6:
                other = dice.randrange(len(out) + 1)
                out[at : at + 8] = out[other : other + 8]
    return bytes(out)


def read_source(path: Path) -> None:
    from systole_convert.__main__ import read

    read(path, "fuzzed").write(path.with_suffix(".safetensors"))


@functools.cache
def _program() -> Any:
    from systole import Program

    return Program()


def read_space(path: Path) -> None:
    from systole.exploration import load_space

    load_space(path, program=_program())


def gguf_seeds() -> dict[str, bytes]:
    from convert.test_gguf import PIECES, Gguf

    files = {"llama": Gguf(), "qwen": Gguf("qwen2"), "pieces": Gguf()}
    files["pieces"].pairs |= PIECES
    return {f"{name}.gguf": file.bytes() for name, file in files.items()}


def onnx_seeds() -> dict[str, bytes]:
    from convert import folders, onnx_models

    bert = onnx_models.bert(folders.bert_tensors(), folders.HEADS)
    model = bert if hasattr(bert, "SerializeToString") else bert.model(bert.nodes[-1].output[0])
    return {"bert.onnx": model.SerializeToString()}


def space_seeds() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (ROOT / "traces/spaces").glob("*.toml")}


def config_seeds() -> dict[str, bytes]:
    from convert import folders

    return {"config.json": json.dumps(folders.bert_config()).encode()}


def tensor_seeds() -> dict[str, bytes]:
    from convert import folders

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        folders.save(path, folders.bert_tensors(), {"format": "pt"})
        return {"model.safetensors": path.read_bytes()}


def read_folder(path: Path) -> None:
    """The folder of a network with one of its files replaced."""
    from convert import folders

    if not (path.parent / "config.json").exists():
        (path.parent / "config.json").write_text(json.dumps(folders.bert_config()))
    if not (path.parent / "model.safetensors").exists():
        folders.save(path.parent / "model.safetensors", folders.bert_tensors())
    from systole_convert.__main__ import read

    read(path.parent, "fuzzed").write(path.parent.parent / "out.safetensors")


TARGETS: dict[str, tuple[Callable[[], dict[str, bytes]], Read]] = {
    "config_json": (config_seeds, read_folder),
    "gguf": (gguf_seeds, read_source),
    "hugging_face": (tensor_seeds, read_folder),
    "onnx": (onnx_seeds, read_source),
    "space": (space_seeds, read_space),
}


def problem(read: Read, path: Path, traced: bool) -> str:
    """What is wrong with how `read` takes a file; empty: nothing."""
    from systole.errors import InputError
    from systole_convert.errors import ConvertError

    size = path.stat().st_size
    if traced:
        tracemalloc.start()
    began = time.thread_time()
    try:
        read(path)
    except (ConvertError, InputError) as error:
        if any(ord(c) < 32 for c in str(error)):
            return f"a message of several lines: {error}"
    except Exception as error:  # noqa: BLE001: every other exception is what this looks for
        return f"{type(error).__name__}: {error}"
    finally:
        took = time.thread_time() - began
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    if peak > _TIMES * size + _PLUS:
        return f"{peak} bytes of memory for an input of {size}"
    # Tracing memory makes Python some four times as slow.
    return f"took {took:.1f} s" if took > (4 if traced else 1) * _SECONDS else ""


def fuzz(name: str, most: float, dice: random.Random, inputs: int | None = None) -> tuple[int, dict[str, bytes]]:
    """Executions, and by what is wrong an input that shows it."""
    make_seeds, read = TARGETS[name]
    seeds = make_seeds()
    count, found = 0, dict[str, bytes]()
    end = time.monotonic() + most
    with tempfile.TemporaryDirectory() as folder:
        for seed, data in seeds.items():  # they themselves are fine
            place = Path(folder) / "seed" / seed
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data)
            read(place)
        while time.monotonic() < end and (inputs is None or count < inputs):
            seed = dice.choice(list(seeds))
            place = Path(folder) / "net" / seed
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data := mutated(seeds[seed], dice))
            wrong = problem(read, place, count % 8 == 0)
            count += 1
            if wrong:
                found.setdefault(wrong[:40], data)
                print(f"{name}: {wrong[:300]}", file=sys.stderr)
            if len(found) > 8:
                break
    return count, found


def main() -> int:
    words: list[Any] = sys.argv[1:]
    most = float(words.pop()) if words and words[-1].isdigit() else 60.0
    unknown = [word for word in words if word not in TARGETS]
    if unknown:
        sys.exit(f"python_targets.py: {unknown[0]}, expected one of: {', '.join(TARGETS)}")
    status = 0
    for name in words or TARGETS:
        count, found = fuzz(name, most, random.Random(time.time_ns()))
        print(f"{name}: {count} executions, {len(found)} defects", flush=True)
        for number, data in enumerate(found.values()):
            place = ROOT / "build/fuzz/defects" / f"{name}-{number}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
