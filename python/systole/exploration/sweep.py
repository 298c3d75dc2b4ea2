"""The driver of a sweep: asks for points, looks them up, has the others simulated, writes them."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from systole.errors import CheckError, InputError, KilledError, SystoleError
from systole.exploration.executors import (
    DaskExecutor,
    Executor,
    LocalExecutor,
    Lost,
    outcome_of,
)
from systole.exploration.progress import Progress
from systole.exploration.search import batches
from systole.exploration.space import Point, Space, load_space
from systole.exploration.store import Row, Store, canonical, digest_of, metrics_of
from systole.machine import KeyValue, machine_arguments
from systole.program import Outcome, Program, option_arguments
from systole.result import frame_of

if TYPE_CHECKING:
    import pandas as pd

_ATTEMPTS = 4  # of a point whose process something ended
AHEAD = 2  # simulations submitted per worker, so that none waits for the driver


@dataclass(frozen=True)
class Entry:
    """A point of a sweep with its result."""

    point: Point
    row: Row

    def record(self) -> dict[str, Any]:
        """As one line of a table: axes, derived keys, metrics, the error of a failure."""
        record: dict[str, Any] = {**self.point.axes, **self.point.settings}
        record |= {k: v for k, v in self.row.metrics.items() if k not in record}
        return record | {"error": self.row.error}


@dataclass
class Sweep:
    """What a sweep found, in the order in which it was asked for; no point twice."""

    space: Space
    entries: list[Entry] = field(default_factory=list)
    computed: int = 0  # by this call; the others were in the file
    lost: dict[str, str] = field(default_factory=dict)  # points without a result, and why

    @property
    def failures(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.row.error is not None]

    def objectives(self, entry: Entry) -> list[float] | None:
        """Of a point that did not fail."""
        if entry.row.error is not None:
            return None
        return self.space.values_of(entry.point, entry.row.metrics)

    def pareto(self) -> list[Entry]:
        """Those that no other point equals or beats in every objective and beats in one.

        In the order of the first objective; of equal points the first one found.
        """
        scored = [(v, e) for e in self.entries if (v := self.objectives(e)) is not None]
        scored.sort(key=lambda pair: pair[0])
        front: list[tuple[list[float], Entry]] = []
        for values, entry in scored:
            # Sorted: only one that comes before can beat it.
            if not any(all(a <= b for a, b in zip(v, values, strict=True)) for v, _ in front):
                front.append((values, entry))
        return [entry for _, entry in front]

    def records(self) -> list[dict[str, Any]]:
        return [entry.record() for entry in self.entries]

    def to_frame(self) -> pd.DataFrame:
        """One row per point, failures included."""
        return frame_of(self.records())

    def csv(self) -> str:
        records = self.records()
        columns = list(dict.fromkeys(name for record in records for name in record))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def figure(self) -> Any:
        """Pareto front and parallel coordinates, as a plotly figure."""
        from systole.exploration.plot import figure

        return figure(self)


def write_whole(path: str | Path, data: bytes) -> None:
    """The file appears as a whole or not at all."""
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: {error.strerror}, expected a place to write") from None


def _content(path: Path) -> str:
    """Digest of a file, or of all files in a folder; of what is neither the empty text."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if path.is_dir():
        return digest_of(*(_content(file) for file in sorted(path.iterdir()) if file.is_file()))
    return ""


class _Driver:
    def __init__(self, space: Space, store: Store, executor: Executor, progress: Progress) -> None:
        self._space, self._store = space, store
        self._executor, self._progress = executor, progress
        program = space.program
        self._program = f"{program.version} {program.digest}"
        self._known = store.keys()
        self._types = program.options("run")
        self._models: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._sweep = Sweep(space)
        self._entries: dict[str, Entry] = {}
        self._failed = 0
        self._most = space.search.points or space.size

    def run(self) -> Sweep:
        search = batches(self._space)
        found: list[list[float] | None] | None = None
        with contextlib.suppress(StopIteration):
            while True:
                points = next(search) if found is None else search.send(found)
                found = self._evaluate(points)
        self._sweep.entries = list(self._entries.values())
        return self._sweep

    def _model(self, model: str) -> str:
        """What the program reads for it, so that another file of the same name is another model."""
        if model not in self._models:
            try:
                document = self._space.program.json(["model", model])
            except InputError as error:
                raise InputError(f"{self._space.source}: {error}") from None
            del document["provenance"]  # of the call, not of the model
            own = self._space.program.data() / "models" / f"{model}.int8.safetensors"
            self._models[model] = digest_of(document, _content(Path(model)), _content(own))
        return self._models[model]

    def _file(self, path: str) -> str:
        """As it is when the sweep first comes to it."""
        if path not in self._files:
            self._files[path] = _content(Path(path))
        return self._files[path]

    def _key(self, point: Point) -> str:
        machine = {**self._space.base, **point.settings}
        for key, value in machine.items():
            if isinstance(self._space.base[key], float) and isinstance(value, int):
                machine[key] = float(value)
        files = [
            self._file(str(value))
            for name, value in point.options.items()
            if "FILE" in self._types[name]
        ]
        return digest_of(
            self._program, machine, point.model, self._model(point.model), point.options, files
        )

    def _arguments(self, point: Point) -> list[str]:
        options = option_arguments(self._space.program, "run", point.options)
        machine = machine_arguments(self._space.machine, point.settings)
        return ["run", *machine, f"--model={point.model}", *options, "--json"]

    def _evaluate(self, points: Sequence[Point]) -> list[list[float] | None]:
        """Has what is missing simulated. The objectives of all, in their order."""
        keyed = [(self._key(point), point) for point in points]
        distinct = {key: point for key, point in keyed if key not in self._entries}
        missing = [key for key in distinct if key not in self._known]
        present = [key for key in distinct if key in self._known]
        for row in self._store.rows(present):
            self._enter(distinct[row.key], row)
        self._simulate({key: distinct[key] for key in missing})
        self._known.update(missing)
        # In the order in which they were asked for, whichever were there.
        for key in distinct:
            if key in self._entries:
                self._entries[key] = self._entries.pop(key)
        self._show()
        values: list[list[float] | None] = []
        for key, point in keyed:
            if key not in self._entries:
                if self._space.search.method in ("nsga2", "tpe"):
                    # What it would ask for next depends on it.
                    raise KilledError(f"{canonical(point.axes)}: {self._sweep.lost[key]}")
                values.append(None)
                continue
            values.append(self._sweep.objectives(self._entries[key]))
        return values

    def _simulate(self, missing: Mapping[str, Point]) -> None:
        waiting: Iterator[tuple[str, Point]] = iter(missing.items())
        running: dict[Future[Outcome], tuple[str, Point, int]] = {}

        def submit(key: str, point: Point, attempt: int) -> None:
            running[self._executor.submit(self._arguments(point))] = (key, point, attempt)

        while True:
            while len(running) < AHEAD * self._executor.workers:
                following = next(waiting, None)
                if following is None:
                    break
                submit(*following, 1)
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                key, point, attempt = running.pop(future)
                outcome = outcome_of(future)
                if not isinstance(outcome, Lost):
                    self._keep(key, point, outcome)
                elif attempt < _ATTEMPTS:
                    submit(key, point, attempt + 1)
                else:
                    self._sweep.lost[key] = outcome.line
            self._show()

    def _keep(self, key: str, point: Point, outcome: Outcome) -> None:
        error, document = None, None
        try:
            document = outcome.document()
        except CheckError as failed:
            error, document = str(failed), failed.document
        except SystoleError as failed:
            error = str(failed)
        metrics = {} if document is None else metrics_of(document)
        row = Row(
            key,
            self._program,
            self._space.machine,
            point.model,
            point.settings,
            point.options,
            error,
            metrics,
        )
        self._store.add(row, document)
        self._sweep.computed += 1
        # As it is read back, so that a sweep that goes on finds the very same.
        stored = self._store.row(key)
        assert stored is not None
        self._enter(point, stored)

    def _enter(self, point: Point, row: Row) -> None:
        self._entries[row.key] = Entry(point, row)
        self._failed += row.error is not None

    def _show(self) -> None:
        done = len(self._entries)
        self._progress.update(done, self._sweep.computed, self._failed, self._most)


def sweep(
    space: Space | Mapping[str, KeyValue | Any] | str | Path,
    *,
    store: str | Path,
    workers: int | None = None,
    dask: str | None = None,
    program: Program | None = None,
    progress: bool = True,
) -> Sweep:
    """Simulates the points of a space that `store` does not have yet, and returns all of them.

    `space`: a Space, a mapping with the keys of its file, or the file's path. `workers`: processes
    here, all cores without. `dask`: a scheduler's address, "local:N" or "slurm:N" instead. A sweep
    that is interrupted, in whatever way, goes on when it is called again.
    Raises InputError that names file and key, KilledError if a search cannot go on.
    """
    if isinstance(space, str | Path):
        space = load_space(space, program=program)
    elif not isinstance(space, Space):
        space = Space(space, program=program)
    if workers is not None and dask is not None:
        raise InputError("workers and dask: expected one of them")
    with Store(store) as results:
        executor: Executor = (
            DaskExecutor(space.program, dask)
            if dask is not None
            else LocalExecutor(space.program, workers)
        )
        line = Progress(progress)
        finished = False
        try:
            found = _Driver(space, results, executor, line).run()
            finished = True
            return found
        finally:
            line.close()
            executor.close(kill=not finished)
