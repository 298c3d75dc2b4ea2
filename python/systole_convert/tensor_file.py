"""Safetensors files: reading with every check, and writing tensor by tensor."""

from __future__ import annotations

import json
import math
import mmap
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import strict_json
from .errors import ConvertError

MAX_HEADER = 100_000_000
MAX_RANK = 8
_LENGTH = 8

#: dtype of the file to that of NumPy; BF16 is read as its codes.
DTYPES: dict[str, str] = {
    "BOOL": "<u1",
    "U8": "<u1",
    "I8": "<i1",
    "U16": "<u2",
    "I16": "<i2",
    "F16": "<f2",
    "BF16": "<u2",
    "U32": "<u4",
    "I32": "<i4",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "F64": "<f8",
}
FLOATS = ("F16", "BF16", "F32", "F64")


@dataclass(frozen=True)
class Entry:
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class TensorFile:
    """A safetensors file, mapped; arrays are views of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if not path.is_file():
                raise ConvertError(path, "missing, or no regular file")
            size = path.stat().st_size
            if size < _LENGTH:
                raise ConvertError(path, f"{size} bytes, expected a safetensors file")
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ConvertError(path, error.strerror or "cannot be read") from None
        length = int.from_bytes(self._map[:_LENGTH], "little")
        if length > min(MAX_HEADER, size - _LENGTH) or self._map[_LENGTH : _LENGTH + 1] != b"{":
            raise ConvertError(path, _what_else(self._map[:_LENGTH]))
        header = strict_json.parse(self._map[_LENGTH : _LENGTH + length], f"{path}: header")
        self._data = _LENGTH + length
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
            raise ConvertError(path, "header: '__metadata__': expected texts")
        self.metadata: dict[str, str] = metadata
        self.entries = {name: self._entry(name, value) for name, value in header.items()}
        covered = 0
        for name, entry in sorted(
            self.entries.items(), key=lambda item: (item[1].begin, item[1].end)
        ):
            if entry.begin != covered:
                raise ConvertError(
                    path, f"tensor '{name}': data begin at {entry.begin}, expected {covered}"
                )
            covered = entry.end
        if covered != size - self._data:
            raise ConvertError(
                path, f"{size - self._data} bytes of data, expected {covered}: cut off?"
            )

    def _entry(self, name: str, value: Any) -> Entry:
        place = f"{self.path}: tensor '{name}'"
        if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
            raise ConvertError(place, "expected dtype, shape and data_offsets")
        dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ConvertError(place, f"dtype {dtype!r:.20}, expected one of {', '.join(DTYPES)}")
        for numbers, most in ((shape, MAX_RANK), (offsets, 2)):
            if (
                not isinstance(numbers, list)
                or len(numbers) > most
                or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers)
            ):
                raise ConvertError(place, "shape and data_offsets: expected whole numbers from 0")
        if len(offsets) != 2 or offsets[0] > offsets[1]:
            raise ConvertError(place, "data_offsets: expected begin and end")
        need = math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize
        if need != offsets[1] - offsets[0]:
            raise ConvertError(
                place, f"shape {shape} of {dtype} has {need} bytes, data_offsets say otherwise"
            )
        if offsets[1] > len(self._map) - self._data:
            raise ConvertError(place, "data beyond the end of the file: cut off?")
        return Entry(dtype, tuple(shape), offsets[0], offsets[1])

    def codes(self, name: str) -> np.ndarray:
        """The elements as they are stored; BF16 as uint16."""
        entry = self.entries[name]
        dtype = np.dtype(DTYPES[entry.dtype])
        flat = np.frombuffer(self._map, dtype, math.prod(entry.shape), self._data + entry.begin)
        return flat.reshape(entry.shape)

    def reals(self, name: str) -> np.ndarray:
        """As float32, or float64 if the file has that."""
        entry = self.entries[name]
        values = self.codes(name)
        if entry.dtype == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        if entry.dtype not in FLOATS:
            raise ConvertError(
                f"{self.path}: tensor '{name}'",
                f"dtype {entry.dtype}, expected {', '.join(FLOATS)}",
            )
        return values if entry.dtype == "F64" else values.astype(np.float32, copy=False)


def _what_else(start: bytes) -> str:
    if start[:4] == b"PK\x03\x04" or start[:1] == b"\x80":
        return "a pickle of PyTorch, which can run code when it is read; expected safetensors"
    return "no safetensors file: the length of its header is wrong"


@dataclass
class OutTensor:
    """A tensor to be written, made when its turn comes."""

    dtype: str
    shape: tuple[int, ...]
    make: Callable[[], np.ndarray]


def write(path: Path, tensors: dict[str, OutTensor], metadata: dict[str, str]) -> None:
    """Whole or not at all; one tensor is in memory at a time."""
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        end = offset + math.prod(tensor.shape) * np.dtype(DTYPES[tensor.dtype]).itemsize
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(len(text).to_bytes(_LENGTH, "little"))
            file.write(text)
            for name in sorted(tensors):
                tensor = tensors[name]
                values = np.asarray(tensor.make(), DTYPES[tensor.dtype], order="C")
                if values.shape != tensor.shape:
                    raise AssertionError(f"{name}: {values.shape} instead of {tensor.shape}")
                file.write(values.reshape(-1).data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise ConvertError(path, error.strerror or "cannot be written") from None
    finally:
        if temporary is not None:
            os.unlink(temporary)
