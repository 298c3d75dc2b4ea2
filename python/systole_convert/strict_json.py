"""JSON files that people and programs supply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import ConvertError

MAX_BYTES = 100_000_000


def parse(text: bytes, place: object) -> Any:
    """The document; no key twice, no NaN, no number that Python cannot hold."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise ConvertError(place, f"the key '{key}' occurs twice")
                seen.add(key)
        return result

    def constant(word: str) -> None:
        raise ConvertError(place, f"found {word}, expected a finite number")

    # A parser in C that recurses: depth is looked at first, roughly and on the safe side.
    if text.count(b"[") + text.count(b"{") > 500_000:
        raise ConvertError(place, "more than 500000 objects and lists")
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except ConvertError:
        raise
    except (ValueError, RecursionError, UnicodeError) as error:
        raise ConvertError(place, f"not valid JSON: {error}") from None


def load(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConvertError(path, f"more than {MAX_BYTES} bytes of JSON")
        values = parse(path.read_bytes(), path)
    except OSError as error:
        raise ConvertError(path, error.strerror or "cannot be read") from None
    if not isinstance(values, dict):
        raise ConvertError(path, "expected a JSON object")
    return values


class Config:
    """Keys of a configuration, checked as they are asked for."""

    def __init__(self, place: object, values: dict[str, Any]) -> None:
        self.place = place
        self.values = values

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def count(self, key: str, default: int | None = None, low: int = 1, high: int = 1 << 20) -> int:
        value = self.values.get(key)
        if value is None:
            value = default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConvertError(
                self.place,
                f"'{key}': found {value!r:.40}, expected a whole number from {low} to {high}",
            )
        return value

    def real(
        self, key: str, default: float | None = None, low: float = 0.0, high: float = 1e9
    ) -> float:
        value = self.values.get(key)
        if value is None:
            value = default
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not low <= float(value) <= high:  # type: ignore[arg-type]
            raise ConvertError(
                self.place,
                f"'{key}': found {value!r:.40}, expected a number from {low:g} to {high:g}",
            )
        return float(value)  # type: ignore[arg-type]

    def word(self, key: str, default: str | None = None, allowed: tuple[str, ...] = ()) -> str:
        value = self.values.get(key)
        if value is None:
            value = default
        if not isinstance(value, str) or (allowed and value not in allowed):
            expected = ", ".join(allowed) if allowed else "a text"
            raise ConvertError(self.place, f"'{key}': found {value!r:.40}, expected {expected}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        if value is None:
            value = default
        if not isinstance(value, bool):
            raise ConvertError(self.place, f"'{key}': found {value!r:.40}, expected true or false")
        return value

    def reals(self, key: str, default: list[float], count: int) -> list[float]:
        value = self.values.get(key)
        if value is None:
            value = default
        if (
            not isinstance(value, list)
            or len(value) != count
            or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in value)
        ):
            raise ConvertError(self.place, f"'{key}': expected a list of {count} numbers")
        return [float(x) for x in value]
