"""Machines: a preset or a file, and keys that differ. The program knows keys, ranges and rules."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from systole.program import Program, Value, text_of

KeyValue = str | int | float


@dataclass(frozen=True)
class Key:
    """A key of a machine, as `systole machine --keys` explains it."""

    key: str
    default: KeyValue
    unit: str
    expected: str
    meaning: str
    source: str


@functools.lru_cache(maxsize=8)
def _keys(program: Program) -> tuple[Key, ...]:
    return tuple(Key(**row) for row in program.json(["machine", "--keys"])["keys"])


def machine_keys(program: Program | None = None) -> tuple[Key, ...]:
    """All keys that a machine file may set."""
    return _keys(program or Program())


def presets(program: Program | None = None) -> dict[str, str]:
    """Names of the presets, and each in a line."""
    rows = (program or Program()).json(["machine"])["machines"]
    return {row["name"]: row["summary"] for row in rows}


def flat(document: Mapping[str, Any]) -> dict[str, KeyValue]:
    """`{"array": {"rows": 16}}` as `{"array.rows": 16}`, without what is no key of a machine."""
    values: dict[str, KeyValue] = {}
    for name, value in document.items():
        if name in ("summary", "provenance"):
            continue
        if isinstance(value, Mapping):
            values |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            values[name] = value
    return values


class Machine:
    """A machine that the program has accepted as a whole.

    >>> Machine("transformer", {"array.rows": 32})["array.rows"]
    32

    `base` is a preset or a TOML file. Keys are given as a mapping, or `**{"array.rows": 32}`.
    Raises InputError with the program's line for a key, a value or a combination that it refuses.
    """

    def __init__(
        self,
        base: str | Path,
        settings: Mapping[str, Value] | None = None,
        /,
        *,
        program: Program | None = None,
        **keys: Value,
    ) -> None:
        self.base = str(base)
        self.settings: dict[str, Value] = {**(settings or {}), **keys}
        self.program = program or Program()
        document = self.program.json(["machine", self.base, *setting_arguments(self.settings)])
        self.summary: str = document["summary"]
        self._values = flat(document)

    def __getitem__(self, key: str) -> KeyValue:
        return self._values[key]

    def with_keys(self, settings: Mapping[str, Value]) -> Machine:
        """The same machine with other values of some keys."""
        return Machine(self.base, {**self.settings, **settings}, program=self.program)

    def values(self) -> dict[str, KeyValue]:
        """Every key that says something about this machine."""
        return dict(self._values)

    def toml(self) -> str:
        """A complete machine file."""
        arguments = ["machine", self.base, *setting_arguments(self.settings), "--toml"]
        return self.program.call(arguments).text()

    def arguments(self) -> list[str]:
        """Of a command line that runs on it."""
        return machine_arguments(self.base, self.settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._values.items())))

    def __repr__(self) -> str:
        return f"Machine({self.base!r}, {self.settings!r})"


def setting_arguments(settings: Mapping[str, Value]) -> list[str]:
    return [f"--set={key}={text_of(value)}" for key, value in settings.items()]


def machine_arguments(base: str, settings: Mapping[str, Value]) -> list[str]:
    return [f"--machine={base}", *setting_arguments(settings)]
