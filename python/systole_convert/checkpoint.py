"""A folder of Hugging Face: config.json and safetensors, in one file or in shards."""

from __future__ import annotations

from pathlib import Path

from . import strict_json
from .errors import ConvertError
from .graph import Source
from .strict_json import Config
from .tensor_file import FLOATS, TensorFile

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth")


class Checkpoint:
    """The tensors of a folder. Each is asked for with its shape; what is left over is an error."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        self.config = config
        self._files: dict[str, TensorFile] = {}
        self._used: set[str] = set()
        index = folder / _INDEX
        if (folder / _SINGLE).is_file():
            self._add(folder / _SINGLE, None)
        elif index.is_file():
            self._add_shards(index)
        else:
            for name in _PICKLES:
                if (folder / name).is_file():
                    raise ConvertError(
                        folder / name, f"a pickle, which can run code; expected {_SINGLE}"
                    )
            raise ConvertError(folder, f"neither {_SINGLE} nor {_INDEX}")
        if not self._files:
            raise ConvertError(folder, "no tensors")

    def _add(self, path: Path, names: set[str] | None) -> None:
        file = TensorFile(path)
        if names is not None and set(file.entries) != names:
            odd = sorted(set(file.entries) ^ names)[0]
            raise ConvertError(path, f"tensor '{odd}': the index and this shard disagree")
        for name in file.entries:
            self._files[name] = file

    def _add_shards(self, index: Path) -> None:
        table = strict_json.load(index).get("weight_map")
        if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
            raise ConvertError(index, "'weight_map': expected the file of each tensor")
        shards: dict[str, set[str]] = {}
        for name, shard in table.items():
            shards.setdefault(shard, set()).add(name)
        for shard, names in sorted(shards.items()):
            if Path(shard).name != shard or shard in ("", ".", ".."):
                raise ConvertError(index, f"shard '{shard}': outside of the folder")
            if not (self.folder / shard).is_file():
                raise ConvertError(self.folder / shard, "missing shard")
            self._add(self.folder / shard, names)

    def has(self, name: str) -> bool:
        return name in self._files

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self._files:
            raise ConvertError(self.folder, f"tensor '{name}': missing")
        return self._files[name].entries[name].shape

    def get(self, name: str, *shape: int) -> Source:
        found = self.shape(name)
        if found != shape:
            raise ConvertError(
                self.folder, f"tensor '{name}': shape is {list(found)}, expected {list(shape)}"
            )
        file = self._files[name]
        dtype = file.entries[name].dtype
        if dtype not in FLOATS:
            raise ConvertError(
                self.folder, f"tensor '{name}': dtype is {dtype}, expected {', '.join(FLOATS)}"
            )
        self._used.add(name)
        return Source(shape, lambda: file.codes(name), dtype)

    def skip(self, *beginnings: str) -> None:
        """Leaves out what a network for a task, or a buffer, has beside."""
        for name in self._files:
            if name.startswith(beginnings):
                self._used.add(name)

    def skip_endings(self, *endings: str) -> None:
        for name in self._files:
            if name.endswith(endings):
                self._used.add(name)

    def require_all_used(self) -> None:
        left = sorted(set(self._files) - self._used)
        if left:
            raise ConvertError(
                self.folder,
                f"tensor '{left[0]}': no part of the network that config.json describes",
            )
