"""python -m systole_convert SRC OUT: writes a network file. Errors: one line, exit code 2."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ConvertError, printable

if TYPE_CHECKING:  # needs NumPy, which may be missing
    from .graph import Network

_BAD_INPUT = 2
#: Libraries by what needs them; pyproject.toml has the versions (`convert`).
_NEEDS = {"Hugging Face": ("numpy",), "GGUF": ("numpy", "gguf"), "ONNX": ("numpy", "onnx")}


def require(kind: str) -> None:
    for library in _NEEDS[kind]:
        if importlib.util.find_spec(library) is None:
            raise ConvertError(
                kind,
                f"needs the Python library {library}: pip install '.[convert]' in the checkout",
            )


def read(source: Path, name: str) -> Network:
    if source.is_dir():
        require("Hugging Face")
        from . import hugging_face

        return hugging_face.convert(source, name)
    try:
        with source.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ConvertError(source, error.strerror or "cannot be read") from None
    if start == b"GGUF":
        require("GGUF")
        from . import gguf_file

        return gguf_file.convert(source, name)
    if start == b"PK\x03\x04" or start[:1] == b"\x80":
        raise ConvertError(
            source, "a pickle of PyTorch, which can run code when it is read; expected safetensors"
        )
    if source.suffix == ".safetensors":
        raise ConvertError(source, "expected the folder with config.json, or a GGUF or ONNX file")
    if source.suffix == ".onnx":
        require("ONNX")
        from . import onnx_file

        return onnx_file.convert(source, name)
    raise ConvertError(
        source, "expected a folder with config.json, a GGUF file, or one that ends in .onnx"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="systole_convert", description=__doc__)
    parser.add_argument("source", type=Path, help="folder of Hugging Face, GGUF file or ONNX file")
    parser.add_argument("out", type=Path, help="network file")
    parser.add_argument("--name", help="of the network; default: that of the source")
    arguments = parser.parse_args()
    source: Path = arguments.source
    try:
        name = arguments.name or (source.resolve().name if source.is_dir() else source.stem)
        if arguments.out.suffix != ".safetensors":
            raise ConvertError(arguments.out, "expected a name that ends in .safetensors")
        if arguments.out.exists() and source.exists() and arguments.out.samefile(source):
            raise ConvertError(arguments.out, "is the source too")
        net = read(source, printable(name))
        net.write(arguments.out)
    except ConvertError as error:
        print(f"systole: {error}", file=sys.stderr)
        return _BAD_INPUT
    except MemoryError:
        print("systole: the host has not enough memory for this", file=sys.stderr)
        return _BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
