"""Sweeps on a cluster: the same file, whatever computes it and whatever dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import systole
from systole import InputError, Program
from systole.exploration.executors import simulate_on_worker
from test_sweep import contents, small

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster() -> Any:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


def test_a_cluster_writes_the_same_file_though_workers_are_killed(
    tmp_path: Path, cluster: Any, quick: dict[str, Any]
) -> None:
    quick["axes"]["dma.outstanding_reads"] = [1, 2, 4]
    systole.sweep(quick, store=tmp_path / "a.sqlite", progress=False)
    victims = []

    def kill() -> None:
        for _ in range(2):
            time.sleep(0.5)
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                pids = client.run(os.getpid)
            victims.append(next(iter(pids.values())))
            os.kill(victims[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = systole.sweep(
        quick, store=tmp_path / "b.sqlite", dask=cluster.scheduler_address, progress=False
    )
    killer.join()
    assert len(set(victims)) == 2
    assert not found.lost and found.computed == len(found.entries) == 75
    assert contents(tmp_path / "b.sqlite") == contents(tmp_path / "a.sqlite")


def test_a_cluster_of_its_own_and_errors(tmp_path: Path) -> None:
    found = systole.sweep(small(), store=tmp_path / "a.sqlite", dask="local:1", progress=False)
    assert found.computed == 6 and len(found.failures) == 2
    for where, line in [
        ("many", "expected a scheduler's address, local:N or slurm:N"),
        ("local:0", "expected local:N, N from 1"),
        ("slurm:x", "expected slurm:N, N from 1"),
    ]:
        with pytest.raises(InputError, match=line):
            systole.sweep(small(), store=tmp_path / "a.sqlite", dask=where, progress=False)
    with pytest.raises(InputError, match="workers and dask"):
        systole.sweep(small(), store=tmp_path / "a.sqlite", dask="local:1", workers=1)


def test_a_worker_with_another_build_is_refused(program: Program) -> None:
    assert simulate_on_worker(["--version"], program.digest).out.startswith("systole ")
    with pytest.raises(InputError, match="another build than the driver's"):
        simulate_on_worker(["--version"], "0" * 64)


def test_slurm_jobs_are_what_jobqueue_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script of a job; no Slurm runs it."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    from systole.exploration.executors import DaskExecutor

    scaled: list[int] = []
    monkeypatch.setattr(jobqueue.SLURMCluster, "scale", lambda self, jobs: scaled.append(jobs))
    with pytest.raises(InputError, match=r"dask: slurm: .*cores"):
        DaskExecutor.slurm_cluster(3)
    job = {"cores": 4, "memory": "8GB", "queue": "short"}
    settings = {f"jobqueue.slurm.{key}": value for key, value in job.items()}
    with dask.config.set(settings), DaskExecutor.slurm_cluster(3) as cluster:
        script = cluster.job_script()
    assert scaled[0] == 3
    assert "#SBATCH -p short" in script and "distributed.cli.dask_worker" in script
    assert "#SBATCH --cpus-per-task=4" in script
