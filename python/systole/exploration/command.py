"""`systole sweep`: the program parses the command line and hands it on as one JSON argument."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from systole.errors import KilledError, SystoleError
from systole.exploration.plot import check_picture, write_plot
from systole.exploration.sweep import Sweep, sweep, write_whole

_SHOWN = 20  # points of the front


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines)


def report(found: Sweep) -> str:
    """Counts, and the Pareto front with its objectives."""
    failures = found.failures
    lines = [
        f"points    {len(found.entries)}, {found.computed} of them computed now, "
        f"{len(failures)} failed"
    ]
    if failures:
        lines.append(f"failure   {failures[0].row.error}".splitlines()[0])
    front = found.pareto()
    if front:
        names = [objective.text for objective in found.space.objectives]
        rows = [["", *found.space.axes, *names]]
        for number, entry in enumerate(front[:_SHOWN], 1):
            values = found.objectives(entry) or []
            rows.append([_text(v) for v in [number, *entry.point.axes.values(), *values]])
        lines += [f"front     {len(front)} points", "", _table(rows)]
        if len(front) > _SHOWN:
            lines.append(f"... and {len(front) - _SHOWN} more, see --csv")
    return "\n".join(lines)


def _stop(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def run(request: dict[str, Any]) -> int:
    """`space`, `store`, and as they were given `workers`, `dask`, `csv`, `plot`. The exit code."""
    for path in request.get("plot", []):
        check_picture(path)
    store = request.get("store") or str(Path(request["space"]).with_suffix(".sqlite"))
    try:
        found = sweep(
            request["space"],
            store=store,
            workers=request.get("workers"),
            dask=request.get("dask"),
        )
    except KeyboardInterrupt:
        print(f"systole: sweep: interrupted, {store} has what is done", file=sys.stderr)
        return 128 + signal.SIGINT
    if request.get("csv"):
        write_whole(request["csv"], found.csv().encode())
    for path in request.get("plot", []):
        write_plot(found, path)
    print(report(found), flush=True)
    for line in sorted(set(found.lost.values())):
        count = list(found.lost.values()).count(line)
        print(f"systole: sweep: {count} points without a result: {line}", file=sys.stderr)
    return 1 if found.lost else 0


def main(argument: str) -> int:
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    try:
        return run(json.loads(argument))
    except KilledError as error:
        print(f"systole: sweep: {error}", file=sys.stderr)
        return 1
    except SystoleError as error:
        for line in str(error).splitlines():
            print(f"systole: {line}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 2
