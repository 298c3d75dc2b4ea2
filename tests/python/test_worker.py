"""A worker's calls end as processes of their own do, whatever happens to them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import SOURCE, children_of
from systole import InputError, KilledError, Program
from systole.worker import Worker

LONG = ["run", "-m", "transformer", "--model=gpt2-large", "--functional=off", "--length=1024"]


@pytest.fixture
def worker(program: Program) -> Iterator[Worker]:
    worker = Worker(program)
    yield worker
    worker.close()
    worker.wait()


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)


def simulation_of(worker: Worker) -> int:
    """Once it has begun."""
    wait_for(lambda: worker.simulation is not None)
    assert worker.simulation is not None
    return worker.simulation


def ended(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def without_host_times(text: str) -> str:
    return re.sub(r'"(wall_seconds|cycles_per_second)": [^,\n]*', "", text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "-m", "tiny", "--model", "vit17", "-n", "2", "--check", "--json"],
        ["run", "-m", "tiny", "--model", "vit17", "-n", "2", "--min-accuracy", "1", "--json"],
        ["run", "-m", "gemmini", "--model", "vit65", "--functional", "off", "-n", "1", "--json"],
        ["run", "-m", "nowhere", "--model", "vit17"],
        ["run", "--no-such-option"],
        ["machine", "transformer", "--set", "scratchpad.kib=12", "--set", "dma.width=x"],
        ["map", "-m", "gemmini", "--model", "vit17"],
        ["analyse", "--model", "bert-base", "-m", "gemmini", "--json"],
        ["--version"],
        ["run", "--help"],
        ["worker"],
        [],
        ["model", "", "ä\n"],
    ],
)
def test_a_call_ends_as_a_process_does(worker: Worker, arguments: list[str]) -> None:
    alone = worker.program.call(arguments)
    for _ in range(2):
        here = worker.call(arguments)
        assert (here.code, here.err) == (alone.code, alone.err)
        assert without_host_times(here.out) == without_host_times(alone.out)
    assert worker.usable and worker.simulation is None


def test_a_call_runs_in_the_folder_of_the_caller(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('base = "tiny"\n')
    assert worker.call(["machine", "mine.toml", "--json"]).code == 2
    monkeypatch.chdir(tmp_path)
    assert worker.call(["machine", "mine.toml", "--json"]).code == 0


def test_what_no_message_can_be(worker: Worker) -> None:
    with pytest.raises(InputError, match=r"^command line: found 300\d\d\d bytes, expected at most"):
        worker.call(["run", "-m" + "x" * 300_000])
    with pytest.raises(InputError, match=r"^command line: found a zero byte"):
        worker.call(["run", "\0"])
    assert worker.call(["--version"]).code == 0


def test_a_simulation_that_is_killed_leaves_the_worker(worker: Worker) -> None:
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(worker.call(LONG)))
    thread.start()
    os.kill(simulation_of(worker), signal.SIGKILL)
    thread.join()
    assert outcomes[0].code == -signal.SIGKILL and outcomes[0].was_killed
    assert worker.call(["--version"]).code == 0


def test_a_worker_that_is_killed_takes_its_simulation_along(worker: Worker) -> None:
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(worker.call(LONG)))
    thread.start()
    simulation = simulation_of(worker)
    parent = Path(f"/proc/{simulation}/stat").read_text().rsplit(")", 1)[1].split()[1]
    os.kill(int(parent), signal.SIGKILL)
    thread.join()
    assert outcomes[0].was_killed and not worker.usable
    wait_for(lambda: ended(simulation))
    assert worker.call(["--version"]).was_killed


def test_closing_ends_the_simulation(worker: Worker) -> None:
    errors = []

    def call() -> None:
        try:
            worker.call(LONG)
        except KilledError as error:
            errors.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    simulation = simulation_of(worker)
    worker.close()
    thread.join()
    assert errors == ["the pool was closed"]
    wait_for(lambda: ended(simulation))


def test_no_simulation_outlives_a_driver_that_is_killed() -> None:
    code = f"from systole import Pool; Pool(1).call({LONG}).result()"
    environment = os.environ | {"PYTHONPATH": str(SOURCE / "python")}
    driver = subprocess.Popen([sys.executable, "-c", code], env=environment)

    def simulations() -> list[int]:
        return [pid for worker in children_of(driver.pid) for pid in children_of(worker)]

    wait_for(lambda: bool(simulations()))
    (simulation,) = simulations()
    driver.kill()
    driver.wait()
    wait_for(lambda: ended(simulation))


def test_only_a_socket_of_the_package_is_served(program: Program) -> None:
    done = subprocess.run(
        program.command(["worker"]), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        b"systole: worker: standard input: found something else, expected a socket of the package "
        b"systole\n"
    )


def test_a_program_without_workers(tmp_path: Path) -> None:
    script = tmp_path / "systole"
    script.write_text('#!/bin/sh\necho "systole: no worker here" >&2\nexit 2\n')
    script.chmod(0o755)
    outcome = Worker(Program(script)).call(["--version"])
    assert (outcome.code, outcome.err) == (2, "systole: no worker here\n")
