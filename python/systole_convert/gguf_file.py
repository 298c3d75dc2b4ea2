"""GGUF files (version 2 and 3, little-endian): Llama and Qwen 2 and 3 as graphs.

The container is read here, count by count against the size of the file; the library `gguf` knows
what a block of a quantised type means.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from . import tokenisers
from .decoders import LlamaShape, llama_graph
from .errors import ConvertError
from .graph import Network, Source
from .strict_json import Config

MAGIC = b"GGUF"
_MAX_STRING = 1 << 20
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
#: number of the type: name, elements of a block, its bytes (ggml-quants)
TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
    39: ("MXFP4", 32, 17),
}
_ARCHITECTURES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True)
class Tensor:
    type: int
    shape: tuple[int, ...]  # row-major: GGUF lists columns first
    offset: int
    bytes: int


class Gguf:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ConvertError(path, str(error)) from None
        self._at = 0
        if self._take(4) != MAGIC:
            raise ConvertError(path, "no GGUF file")
        version = self._number("<I")
        if version not in (2, 3):
            swapped = struct.unpack(">I", struct.pack("<I", version))[0]
            what = "big-endian" if swapped in (1, 2, 3) else f"version {version}"
            raise ConvertError(path, f"{what}, expected version 2 or 3, little-endian")
        tensors, pairs = self._number("<Q"), self._number("<Q")
        # The shortest tensor takes 32 bytes in the header, the shortest pair 13.
        if tensors > len(self._map) // 32 or pairs > len(self._map) // 13:
            raise ConvertError(
                path, f"{tensors} tensors and {pairs} pairs do not fit its {len(self._map)} bytes"
            )
        self.values: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._string()
            if key in self.values:
                raise ConvertError(path, f"the key '{key}' occurs twice")
            self.values[key] = self._value(key)
        self.tensors = self._read_tensors(tensors)

    def _take(self, count: int) -> bytes:
        if count > len(self._map) - self._at:
            raise ConvertError(self.path, f"byte {self._at}: ends in its header: cut off?")
        self._at += count
        return self._map[self._at - count : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _string(self) -> str:
        length = self._number("<Q")
        if length > _MAX_STRING:
            raise ConvertError(
                self.path,
                f"byte {self._at}: a text of {length} bytes, expected at most {_MAX_STRING}",
            )
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise ConvertError(self.path, f"byte {self._at}: a text that is not UTF-8") from None

    def _value(self, key: str) -> Any:
        """A scalar or a text, an array of those of a tokeniser; another is passed over."""
        kind = self._number("<I")
        if kind == _STRING:
            return self._string()
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind != _ARRAY:
            raise ConvertError(self.path, f"'{key}': a value of the unknown type {kind}")
        inner, count = self._number("<I"), self._number("<Q")
        wanted = key.startswith("tokenizer.")
        if inner in _SCALARS:
            size = struct.calcsize(_SCALARS[inner])
            if count > len(self._map) // size:
                raise ConvertError(self.path, f"'{key}': {count} elements do not fit the file")
            values = self._take(count * size)
            if wanted:
                return list(struct.unpack(f"<{count}{_SCALARS[inner][1:]}", values))
        elif inner == _STRING:
            if count > len(self._map) // 8:
                raise ConvertError(self.path, f"'{key}': {count} texts do not fit the file")
            texts = [self._take(self._number("<Q")) for _ in range(count)]
            if wanted:
                try:
                    return [text.decode() for text in texts]
                except UnicodeDecodeError:
                    raise ConvertError(self.path, f"'{key}': a text that is not UTF-8") from None
        else:
            raise ConvertError(self.path, f"'{key}': an array of the unknown type {inner}")
        return None

    def _read_tensors(self, count: int) -> dict[str, Tensor]:
        found: dict[str, tuple[int, tuple[int, ...], int]] = {}
        for _ in range(count):
            name = self._string()
            rank = self._number("<I")
            if not 1 <= rank <= 4:
                raise ConvertError(
                    self.path, f"tensor '{name}': {rank} dimensions, expected 1 to 4"
                )
            shape = tuple(reversed([self._number("<Q") for _ in range(rank)]))
            kind, offset = self._number("<I"), self._number("<Q")
            if name in found:
                raise ConvertError(self.path, f"tensor '{name}': occurs twice")
            found[name] = (kind, shape, offset)
        alignment = self.values.get("general.alignment", 32)
        if (
            not isinstance(alignment, int)
            or not 8 <= alignment <= 1 << 16
            or alignment & (alignment - 1)
        ):
            raise ConvertError(
                self.path, f"'general.alignment': found {alignment!r:.20}, expected a power of two"
            )
        start = -(-self._at // alignment) * alignment
        tensors = {}
        for name, (kind, shape, offset) in found.items():
            if kind not in TYPES:
                names = ", ".join(entry[0] for entry in TYPES.values())
                raise ConvertError(
                    self.path, f"tensor '{name}': type {kind} is not supported, expected {names}"
                )
            _, block, size = TYPES[kind]
            if 0 in shape or shape[-1] % block:
                raise ConvertError(
                    self.path,
                    f"tensor '{name}': shape {list(shape)}, expected rows of whole blocks of {block}",
                )
            length = math.prod(shape) // block * size
            if offset % alignment or start + offset + length > len(self._map):
                raise ConvertError(
                    self.path,
                    f"tensor '{name}': {length} bytes at {offset} are not in the file: cut off?",
                )
            tensors[name] = Tensor(kind, shape, start + offset, length)
        places = sorted((t.offset, t.bytes, name) for name, t in tensors.items())
        for (begin, length, _), (after, _, name) in pairwise(places):
            if begin + length > after:
                raise ConvertError(self.path, f"tensor '{name}': its data overlap another's")
        return tensors

    def source(self, name: str, shape: tuple[int, ...]) -> Source:
        if name not in self.tensors:
            raise ConvertError(self.path, f"tensor '{name}': missing")
        tensor = self.tensors[name]
        if tensor.shape != shape:
            raise ConvertError(
                self.path, f"tensor '{name}': shape is {list(tensor.shape)}, expected {list(shape)}"
            )
        if tensor.type in (0, 1):
            kind = TYPES[tensor.type][0]
            return Source(
                shape, lambda: self._raw(tensor, f"<f{TYPES[tensor.type][2]}").reshape(shape), kind
            )
        return Source(shape, lambda: self._decoded(tensor))

    def _raw(self, tensor: Tensor, dtype: str) -> np.ndarray:
        return np.frombuffer(
            self._map, dtype, tensor.bytes // np.dtype(dtype).itemsize, tensor.offset
        )

    def _decoded(self, tensor: Tensor) -> np.ndarray:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize

        _, block, size = TYPES[tensor.type]
        rows = self._raw(tensor, "<u1").reshape(-1, tensor.shape[-1] // block * size)
        return (
            dequantize(rows, GGMLQuantizationType(tensor.type))
            .astype(np.float32)
            .reshape(tensor.shape)
        )


_NAMES = {
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "attn.query": "attn_q",
    "attn.key": "attn_k",
    "attn.value": "attn_v",
    "attn.proj": "attn_output",
    "attn.query_norm": "attn_q_norm",
    "attn.key_norm": "attn_k_norm",
    "mlp.gate": "ffn_gate",
    "mlp.up": "ffn_up",
    "mlp.down": "ffn_down",
}


def gguf_name(role: str) -> str:
    """GGUF's name of a role of decoders.llama_graph()."""
    fixed = {
        "word": "token_embd.weight",
        "norm.weight": "output_norm.weight",
        "logits.weight": "output.weight",
    }
    if role in fixed:
        return fixed[role]
    _, index, rest = role.split(".", 2)
    layer, kind = rest.rsplit(".", 1)
    return f"blk.{index}.{_NAMES[layer]}.{kind}"


def _frequencies(
    file: Gguf, values: Config, kind: str, head_width: int, base: float
) -> tuple[float, ...]:
    """Radians by pair where RoPE is scaled: by one factor, or by one for each pair (Llama 3.1)."""
    scaling = values.word(f"{kind}.rope.scaling.type", "none", ("none", "linear"))
    factors = [1.0] * (head_width // 2)
    if scaling == "linear":
        factors = [values.real(f"{kind}.rope.scaling.factor", None, 1.0)] * (head_width // 2)
    if "rope_freqs.weight" in file.tensors:
        each = file.source("rope_freqs.weight", (head_width // 2,)).reals()
        if not np.all(np.isfinite(each) & (each > 0)):
            raise ConvertError(file.path, "tensor 'rope_freqs.weight': expected positive numbers")
        factors = [a * float(b) for a, b in zip(factors, each, strict=True)]
    elif scaling == "none":
        return ()
    return tuple(base ** (-2 * i / head_width) / factor for i, factor in enumerate(factors))


def convert(path: Path, name: str) -> Network:
    file = Gguf(path)
    values = Config(path, file.values)
    kind = values.word("general.architecture", None, _ARCHITECTURES)
    width, heads = (
        values.count(f"{kind}.embedding_length"),
        values.count(f"{kind}.attention.head_count"),
    )
    if width % heads:
        raise ConvertError(path, f"{heads} heads do not divide the width {width}")
    if "token_embd.weight" not in file.tensors:
        raise ConvertError(path, "tensor 'token_embd.weight': missing")
    if values.values.get(f"{kind}.expert_count", 0) != 0:
        raise ConvertError(path, "experts: expected none")
    head_width = values.count(f"{kind}.attention.key_length", width // heads)
    base = values.real(f"{kind}.rope.freq_base", 1e4)
    shape = LlamaShape(
        layers=values.count(f"{kind}.block_count", high=1024),
        width=width,
        heads=heads,
        kv_heads=values.count(f"{kind}.attention.head_count_kv", heads),
        head_width=head_width,
        hidden=values.count(f"{kind}.feed_forward_length"),
        vocabulary=file.tensors["token_embd.weight"].shape[0],
        positions=values.count(f"{kind}.context_length", high=1 << 30),
        epsilon=values.real(f"{kind}.attention.layer_norm_rms_epsilon"),
        rope_base=base,
        frequencies=_frequencies(file, values, kind, head_width, base),
        activation="silu",
        # llama.cpp permutes the rows of Llama's W_q and W_k for this; it leaves Qwen's as they are.
        interleaved=kind == "llama",
    )
    if shape.heads % shape.kv_heads:
        raise ConvertError(path, f"{shape.kv_heads} KV heads do not divide {shape.heads} heads")
    used: set[str] = set()

    def get(role: str, *sizes: int) -> Source:
        used.add(gguf_name(role))
        return file.source(gguf_name(role), sizes)

    plain = {key: value for key, value in sorted(file.values.items())
             if isinstance(value, (int, float, str)) and len(str(value)) < 100}  # fmt: skip
    net = Network(name, path.name, {"family": kind, "gguf": plain})
    llama_graph(net, shape, get, lambda role: gguf_name(role) in file.tensors)
    net.tokeniser = tokenisers.of_gguf(path, file.values, shape.vocabulary)
    left = sorted(set(file.tensors) - used - {"rope_freqs.weight"})
    if left:
        raise ConvertError(
            path, f"tensor '{left[0]}': no part of the network that the file describes"
        )
    return net
