"""Sweeps: resumed, killed, searched; nothing lost, nothing twice."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import systole
from conftest import SOURCE, children_of, toml_of, write_script
from systole import InputError, KilledError, Program, Space, Store, Sweep
from systole.exploration.store import Row, metrics_of
from systole.exploration.sweep import AHEAD


def contents(path: Path) -> list[list[tuple[Any, ...]]]:
    """All that a store has."""
    with Store(path, read_only=True) as store:
        return [
            store.query(f"SELECT * FROM {table} ORDER BY key") for table in ("points", "documents")
        ]


def small(**more: Any) -> dict[str, Any]:
    return {
        "machine": "gemmini",
        "model": "vit17",
        "options": {"strategy": "gemmini"},
        "axes": {"bus.width_bytes": [8, 16, 24], "bus.request_latency": [0, 8]},
    } | more


def test_every_point_is_a_run_of_the_program(tmp_path: Path) -> None:
    found = systole.sweep(small(), store=tmp_path / "a.sqlite", progress=False)
    assert found.computed == len(found.entries) == 6
    entry = found.entries[1]
    assert entry.point.axes == {"bus.width_bytes": 8, "bus.request_latency": 8}
    alone = systole.run(
        systole.Machine("gemmini", entry.point.axes),
        "vit17",
        strategy="gemmini",
        limit=1,
        functional=False,
    )
    assert entry.row.metrics == metrics_of(alone.json)
    assert entry.row.metrics["cycles"] == alone.cycles
    with Store(tmp_path / "a.sqlite", read_only=True) as store:
        document = store.document(entry.row.key)
    assert document is not None
    assert document["blocks"] == alone.json["blocks"]


def test_failures_are_kept_with_their_line(tmp_path: Path) -> None:
    for computed in (6, 0):
        found = systole.sweep(small(), store=tmp_path / "a.sqlite", progress=False)
        assert found.computed == computed
        assert [entry.point.axes["bus.width_bytes"] for entry in found.failures] == [24, 24]
        for entry in found.failures:
            assert entry.row.error == (
                '--set bus.width_bytes: found "24", expected a power of two (bytes, 1 to 256)'
            )
    assert [record["error"] is None for record in found.records()] == [True] * 4 + [False] * 2
    lines = found.csv().splitlines()
    assert len(lines) == 7 and lines[0].startswith("bus.width_bytes,bus.request_latency,")
    assert lines[1].split(",")[:2] == ["8", "0"]


def test_a_larger_sweep_uses_what_a_smaller_one_left(tmp_path: Path) -> None:
    store = tmp_path / "a.sqlite"
    systole.sweep(small(), store=store, progress=False)
    axes = {"bus.width_bytes": [16, 32], "bus.request_latency": [0, 8]}
    assert systole.sweep(small(axes=axes), store=store, progress=False).computed == 2
    # The same machine described in another way.
    axes = {"bus.width_bytes": [16]}
    same = {"axes": axes, "derived": {"bus.request_latency": "bus.width_bytes / 2"}}
    assert systole.sweep(small(**same), store=store, progress=False).computed == 0
    # Another machine, other options, another model, each with all else the same.
    for other in (
        {"derived": {"bus.request_latency": "7"}},
        {"options": {"strategy": "gemmini", "limit": 2}},
        {"options": {"strategy": "gemmini", "functional": True}},
        {"model": "vit65"},
    ):
        for computed in (1, 0):
            found = systole.sweep(small(**same | other), store=store, progress=False)
            assert found.computed == computed


def test_another_build_computes_anew(tmp_path: Path, program: Program) -> None:
    other = tmp_path / "systole"
    other.write_text(f'#!/bin/sh\nexec {program.path} "$@"\n')
    other.chmod(0o755)
    space = small(axes={"bus.width_bytes": [8]})
    for built, computed in ((program, 1), (Program(other), 1), (program, 0)):
        found = systole.sweep(space, store=tmp_path / "a.sqlite", program=built, progress=False)
        assert found.computed == computed


def test_a_model_file_is_known_by_its_bytes(tmp_path: Path) -> None:
    model = tmp_path / "net.int8.safetensors"
    for name, computed in (("vit17", 1), ("vit17-post", 1), ("vit17", 0)):
        model.write_bytes((SOURCE / f"traces/models/{name}.int8.safetensors").read_bytes())
        space = small(model=str(model), axes={"bus.width_bytes": [8]})
        found = systole.sweep(space, store=tmp_path / "a.sqlite", progress=False)
        assert found.computed == computed


def test_a_known_model_and_pictures_are_known_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SOURCE / "traces/machines", tmp_path / "machines")
    shutil.copytree(SOURCE / "traces/data", tmp_path / "data")
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("SYSTOLE_DATA", str(tmp_path))
    weights = (SOURCE / "traces/models/vit17.int8.safetensors").read_bytes()
    other = bytearray(weights)
    other[-1] ^= 1
    black, white = bytes([0] * 64), bytes([255] * 64)
    for model, picture, computed in (
        (weights, black, 1),
        (bytes(other), black, 1),
        (weights, white, 1),
        (weights, black, 0),
    ):
        (tmp_path / "models/vit17.int8.safetensors").write_bytes(model)
        (tmp_path / "a.pgm").write_bytes(b"P5 8 8 255\n" + picture)
        space = small(axes={"bus.width_bytes": [8]})
        space["options"] = {"functional": True, "input": str(tmp_path / "a.pgm")}
        found = systole.sweep(space, store=tmp_path / "a.sqlite", progress=False)
        assert not found.failures and found.computed == computed


def test_tokens_one_by_one(tmp_path: Path) -> None:
    space = small(model="gpt2", axes={"past": [0, 8]}, machine="tiny")
    space["options"] = {"decode": True, "length": 2, "layers": 1, "heads": 2, "d": 16, "ffn": 16}
    space["axes"]["postop.row_statistics"] = [1024]
    found = systole.sweep(space, store=tmp_path / "a.sqlite", progress=False)
    assert [entry.row.error for entry in found.entries] == [None, None]
    assert found.entries[0].row.metrics["images"] == 2


def test_the_model_can_be_an_axis(tmp_path: Path) -> None:
    space = small(axes={"model": ["vit17", "bert-base"], "layers": [1]}, options={"length": 16})
    del space["model"]
    found = systole.sweep(space, store=tmp_path / "a.sqlite", progress=False)
    assert [entry.row.model for entry in found.entries] == ["vit17", "bert-base"]
    assert found.entries[0].row.error and not found.entries[1].row.error  # vit17 has its own length
    space["axes"] = {"model": ["vit18"]}
    with pytest.raises(InputError, match=r"^space: .*vit18"):
        systole.sweep(space, store=tmp_path / "a.sqlite", progress=False)


def wrapped(tmp_path: Path, program: Program) -> Path:
    """A program that keeps a list of its runs."""
    script = tmp_path / "systole"
    lines = f'case "$*" in run*--json) echo "$@" >>{tmp_path}/log;; esac\n'
    write_script(script, lines, program)
    return script


def runs(tmp_path: Path) -> list[str]:
    log = tmp_path / "log"
    return log.read_text().splitlines() if log.exists() else []


def simulations_of(pid: int) -> list[int]:
    """Processes of the program that a driver's workers have begun."""
    return [simulation for worker in children_of(pid) for simulation in children_of(worker)]


def test_a_sweep_killed_ten_times_has_the_same_contents(
    tmp_path: Path, program: Program, quick: dict[str, Any]
) -> None:
    script = wrapped(tmp_path, program)
    space, workers, kills, dice = tmp_path / "space.toml", 2, 10, random.Random(1)
    space.write_text(toml_of(quick))
    environment = os.environ | {
        "SYSTOLE_PROGRAM": str(script),
        "PYTHONPATH": str(SOURCE / "python"),
    }

    def driver(store: str) -> subprocess.Popen[bytes]:
        request = {"space": str(space), "store": str(tmp_path / store), "workers": workers}
        code = "import sys; from systole.exploration.command import main; main(sys.argv[1])"
        return subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(request)],
            env=environment,
            stdout=subprocess.PIPE,
        )

    undisturbed, _ = driver("a.sqlite").communicate()
    assert undisturbed.startswith(b"points    200, 200 of them computed now, 40 failed")
    once = runs(tmp_path)
    assert len(once) == len(set(once)) == 200
    (tmp_path / "log").unlink()

    victims = 0
    for _ in range(kills):
        process, before = driver("b.sqlite"), len(runs(tmp_path))
        until, spared = before + dice.randint(3, 15), True
        while len(runs(tmp_path)) < until:
            assert process.poll() is None
            # Workers too: a point that a signal ended is tried again.
            if spared and dice.random() < 0.3:
                for child in simulations_of(process.pid):
                    os.kill(child, signal.SIGKILL)
                    victims, spared = victims + 1, False
            time.sleep(0.005)
        process.kill()
        process.communicate()
    with Store(tmp_path / "b.sqlite", read_only=True) as store:
        assert 0 < len(store.keys()) < 200  # the last kill was not too late
    driver("b.sqlite").communicate()
    assert contents(tmp_path / "b.sqlite") == contents(tmp_path / "a.sqlite")
    # Only what was under way when something was killed has begun twice: of a driver what it had
    # submitted, of a worker its point.
    again = runs(tmp_path)
    assert set(again) == set(once)
    assert len(again) - len(once) <= kills * AHEAD * workers + victims
    assert victims > 0

    finished, _ = driver("b.sqlite").communicate()
    assert finished.startswith(b"points    200, 0 of them computed now, 40 failed")
    assert len(runs(tmp_path)) == len(again)


def test_a_point_whose_process_is_always_killed_is_no_failure(
    tmp_path: Path, program: Program
) -> None:
    """The next call tries it again; a grid goes on with the others, a search cannot."""
    pytest.importorskip("optuna")
    script = tmp_path / "systole"
    lines = f'case "$*" in run*width_bytes=16*) [ -e {tmp_path}/calm ] || kill -KILL $$;; esac\n'
    write_script(script, lines, program)
    built, store = Program(script), tmp_path / "a.sqlite"
    found = systole.sweep(small(), store=store, program=built, progress=False)
    assert list(found.lost.values()) == ["ended by SIGKILL"] * 2
    assert len(found.entries) == found.computed == 4 and len(found.failures) == 2
    space = small(search={"method": "tpe", "points": 40, "batch": 8})
    with pytest.raises(KilledError, match=r"width_bytes.*SIGKILL"):
        systole.sweep(space, store=store, program=built, progress=False)
    (tmp_path / "calm").touch()
    found = systole.sweep(small(), store=store, program=built, progress=False)
    assert not found.lost and len(found.entries) == 6 and found.computed == 2


def test_a_point_is_tried_again_within_a_call(tmp_path: Path, program: Program) -> None:
    """Every run is killed twice before it may end."""
    script = tmp_path / "systole"
    lines = (
        'case "$*" in run*--json)\n'
        f'  tries="{tmp_path}/$(echo "$*" | tr -c "a-z0-9\\n" _)"\n'
        '  [ -e "$tries.2" ] || { [ -e "$tries.1" ] && touch "$tries.2"; touch "$tries.1"\n'
        "    kill -KILL $$; };;\n"
        "esac\n"
    )
    write_script(script, lines, program)
    store = tmp_path / "a.sqlite"
    found = systole.sweep(small(), store=store, program=Program(script), progress=False)
    assert not found.lost and found.computed == 6 and len(found.failures) == 2
    assert len(list(tmp_path.glob("run_*.2"))) == 6


@pytest.mark.parametrize("method", ["random", "nsga2", "tpe"])
def test_a_search_is_the_same_when_it_is_begun_anew(
    method: str, tmp_path: Path, quick: dict[str, Any]
) -> None:
    if method != "random":
        pytest.importorskip("optuna")
    search = {"method": method, "points": 40, "seed": 3, "batch": 8}
    space = Space(quick | {"search": search})

    def asked(found: Sweep) -> list[str]:
        return [entry.row.key for entry in found.entries]

    first = systole.sweep(space, store=tmp_path / "a.sqlite", workers=1, progress=False)
    assert first.computed == len(first.entries) <= 40
    # From a file with a part of it, with other workers.
    part = Space(quick | {"search": search | {"points": 16}})
    some = systole.sweep(part, store=tmp_path / "b.sqlite", workers=2, progress=False)
    rest = systole.sweep(space, store=tmp_path / "b.sqlite", workers=2, progress=False)
    assert asked(rest) == asked(first)
    assert rest.computed <= first.computed - (0 if method == "random" else some.computed)
    assert systole.sweep(space, store=tmp_path / "b.sqlite", progress=False).computed == 0
    other = Space(quick | {"search": search | {"seed": 4}})
    different = systole.sweep(other, store=tmp_path / "c.sqlite", progress=False)
    assert set(asked(different)) != set(asked(first))


def test_random_points_are_distinct_and_meet_the_constraints(quick: dict[str, Any]) -> None:
    from systole.exploration.search import batches

    constraint = "bus.width_bytes + bus.request_latency > 20"
    for wanted in (10, 100, 1000):
        space = Space(
            quick | {"constraints": [constraint], "search": {"method": "random", "points": wanted}}
        )
        points = next(batches(space))
        assert len(points) == min(wanted, len(list(space.grid())))
        assert len({tuple(point.axes.values()) for point in points}) == len(points)
        assert all(
            p.axes["bus.width_bytes"] + p.axes["bus.request_latency"] > 20  # type: ignore[operator]
            for p in points
        )


def test_nsga2_finds_a_front_that_random_points_do_not(tmp_path: Path) -> None:
    """On a known function of the axes; the program is not asked."""
    pytest.importorskip("optuna")
    from systole.exploration.search import batches

    def hypervolume(method: str, seed: int) -> float:
        space = Space(
            {
                "machine": "tiny",
                "model": "vit17",
                "axes": {
                    k: {"from": 0, "to": 40, "step": 1}
                    for k in ("bus.request_latency", "bus.response_latency", "core.loop_cycles")
                },
                "search": {"method": method, "points": 400, "seed": seed, "batch": 40},
            }
        )
        search, best, found = batches(space), [], None
        while True:
            try:
                points = next(search) if found is None else search.send(found)
            except StopIteration:
                break
            found = []
            for point in points:
                a, b, c = (float(v) for v in point.axes.values())
                found.append([a + (b - c) ** 2, (40 - a) + (b - 20) ** 2])
            best += found
        best = sorted(v for v in best if v is not None and max(v) < 100)
        volume, low = 0.0, 100.0
        for x, y in best:
            if y < low:
                volume += (100 - x) * (low - y)
                low = y
        return volume

    for seed in (1, 2):
        assert hypervolume("nsga2", seed) > hypervolume("random", seed)


def test_pareto_front(tmp_path: Path) -> None:
    dice = random.Random(5)
    space = Space(
        {
            "machine": "tiny",
            "model": "vit17",
            "axes": {"array.rows": [4]},
            "search": {"objectives": ["x", "y * 2"]},
        }
    )
    point = next(space.grid())
    rows = [
        Row(str(i), "p", "tiny", "vit17", {}, {}, "failed" if i % 7 == 0 else None,
            {"x": (x := dice.randrange(12)), "y": dice.randrange(max(10 - x, 1), 14)})
        for i in range(120)
    ]  # fmt: skip
    from systole.exploration.sweep import Entry

    found = Sweep(space, [Entry(point, row) for row in rows])
    good = [row for row in rows if row.error is None]

    def beats(a: Row, b: Row) -> bool:
        pairs = [(a.metrics[name], b.metrics[name]) for name in "xy"]
        return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)

    wanted = {
        (row.metrics["x"], row.metrics["y"])
        for row in good
        if not any(beats(other, row) for other in good)
    }
    front = [(e.row.metrics["x"], e.row.metrics["y"]) for e in found.pareto()]
    assert set(front) == wanted and len(front) == len(wanted) > 1
    assert front == sorted(front)


def test_one_sweep_writes_a_file_at_a_time(tmp_path: Path) -> None:
    store = tmp_path / "a.sqlite"
    with (
        Store(store),
        Store(store, read_only=True) as reader,
        pytest.raises(InputError, match=r"a\.sqlite: another sweep writes it"),
    ):
        assert reader.keys() == set()
        systole.sweep(small(), store=store, progress=False)
    systole.sweep(small(), store=store, progress=False)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("some notes, and more than a few of them\n" * 40)
    with pytest.raises(InputError, match=r"text\.sqlite: .*expected results of a sweep"):
        Store(text)
    assert text.read_text().startswith("some notes")
    foreign = tmp_path / "foreign.sqlite"
    import sqlite3

    with sqlite3.connect(foreign) as base:
        base.execute("CREATE TABLE mine (a)")
    with pytest.raises(InputError, match="another file"):
        Store(foreign)
    with pytest.raises(InputError, match="no such directory"):
        Store(tmp_path / "none" / "a.sqlite")
    with pytest.raises(InputError, match="no such file"):
        Store(tmp_path / "none.sqlite", read_only=True)


def test_a_row_and_its_document_are_written_together(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        row = Row("k", "p", "m", "n", {}, {}, None, {})
        with pytest.raises(TypeError):
            store.add(row, {"not": object()})
        assert store.keys() == set()
        store.add(row, {"cycles": 3, "wall_seconds": 1.5})
        store.add(Row("k", "other", "m", "n", {}, {}, None, {}), {"cycles": 4})
        assert store.row("k") == row
        assert store.document("k") == {"cycles": 3}
        assert store.document("none") is None


def test_many_results_are_queried_within_a_second(tmp_path: Path) -> None:
    """10^5 rows with as many figures as a run has."""
    figures = {f"figure{i}": 1.25e-6 * i for i in range(25)}
    with Store(tmp_path / "a.sqlite") as store:
        store.query("BEGIN")
        for i in range(100_000):
            metrics = json.dumps(figures | {"cycles": (i * 7919) % 100_003})
            store.query(
                "INSERT INTO points VALUES (?, 'p', 'm', 'n', '{}', '{}', NULL, ?)",
                (f"{i:064}", metrics),
            )
        store.query("COMMIT")
        begin = time.process_time()
        rows = store.query(
            "SELECT key, metrics ->> '$.cycles' AS cycles FROM points ORDER BY cycles LIMIT 10"
        )
        spent = time.process_time() - begin
    assert [cycles for _, cycles in rows] == list(range(10))
    assert spent < 1


def command(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`systole sweep`, which becomes this interpreter."""
    environment = os.environ | {"SYSTOLE_PYTHON": sys.executable} | more
    return subprocess.run(
        [str(Program().path), "sweep", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_programs_subcommand(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(toml_of(small()))
    package = str(SOURCE / "python")
    done = command(tmp_path, "space.toml", "-j", "1", "--csv", "all.csv", PYTHONPATH=package)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("points    6, 6 of them computed now, 2 failed\n")
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert len(lines) == 7
    kept = {"space.toml", "space.sqlite", "space.sqlite-lock", "all.csv"}
    assert {file.name for file in tmp_path.iterdir()} == kept
    for arguments, line in [
        (["none.toml"], "none.toml: No such file"),
        (["space.toml", "-o", "none/a.sqlite"], "none/a.sqlite: no such directory"),
        (["space.toml", "--csv", "none/a.csv"], "none/a.csv: No such file or directory"),
        (["space.toml", "--plot", "a.pdf"], "a.pdf: expected a file that ends in .html or .png"),
        (["space.toml", "--dask", "many"], "dask: found 'many', expected a scheduler's address"),
    ]:
        done = command(tmp_path, *arguments, PYTHONPATH=package)
        assert done.returncode == 2 and done.stdout == "", arguments
        assert done.stderr.count("\n") == 1 and line in done.stderr, done.stderr
    assert {file.name for file in tmp_path.iterdir()} == kept


def test_the_program_says_how_to_install_the_package(tmp_path: Path) -> None:
    for python in (sys.executable, "/no/python"):
        done = command(tmp_path, "space.toml", SYSTOLE_PYTHON=python, PYTHONPATH="")
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
        expected = "pip install ." if python == sys.executable else "/no/python: No such file"
        assert expected in done.stderr


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, quick: dict[str, Any]) -> None:
    (tmp_path / "space.toml").write_text(toml_of(quick))
    environment = os.environ | {
        "SYSTOLE_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE / "python"),
    }
    process = subprocess.Popen(
        [str(Program().path), "sweep", "space.toml"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    store = tmp_path / "space.sqlite"
    for _ in itertools.count():
        assert process.poll() is None
        with contextlib.suppress(InputError), Store(store, read_only=True) as reader:
            if len(reader.keys()) > 3:
                break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert err == b"systole: sweep: interrupted, space.sqlite has what is done\n"
    with Store(store, read_only=True) as reader:
        assert 3 < len(reader.keys()) < 200
        assert all("expected a power of two" in row.error for row in reader.rows() if row.error)


def test_progress_says_how_long_it_still_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from systole.exploration import progress

    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = progress.Progress()
    line.update(11, 1, 0, 100)  # too early
    now += 3
    line.update(60, 30, 2, 100)
    line.update(61, 31, 2, 100)  # too soon after the last one
    line.close()
    shown = "\r\x1b[Ksweep: 60/100 points, 2 failed, 600 a minute, 0:04 left\r\x1b[K"
    assert capsys.readouterr().err == shown
    assert progress.duration(3725.4) == "1:02:05"
    silent = progress.Progress(enabled=False)
    now += 3
    silent.update(1, 1, 0, 2)
    silent.close()
    assert capsys.readouterr().err == ""
