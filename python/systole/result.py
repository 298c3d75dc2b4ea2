"""What a call returns: the program's document, with its usual fields typed.

Names and units are those of docs/statistics.md, docs/explain.md and docs/analyse.md; a document
may have more than the fields here, all of it is in `json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A pandas frame. Raises InputError where pandas is not installed."""
    from systole.extras import require

    pandas = require("pandas", "frame")
    frame: pd.DataFrame = pandas.DataFrame.from_records([dict(row) for row in rows])
    return frame


Reporter = Callable[[Path], None]


def _report_of(reporter: Reporter | None, path: str | Path) -> Path:
    if reporter is None:
        raise TypeError("report: found a document by itself, expected what a call returned")
    reporter(Path(path))
    return Path(path)


def _row(operator: Mapping[str, Any]) -> dict[str, Any]:
    """`causes` of an operator become a column each: `array.busy`."""
    row = {name: value for name, value in operator.items() if name != "causes"}
    for cause in operator.get("causes", ()):
        row[f"{cause['unit']}.{cause['cause']}"] = cause["cycles"]
    return row


@dataclass(frozen=True)
class Account:
    """Where the time of a block went; `busy`, all of `stalled` and `idle` sum to `total`."""

    unit: str
    busy: int
    stalled: Mapping[str, int]
    idle: int
    total: int
    counters: Mapping[str, int]


@dataclass(frozen=True)
class Document:
    """Any document of the program."""

    json: Mapping[str, Any]

    @property
    def machine(self) -> str:
        return str(self.json["machine"])

    @property
    def model(self) -> str:
        return str(self.json["model"])

    def rows(self) -> list[dict[str, Any]]:
        """One a row of `to_frame()`."""
        rows = [_row(operator) for operator in self.operators]
        # An operator lists the causes that it has.
        causes = {name for row in rows for name in row if "." in name}
        return [row | {name: 0 for name in sorted(causes - set(row))} for row in rows]

    @property
    def operators(self) -> Sequence[Mapping[str, Any]]:
        """Of the network, as the program lists them."""
        operators: Sequence[Mapping[str, Any]] = self.json["operators"]
        return operators

    def to_frame(self) -> pd.DataFrame:
        """One row per operator (of equal ones in all layers and heads together)."""
        return frame_of(self.rows())


@dataclass(frozen=True)
class Result(Document):
    """Of `run` and `matmul`: the statistics document."""

    _explain: Callable[[], Explanation] | None = field(default=None, repr=False, compare=False)
    _report: Reporter | None = field(default=None, repr=False, compare=False)

    @property
    def cycles(self) -> float:
        """Core cycles of an inference."""
        return float(self.json["cycles"])

    @property
    def seconds(self) -> float:
        return float(self.json["seconds"])

    @property
    def read_bytes(self) -> float:
        """Read from memory by the core, an inference."""
        return float(self.json["dram_read_bytes"])

    @property
    def write_bytes(self) -> float:
        return float(self.json["dram_write_bytes"])

    @property
    def bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def bound(self) -> float | None:
        """Core cycles that no mapping can beat; None where the program gives none."""
        bound = self.json.get("bound")
        return None if bound is None else float(bound)

    @property
    def over_bound(self) -> float | None:
        over = self.json.get("over_bound")
        return None if over is None else float(over)

    @property
    def utilisation(self) -> float:
        """Of the array's multipliers, 0 to 1."""
        return float(self.json["utilisation"])

    @property
    def accuracy(self) -> float | None:
        accuracy = self.json.get("accuracy")
        return None if accuracy is None else float(accuracy)

    @property
    def energy_joules(self) -> float:
        return float(self.json["energy_joules"])

    @property
    def energy(self) -> Mapping[str, float]:
        """Joules by part."""
        energy: Mapping[str, float] = self.json["energy"]
        return energy

    @property
    def area_mm2(self) -> float:
        """Of the core and an L2 cache at 45 nm, estimated; 0 where there is no model."""
        return float(self.json["area_mm2"])

    @property
    def area(self) -> Mapping[str, float]:
        """Square millimetres by block."""
        area: Mapping[str, float] = self.json["area"]
        return area

    @cached_property
    def accounts(self) -> Mapping[str, Account]:
        """By block."""
        return {name: Account(**block) for name, block in self.json["blocks"].items()}

    @cached_property
    def explanation(self) -> Explanation:
        """Of the same inference: a further process, at the first use.

        Raises TypeError for a run that `explain` does not know, such as a matrix product.
        """
        if self._explain is None:
            raise TypeError("operators: found a matrix product, expected the run of a network")
        return self._explain()

    @property
    def operators(self) -> Sequence[Mapping[str, Any]]:
        """Cycles on the critical path, by cause (`explanation`)."""
        return self.explanation.operators

    def report(self, path: str | Path) -> Path:
        """Writes the run as a page for a browser: a further process, which simulates it again."""
        return _report_of(self._report, path)


@dataclass(frozen=True)
class Explanation(Document):
    """Of `explain`: the critical path, and what each resource would change."""

    _report: Reporter | None = field(default=None, repr=False, compare=False)

    def report(self, path: str | Path) -> Path:
        """Writes it as a page for a browser: a further process, which explains it again."""
        return _report_of(self._report, path)

    @property
    def cycles(self) -> float:
        return float(self.json["cycles"])

    @property
    def bound_by(self) -> str:
        return str(self.json["bound_by"])

    @property
    def what_if(self) -> Sequence[Mapping[str, Any]]:
        """Changes of the machine, the most useful first; empty with `no_what_if`."""
        changes: Sequence[Mapping[str, Any]] = self.json.get("what_if", ())
        return changes


@dataclass(frozen=True)
class Mapped(Document):
    """Of `map`: operators with their tiles."""

    @property
    def expected_cycles(self) -> float:
        return float(self.json["expected_cycles"])


@dataclass(frozen=True)
class Analysis(Document):
    """Of `analyse`; `operators` are those that the mapper makes on a machine."""

    @property
    def operators(self) -> Sequence[Mapping[str, Any]]:
        operators: Sequence[Mapping[str, Any]] = self.json.get(
            "mapped", self.json["survey"]["operators"]
        )
        return operators
