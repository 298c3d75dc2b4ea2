"""Reads and writes safetensors files.

A file is a little-endian u64 header length, a JSON header {name: {dtype, shape, data_offsets}} with
optional string metadata under "__metadata__", and the raw little-endian values back to back.
"""
import json
import os
import struct

import numpy as np

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U8": "<u1", "BOOL": "?",
}
_CODES = {np.dtype(text): code for code, text in _DTYPES.items()}


def save(path, tensors, metadata=None):
    """Writes `tensors` (name -> numpy array) sorted by name; metadata values are stored as text.

    The file appears under its name only when it is complete.
    """
    header = {}
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    blobs, offset = [], 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        blob = array.tobytes()
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(np.shape(tensors[name])),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the values start on a multiple of eight bytes
    partial = f"{path}.partial"
    with open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    os.replace(partial, path)


def load(path):
    """Returns (tensors, metadata); raises ValueError naming the file when it is not valid."""
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 8:
        raise ValueError(f"{path}: {len(content)} bytes, expected at least an 8 byte header length")
    length, = struct.unpack("<Q", content[:8])
    if length > len(content) - 8:
        raise ValueError(f"{path}: header of {length} bytes does not fit into the file")
    try:
        header = json.loads(content[8:8 + length])
        metadata = header.pop("__metadata__", {})
        data = content[8 + length:]
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[begin:end], _DTYPES[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a valid safetensors file ({error!r})") from error
    return tensors, metadata
