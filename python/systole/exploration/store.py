"""Results in one SQLite file, by what they are results of.

A row's key is a digest of everything that its cycles depend on: the executable, the whole machine,
the model, the options. Nothing in a row depends on when, where or in which order it was computed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from systole.errors import InputError

_VERSION = 1
_MAGIC = 0x53595354  # "SYST", SQLite's application_id
# Of the host computer, not of the machine: another run of the same point has others.
_HOST_FIELDS = ("wall_seconds", "cycles_per_second")

_TABLES = """
CREATE TABLE points (
  key TEXT PRIMARY KEY,
  program TEXT NOT NULL,
  machine TEXT NOT NULL,
  model TEXT NOT NULL,
  settings TEXT NOT NULL,
  options TEXT NOT NULL,
  error TEXT,
  metrics TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE documents (key TEXT PRIMARY KEY, document BLOB NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Row:
    """A point and its result: `metrics`, or the `error` line of one that failed."""

    key: str
    program: str  # version and digest
    machine: str
    model: str
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    error: str | None
    metrics: Mapping[str, Any]


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest_of(*parts: object) -> str:
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def metrics_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a statistics document: its numbers, those of `energy` as `energy.dram`,
    of `area` as `area_mm2.array`."""
    metrics: dict[str, Any] = {}
    for name, value in document.items():
        in_parts = name in ("energy", "area")
        inner = value.items() if in_parts else [("", value)]
        name = "area_mm2" if name == "area" else name
        for part, number in inner:
            if type(number) in (int, float) and name not in _HOST_FIELDS:
                metrics[f"{name}.{part}" if part else name] = number
    return metrics


class Store:
    """The file. Made if it does not exist; one writer at a time, any number of readers."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock: IO[bytes] | None = None
        if read_only and not self.path.is_file():
            raise InputError(f"{path}: no such file, expected results of a sweep")
        if not self.path.parent.is_dir():
            raise InputError(f"{path}: no such directory, expected one for the results")
        try:
            if not read_only:
                self._take()
            self._base = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}",
                uri=True,
                isolation_level=None,
                timeout=60,
            )
            self._prepare(read_only)
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path}: {error}, expected results of a sweep") from None

    def _take(self) -> None:
        """Two drivers would compute the same points twice. The lock ends with the process."""
        lock = open(f"{self.path}-lock", "ab")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise InputError(
                f"{self.path}: another sweep writes it, expected to be the only one"
            ) from None
        self._lock = lock

    def _prepare(self, read_only: bool) -> None:
        magic, version = (
            self._base.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (tables or read_only) and (magic != _MAGIC or version != _VERSION):
            raise InputError(
                f"{self.path}: another file, expected results of a sweep, version {_VERSION}"
            )
        if read_only:
            return
        # A commit is in the file when the process ends, however it ends.
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            self._base.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_MAGIC};"
                f"PRAGMA user_version = {_VERSION}; COMMIT;"
            )

    def keys(self) -> set[str]:
        return {key for (key,) in self._base.execute("SELECT key FROM points")}

    def add(self, row: Row, document: Mapping[str, Any] | None) -> None:
        """Result and document at once, or neither. A key that is there stays as it is."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            self._base.execute(
                "INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    row.key,
                    row.program,
                    row.machine,
                    row.model,
                    canonical(row.settings),
                    canonical(row.options),
                    row.error,
                    canonical(row.metrics),
                ),
            )
            if document is not None:
                kept = {k: v for k, v in document.items() if k not in _HOST_FIELDS}
                packed = zlib.compress(canonical(kept).encode())
                self._base.execute(
                    "INSERT OR IGNORE INTO documents VALUES (?, ?)", (row.key, packed)
                )
            self._base.execute("COMMIT")
        except BaseException:
            self._base.execute("ROLLBACK")
            raise

    def rows(self, keys: Sequence[str] | None = None) -> Iterator[Row]:
        """Those of the keys that have a result, in the order of the keys; without: all."""
        if keys is None:
            yield from map(_row, self._base.execute("SELECT * FROM points ORDER BY key"))
            return
        for begin in range(0, len(keys), 500):  # SQLite has at least 999 variables
            part = list(keys[begin : begin + 500])
            marks = ",".join("?" * len(part))
            found = {
                row[0]: row
                for row in self._base.execute(f"SELECT * FROM points WHERE key IN ({marks})", part)
            }
            yield from (_row(found[key]) for key in part if key in found)

    def row(self, key: str) -> Row | None:
        return next(iter(self.rows([key])), None)

    def document(self, key: str) -> Mapping[str, Any] | None:
        """The statistics of a point, without what the host computer took."""
        found = self._base.execute(
            "SELECT document FROM documents WHERE key = ?", (key,)
        ).fetchone()
        if found is None:
            return None
        document: Mapping[str, Any] = json.loads(zlib.decompress(found[0]))
        return document

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Any SELECT; `metrics ->> '$.cycles'` is a figure of a row."""
        return self._base.execute(sql, tuple(values)).fetchall()

    def close(self) -> None:
        self._base.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _row(fields: Sequence[Any]) -> Row:
    key, program, machine, model, settings, options, error, metrics = fields
    return Row(
        key,
        program,
        machine,
        model,
        json.loads(settings),
        json.loads(options),
        error,
        json.loads(metrics),
    )
