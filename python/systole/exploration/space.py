"""A design space: what is varied, what has to hold, how it is searched.

Its file, key by key, is described in docs/sweep.md.
"""

from __future__ import annotations

import difflib
import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from systole.errors import InputError
from systole.exploration.expressions import Expression, Operand
from systole.machine import KeyValue, flat, machine_keys, setting_arguments
from systole.program import Program

METHODS = ("grid", "random", "nsga2", "tpe")
_MAX_VALUES = 100_000  # of an axis
_MAX_FILE = 1 << 20  # bytes
_SEARCH_KEYS = ("method", "points", "seed", "batch", "objectives")
_TOP_KEYS = ("machine", "model", "options", "axes", "constants", "derived", "constraints", "search")
# What the sweep itself decides, and files that all points would write.
_NOT_SWEPT = (
    "machine",
    "model",
    "set",
    "json",
    "stats",
    "values",
    "timeline",
    "timeline-images",
    "wave",
    "wave-images",
    "wave-from",
    "wave-to",
    "program",
)


@dataclass(frozen=True)
class Point:
    """A choice on every axis, and what follows from it."""

    axes: Mapping[str, KeyValue]  # as chosen
    model: str
    settings: Mapping[str, KeyValue]  # of the machine, derived ones included
    options: Mapping[str, KeyValue | bool]  # of `systole run`


@dataclass(frozen=True)
class Search:
    method: str = "grid"
    points: int = 0  # 0: all of a grid
    seed: int = 1
    batch: int = 32  # simulated before the search goes on; results do not depend on workers
    objectives: tuple[str, ...] = ("cycles", "energy_joules")


def _fail(source: str, key: str, found: object, expected: str) -> InputError:
    return InputError(f"{source}: {key}: found {found!r}, expected {expected}")


def _require_known(source: str, key: str, known: Sequence[str], place: str = "") -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else "expected one of " + ", ".join(known[:12])
    raise InputError(f"{source}: {place}{key}: unknown key, {hint}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values_of(source: str, key: str, given: object) -> tuple[KeyValue, ...]:
    """Of an axis: a list, `{ from, to, step }`, or `{ from, to, times }` for powers."""
    expected = "a list, { from, to, step } or { from, to, times }, such as times = 2"
    if isinstance(given, list):
        if not given or not all(isinstance(v, str | int | float) for v in given):
            raise _fail(source, key, given, "a list of numbers or words, not empty")
        values = [int(v) if isinstance(v, bool) else v for v in given]
        doubles = [v for i, v in enumerate(values) if v in values[:i]]
        if doubles:
            raise _fail(source, key, doubles[0], "each value once")
        return tuple(values)
    if not isinstance(given, Mapping):
        raise _fail(source, key, given, expected)
    if set(given) not in ({"from", "to", "step"}, {"from", "to", "times"}):
        raise _fail(source, key, dict(given), expected)
    first, last = given["from"], given["to"]
    by_step = "step" in given
    step = given["step" if by_step else "times"]
    for name, number in [("from", first), ("to", last), ("step" if by_step else "times", step)]:
        if not _is_number(number) or not math.isfinite(number):
            raise _fail(source, f"{key}.{name}", number, "a number")
    if first > last:
        raise _fail(source, f"{key}.to", last, f"at least {key}.from = {first}")
    if by_step and step <= 0:
        raise _fail(source, f"{key}.step", step, "more than 0")
    if not by_step and (step <= 1 or first <= 0):
        raise _fail(source, f"{key}.times", step, "more than 1, of a range from more than 0")
    count = (last - first) / step if by_step else math.log(last / first) / math.log(step)
    if count >= _MAX_VALUES:
        raise _fail(source, key, dict(given), f"at most {_MAX_VALUES} values")
    found: list[KeyValue] = []
    for index in itertools.count():
        value = first + index * step if by_step else first * step**index
        if value > last:
            return tuple(found)
        found.append(value)
    raise AssertionError


class Space:
    """What a sweep runs over. `load_space()` reads it from a file; a mapping has the same keys.

    Raises InputError that names file, key, and what was expected.
    """

    def __init__(
        self,
        description: Mapping[str, Any],
        *,
        source: str = "space",
        program: Program | None = None,
    ) -> None:
        self.source = source
        self.program = program or Program()
        for key in description:
            _require_known(source, key, _TOP_KEYS)
        self.machine = self._word(description, "machine")
        self._options = self._read_options(self._table(description, "options"))
        self.base = self._machine_values()
        self._known_areas: dict[frozenset[tuple[str, KeyValue]], dict[str, Operand] | None] = {}
        self.axes = self._read_axes(self._table(description, "axes"))
        if "model" in self.axes:
            if "model" in description:
                raise _fail(source, "model", description["model"], "none beside axes.model")
            self.model = ""
        else:
            self.model = self._word(description, "model")
        self.constants = self._read_constants(self._table(description, "constants"))
        known = {*self._keys, *self.axes, *self._options, *self.constants}
        self.derived: dict[str, Expression] = {}
        for key, text in _flat_axes(self._table(description, "derived")).items():
            _require_known(source, key, self._keys, "derived.")
            if key in self.axes:
                raise _fail(source, f"derived.{key}", text, "a key that is no axis")
            self.derived[key] = self._expression(f"derived.{key}", text, known)
        constraints = description.get("constraints", [])
        if not isinstance(constraints, list):
            raise _fail(source, "constraints", constraints, "a list of expressions")
        self.constraints = [
            self._expression(f"constraints[{i}]", text, known, areas=True)
            for i, text in enumerate(constraints)
        ]
        self.search = self._read_search(self._table(description, "search"))
        self.objectives = [
            self._expression(f"search.objectives[{i}]", text, None)
            for i, text in enumerate(self.search.objectives)
        ]

    # Reading

    def _table(self, description: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        table = description.get(key, {})
        if not isinstance(table, Mapping):
            raise _fail(self.source, key, table, "a table")
        return table

    def _word(self, description: Mapping[str, Any], key: str) -> str:
        word = description.get(key)
        if not isinstance(word, str) or not word:
            raise _fail(self.source, key, word, "the name of one, or the path of a file")
        return word

    def _machine_values(self) -> Mapping[str, KeyValue]:
        """Of every key, whether this machine has a use for it or not."""
        self._keys = tuple(key.key for key in machine_keys(self.program))
        defaults = {key.key: key.default for key in machine_keys(self.program)}
        try:
            return defaults | flat(self.program.json(["machine", self.machine]))
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    def _read_options(self, table: Mapping[str, Any]) -> dict[str, KeyValue | bool]:
        options: dict[str, KeyValue | bool] = {"functional": False}
        if not table.get("decode"):  # of which each token is an inference
            options["limit"] = 1
        for key, value in table.items():
            self._require_option(f"options.{key}", key)
            if not isinstance(value, str | int | float):
                raise _fail(self.source, f"options.{key}", value, "a number, a word, true or false")
            options[key] = value
        return options

    def _require_option(self, place: str, key: str) -> None:
        known = [name for name in self.program.options("run") if name not in _NOT_SWEPT]
        _require_known(self.source, key, known, place.removesuffix(key))

    def _read_axes(self, table: Mapping[str, Any]) -> dict[str, tuple[KeyValue, ...]]:
        known = [name for name in self.program.options("run") if name not in _NOT_SWEPT]
        axes: dict[str, tuple[KeyValue, ...]] = {}
        for key, given in _flat_axes(table).items():
            _require_known(self.source, key, [*self._keys, "model", *known], "axes.")
            axes[key] = _values_of(self.source, f"axes.{key}", given)
            if key in self._options and key in table and key not in ("functional", "limit"):
                raise _fail(self.source, f"axes.{key}", given, "none beside options." + key)
        if not axes:
            raise _fail(self.source, "axes", {}, "at least one axis")
        return axes

    def _read_constants(self, table: Mapping[str, Any]) -> dict[str, int | float]:
        constants: dict[str, int | float] = {}
        for key, value in table.items():
            if not _is_number(value) or not key.isidentifier():
                raise _fail(self.source, f"constants.{key}", value, "a name and a number")
            constants[key] = value
        return constants

    def _areas(self, settings: Mapping[str, KeyValue] | None = None) -> dict[str, Operand] | None:
        """What the program says of a machine: `area_mm2`, and by block `area_mm2.array`.

        None if it refuses the machine.
        """
        found = frozenset((settings or {}).items())
        if found not in self._known_areas:
            arguments = ["machine", self.machine, *setting_arguments(settings or {}), "--costs"]
            try:
                costs = self.program.json(arguments)
            except InputError:
                if not settings:
                    raise
                self._known_areas[found] = None
            else:
                areas = {f"area_mm2.{block}": mm2 for block, mm2 in costs["area"].items()}
                self._known_areas[found] = {"area_mm2": costs["area_mm2"], **areas}
        return self._known_areas[found]

    def _expression(
        self, key: str, text: object, known: set[str] | None, *, areas: bool = False
    ) -> Expression:
        try:
            expression = Expression(text)
        except InputError as error:
            raise InputError(f"{self.source}: {key}: {error}") from None
        if known is not None:
            if areas and _reads_area(expression):
                known = known | set(self._areas() or ())
            for name in sorted(expression.names):
                if name not in known:
                    raise InputError(
                        f"{self.source}: {key}: {name}: unknown name, expected an axis, a machine "
                        "key, an option or a constant"
                    )
        return expression

    def _read_search(self, table: Mapping[str, Any]) -> Search:
        for key in table:
            _require_known(self.source, key, _SEARCH_KEYS, "search.")
        method = table.get("method", "grid")
        if method not in METHODS:
            raise _fail(self.source, "search.method", method, "one of " + ", ".join(METHODS))
        numbers = {}
        defaults = {"points": 0, "seed": Search.seed, "batch": Search.batch}
        for key, least in [("points", 0 if method == "grid" else 1), ("seed", 0), ("batch", 1)]:
            value = table.get(key, defaults[key])
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise _fail(self.source, f"search.{key}", value, f"a whole number from {least}")
            numbers[key] = value
        objectives = table.get("objectives", list(Search.objectives))
        if not isinstance(objectives, list) or not objectives:
            raise _fail(self.source, "search.objectives", objectives, "a list of expressions")
        return Search(method=method, objectives=tuple(objectives), **numbers)

    # Points

    @property
    def size(self) -> int:
        """Of the grid, points that break a constraint included."""
        return math.prod(len(values) for values in self.axes.values())

    def point(self, chosen: Mapping[str, KeyValue]) -> Point | None:
        """Of a value per axis; None if a constraint does not hold."""
        values: dict[str, Operand] = {**self.base, **self._options, **self.constants, **chosen}
        settings: dict[str, KeyValue] = {k: v for k, v in chosen.items() if k in self.base}
        for key, expression in self.derived.items():
            value = self._evaluate(f"derived.{key}", expression, values)
            if isinstance(value, float) and value.is_integer() and isinstance(self.base[key], int):
                value = int(value)
            values[key] = settings[key] = value
        for index, expression in enumerate(self.constraints):
            if _reads_area(expression):
                areas = self._areas(settings)
                if areas is None:  # the program refuses the machine, and says why when it runs
                    continue
                values |= areas
            if not self._evaluate(f"constraints[{index}]", expression, values):
                return None
        options = self._options | {
            k: v for k, v in chosen.items() if k not in self.base and k != "model"
        }
        return Point(dict(chosen), str(chosen.get("model", self.model)), settings, options)

    def _evaluate(self, key: str, expression: Expression, values: Mapping[str, Operand]) -> Operand:
        try:
            return expression(values)
        except InputError as error:
            raise InputError(f"{self.source}: {key}: {error}") from None

    def grid(self) -> Iterator[Point]:
        """Every point that meets the constraints, the last axis fastest."""
        for values in itertools.product(*self.axes.values()):
            point = self.point(dict(zip(self.axes, values, strict=True)))
            if point is not None:
                yield point

    def values_of(self, point: Point, metrics: Mapping[str, Operand]) -> list[float]:
        """Of the objectives, all to be made small."""
        values: dict[str, Operand] = {**self.base, **point.settings, **self.constants, **metrics}
        found = []
        for index, expression in enumerate(self.objectives):
            value = self._evaluate(f"search.objectives[{index}]", expression, values)
            if not _is_number(value) or not math.isfinite(float(value)):
                raise _fail(self.source, f"search.objectives[{index}]", value, "a number")
            found.append(float(value))
        return found


def _reads_area(expression: Expression) -> bool:
    return any(name.split(".")[0] == "area_mm2" for name in expression.names)


def _flat_axes(table: Mapping[str, Any]) -> dict[str, Any]:
    """`array.rows = [8]` in TOML is a table in a table, `"array.rows" = [8]` is not."""
    axes: dict[str, Any] = {}
    for key, given in table.items():
        if isinstance(given, Mapping) and not {"from", "to"} & set(given):
            axes |= {f"{key}.{name}": inner for name, inner in given.items()}
        else:
            axes[key] = given
    return axes


def load_space(path: str | Path, *, program: Program | None = None) -> Space:
    """Of a TOML file. Raises InputError that begins with its path."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}, expected a space file") from None
    if len(data) > _MAX_FILE:
        raise InputError(f"{path}: found {len(data)} bytes, expected at most {_MAX_FILE}")
    try:
        description = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: no TOML: {error}") from None
    return Space(description, source=str(path), program=program)
