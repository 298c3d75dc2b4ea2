"""Pictures of a sweep."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import systole
from systole import InputError, Sweep
from test_sweep import small

pytest.importorskip("plotly")

from systole.exploration.plot import figure, write_plot


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    store = tmp_path_factory.mktemp("plot") / "a.sqlite"
    axes = {"bus.width_bytes": [8, 16, 24, 32], "mapper.fusion": ["library", "off"]}
    return systole.sweep(small(axes=axes), store=store, progress=False)


def test_the_figure_has_every_point_once(found: Sweep) -> None:
    others, front, coordinates = figure(found).data
    assert len(found.to_frame()) == len(found.entries)
    marked = [*zip(others.x, others.y, strict=True), *zip(front.x, front.y, strict=True)]
    scores = [found.objectives(entry) for entry in found.entries]
    assert sorted(map(list, marked)) == sorted(score for score in scores if score is not None)
    assert list(front.x) == [(found.objectives(e) or [])[0] for e in found.pareto()]
    best = found.pareto()[0].point.axes
    assert list(front.text) == [str(i + 1) for i in range(len(found.pareto()))]
    assert all(f"{key} {value}" in front.hovertext[0] for key, value in best.items())
    axes = {dimension.label: dimension for dimension in coordinates.dimensions}
    assert list(axes) == ["bus.width_bytes", "mapper.fusion", "cycles", "energy_joules"]
    assert list(axes["mapper.fusion"].ticktext) == ["library", "off"]
    places = [axes["mapper.fusion"].ticktext[i] for i in axes["mapper.fusion"].values]
    good = [entry for entry in found.entries if entry.row.error is None]
    assert places == [entry.point.axes["mapper.fusion"] for entry in good]
    assert list(axes["cycles"].values) == [entry.row.metrics["cycles"] for entry in good]


def test_html_needs_no_network(found: Sweep, tmp_path: Path) -> None:
    write_plot(found, tmp_path / "front.html")
    text = (tmp_path / "front.html").read_text()
    assert "Plotly.newPlot" in text and 'src="http' not in text
    assert [file.name for file in tmp_path.iterdir()] == ["front.html"]


def test_png(found: Sweep, tmp_path: Path) -> None:
    if not any(map(shutil.which, ("chromium", "google-chrome", "chrome"))):
        pytest.skip("NO CHROMIUM: pictures as PNG are not tested")
    write_plot(found, tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_nothing_to_draw(found: Sweep, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no point has a result"):
        write_plot(Sweep(found.space), tmp_path / "front.html")
    with pytest.raises(InputError, match=r"front\.pdf: expected"):
        write_plot(found, tmp_path / "front.pdf")
