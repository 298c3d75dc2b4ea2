"""Picture of an architecture search: wrong answers over energy times delay."""

from __future__ import annotations

from pathlib import Path

from systole.architecture.search import Search
from systole.exploration.plot import check_picture, write_figure
from systole.extras import require


def write_plot(result: Search, machine: str, path: Path) -> None:
    """HTML, which needs no network, or PNG, for which kaleido needs a Chromium."""
    check_picture(path)
    graphs = require("plotly.graph_objects", "sweep")
    front = result.pareto()
    shapes = {one.shape for one in front}
    rest = [one for one in result.candidates if one.shape not in shapes]
    made = graphs.Figure()
    for name, members, look in (
        ("other networks", rest, {"color": "#b0b7c3"}),
        ("Pareto front of error, cycles, energy", front, {"color": "#c0392b", "size": 8}),
    ):
        made.add_trace(
            graphs.Scatter(
                x=[one.cycles for one in members],
                y=[100 * one.error for one in members],
                mode="markers",
                marker=look,
                hovertext=[f"{one.shape}: {1e6 * one.energy_joules:.1f} uJ" for one in members],
                name=name,
            )
        )
    made.update_xaxes(title="cycles of an inference", type="log")
    made.update_yaxes(title="wrong answers, %")
    made.update_layout(template="plotly_white", title=f"networks of the digits on {machine}")
    write_figure(made, path, 900, 600)
