"""Pictures of a sweep: its Pareto front, and all points as parallel coordinates."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from systole.errors import InputError
from systole.exploration.space import Point
from systole.exploration.sweep import Sweep, write_whole
from systole.extras import require

ENDINGS = (".html", ".png")
_WIDTH, _HEIGHT = 1000, 900


def check_picture(path: str | Path) -> None:
    if Path(path).suffix not in ENDINGS:
        raise InputError(f"{path}: expected a file that ends in " + " or ".join(ENDINGS))


def _label(point: Point) -> str:
    """Only the axes: `array.rows 16, scratchpad.kib 64`."""
    return ", ".join(f"{key} {value}" for key, value in point.axes.items())


def figure(sweep: Sweep) -> Any:
    """A plotly figure of the first two objectives (of one: by it alone) and of all axes."""
    graphs = require("plotly.graph_objects", "sweep")
    subplots = require("plotly.subplots", "sweep")
    entries = [entry for entry in sweep.entries if entry.row.error is None]
    if not entries:
        raise InputError(f"{sweep.space.source}: no point has a result, expected one to plot")
    names = [objective.text for objective in sweep.space.objectives]
    scores = {entry.row.key: sweep.objectives(entry) or [] for entry in entries}
    across, up = names[0], names[min(1, len(names) - 1)]
    place = (0, min(1, len(names) - 1))
    made = subplots.make_subplots(
        rows=2,
        cols=1,
        specs=[[{"type": "xy"}], [{"type": "domain"}]],
        subplot_titles=["points of the front: their numbers in the table", ""],
        vertical_spacing=0.16,
        row_heights=[0.58, 0.42],
    )
    front = sweep.pareto()
    best = {entry.row.key for entry in front}
    for name, members, look in (
        ("other points", [e for e in entries if e.row.key not in best], {"color": "#b0b7c3"}),
        ("Pareto front", front, {"color": "#c0392b", "size": 8}),
    ):
        is_front = members is front
        labels = [str(i + 1) if is_front else "" for i in range(len(members))]
        made.add_trace(
            graphs.Scatter(
                x=[scores[e.row.key][place[0]] for e in members],
                y=[scores[e.row.key][place[1]] for e in members],
                mode="markers+text" if is_front else "markers",
                marker=look,
                text=labels,
                textposition="top right",
                textfont={"size": 10},
                hovertext=[_label(e.point) for e in members],
                name=name,
            ),
            row=1,
            col=1,
        )
    made.add_trace(_coordinates(graphs, sweep, entries, scores), row=2, col=1)
    made.update_xaxes(title=across, row=1, col=1)
    made.update_yaxes(title=up, row=1, col=1)
    made.update_layout(template="plotly_white", title=f"{sweep.space.machine}, {sweep.space.model}")
    return made


def _coordinates(graphs: Any, sweep: Sweep, entries: Any, scores: Mapping[str, list[float]]) -> Any:
    dimensions: list[dict[str, Any]] = []
    for key, values in sweep.space.axes.items():
        chosen = [entry.point.axes[key] for entry in entries]
        order = list(values) if any(isinstance(v, str) for v in values) else sorted(values)
        places = {value: place for place, value in enumerate(order)}
        dimensions.append(
            {
                "label": key,
                "values": [places[value] for value in chosen],
                "tickvals": list(range(len(order))) if len(order) <= 12 else None,
                "ticktext": [str(value) for value in order] if len(order) <= 12 else None,
            }
        )
    for index, objective in enumerate(sweep.space.objectives):
        reached = [scores[entry.row.key][index] for entry in entries]
        dimensions.append({"label": objective.text, "values": reached})
    first = [scores[entry.row.key][0] for entry in entries]
    return graphs.Parcoords(
        dimensions=dimensions, line={"color": first, "colorscale": "Viridis", "reversescale": True}
    )


def write_plot(sweep: Sweep, path: str | Path) -> None:
    """HTML, which needs no network, or PNG, for which kaleido needs a Chromium."""
    check_picture(path)
    write_figure(figure(sweep), path, _WIDTH, _HEIGHT)


def write_figure(made: Any, path: str | Path, width: int, height: int) -> None:
    """A plotly figure as HTML or PNG, as the file's ending says; `width`, `height`: pixels."""
    if Path(path).suffix == ".html":
        write_whole(path, made.to_html(include_plotlyjs=True).encode())
        return
    require("kaleido", "sweep")
    picture = b""
    with contextlib.suppress(RuntimeError, ValueError, OSError):
        picture = made.to_image(format="png", width=width, height=height, scale=1)
    if not picture:
        raise InputError(f"{path}: kaleido found no Chromium, expected one, or a file .html")
    write_whole(path, picture)
