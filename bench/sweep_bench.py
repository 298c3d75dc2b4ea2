"""What a point of a sweep costs, how many a minute there are, what kills do to 2,000 of them, and how
long a file of 100,000 results takes to answer.

usage: script/python bench/sweep_bench.py [POINTS]    (default: 2000; some minutes on two cores)
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import systole
from systole import InputError, Program, Store
from systole.exploration.store import metrics_of

SOURCE = Path(__file__).resolve().parents[1]
KILLS = 10
RESULTS = 100_000


def cpu_seconds(program: Program, arguments: list[str], times: int = 5) -> float:
    """Of a process, the least of several."""
    spent = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        program.call(arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def parts(program: Program) -> None:
    """Start-up, reading of the machine, mapping and simulation."""
    for machine, model in [("transformer", "vit65"), ("gemmini", "vit65"),
                           ("transformer", "bert-base")]:  # fmt: skip
        on = ["-m", machine, "--model", model]
        run = ["run", *on, "--functional", "off", "-n", "1", "--json"]
        costs = {
            "start": ["--version"],
            "machine": ["machine", machine, "--json"],
            "map": ["map", *on, "--json"],
            "run": run,
        }
        figures = [f"{name} {1e3 * cpu_seconds(program, a):.0f} ms" for name, a in costs.items()]
        print(f"{model} on {machine}: CPU of a process: " + ", ".join(figures))


def rate(name: str, machine: str, model: str, points: int, folder: Path) -> None:
    space = {
        "machine": machine,
        "model": model,
        "axes": {
            "array.rows": [8, 16, 32],
            "scratchpad.kib": [64, 128, 256],
            "bus.width_bytes": [8, 16, 32],
            "dma.outstanding_reads": {"from": 1, "to": 40, "step": 1},
        },
        "search": {"method": "random", "points": points},
    }
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = systole.sweep(space, store=folder / f"{name}.sqlite", workers=2)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"{name}: {found.computed} points in {wall:.1f} s: {60 * found.computed / wall:.0f} a "
        f"minute; {cpu / found.computed:.3f} s of CPU each: "
        f"{120 * found.computed / cpu:.0f} a minute on two free cores"
    )


def killed(points: int, folder: Path) -> None:
    """A sweep of `points` undisturbed and one whose driver is killed ten times."""
    space = folder / "killed.toml"
    space.write_text(
        'machine = "gemmini"\nmodel = "vit17"\n[axes]\n'
        '"bus.width_bytes" = [8, 16, 24, 32, 64]\n'
        '"dma.outstanding_reads" = { from = 1, to = 64, step = 1 }\n'
        '"bus.request_latency" = { from = 0, to = 30, step = 1 }\n'
        f'[search]\nmethod = "random"\npoints = {points}\n'
    )
    code = "import sys; from systole.exploration.command import main; sys.exit(main(sys.argv[1]))"

    def driver(store: str) -> subprocess.Popen[bytes]:
        request = json.dumps({"space": str(space), "store": str(folder / store), "workers": 2})
        return subprocess.Popen([sys.executable, "-c", code, request], stdout=subprocess.DEVNULL)

    def done(store: str) -> int:
        with contextlib.suppress(InputError), Store(folder / store, read_only=True) as reader:
            return len(reader.keys())
        return 0  # it has not begun

    def contents(store: str) -> list[object]:
        with Store(folder / store, read_only=True) as reader:
            return [
                reader.query(f"SELECT * FROM {t} ORDER BY key") for t in ("points", "documents")
            ]

    begin = time.monotonic()
    driver("whole.sqlite").wait()
    whole = time.monotonic() - begin
    dice, begin = random.Random(1), time.monotonic()
    for _ in range(KILLS):
        process, until = driver("parts.sqlite"), done("parts.sqlite")
        until += dice.randint(points // 40, points // 12)
        while done("parts.sqlite") < until:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = points - done("parts.sqlite")
    driver("parts.sqlite").wait()
    print(
        f"{points} points undisturbed {whole:.1f} s; killed {KILLS} times, the last time with "
        f"{left} to go, {time.monotonic() - begin:.1f} s; contents "
        + ("equal" if contents("whole.sqlite") == contents("parts.sqlite") else "DIFFER")
    )


def queried(results: int, folder: Path) -> None:
    """A file of many results, each a real one's figures with other cycles; documents left out."""
    one = systole.run("gemmini", "vit17", functional=False, limit=1)
    figures = metrics_of(one.json)
    settings = {"bus.width_bytes": 16, "dma.outstanding_reads": 8, "scratchpad.kib": 256}
    with Store(folder / "many.sqlite") as store:
        store.query("BEGIN")
        for i in range(results):
            metrics = figures | {"cycles": (i * 7919) % 100_003 + 1000}
            store.query(
                "INSERT INTO points VALUES (?, 'p', 'gemmini', 'vit17', ?, '{}', NULL, ?)",
                (f"{i:064}", json.dumps(settings), json.dumps(metrics)),
            )
        store.query("COMMIT")
    size = (folder / "many.sqlite").stat().st_size
    queries = {
        "the ten fastest": "SELECT key, metrics ->> '$.cycles' AS c FROM points ORDER BY c LIMIT 10",
        "the fastest by bus width": "SELECT settings ->> '$.\"bus.width_bytes\"' AS width, "
        "min(metrics ->> '$.cycles') FROM points GROUP BY width",
    }
    with Store(folder / "many.sqlite", read_only=True) as store:
        for name, query in queries.items():
            begin = time.process_time()
            store.query(query)
            spent = time.process_time() - begin
            print(f"{name} of {results} results: {spent:.2f} s ({size / results:.0f} bytes a row)")


def main() -> None:
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    os.environ.setdefault("SYSTOLE_PROGRAM", str(SOURCE / "build/release/systole"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts(Program())
        rate("vit65 on transformer", "transformer", "vit65", max(points // 5, 1), folder)
        rate("vit65 on gemmini", "gemmini", "vit65", max(points // 8, 1), folder)
        rate("BERT-Base at 128", "transformer", "bert-base", max(points // 40, 1), folder)
        killed(points, folder)
        queried(RESULTS, folder)


main()
