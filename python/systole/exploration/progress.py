"""A line on a terminal: how far a sweep is, how fast, how long it still takes."""

from __future__ import annotations

import sys
import time

_EVERY = 0.2  # seconds between two lines
_QUIET = 1.0  # seconds before the first


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """Nothing is printed where standard error is no terminal."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._begin = self._last = time.monotonic()
        self._shown = False

    def update(self, done: int, computed: int, failed: int, total: int) -> None:
        """`computed` of the `done` points were not in the file; `total` is the most to come."""
        now = time.monotonic()
        if not self._enabled or now - self._begin < _QUIET or now - self._last < _EVERY:
            return
        self._last = now
        self._shown = True
        text = f"sweep: {done}/{total} points"
        if failed:
            text += f", {failed} failed"
        if computed:
            rate = computed / (now - self._begin)
            text += f", {60 * rate:.0f} a minute, {duration((total - done) / rate)} left"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
