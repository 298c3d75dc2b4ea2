"""Sweeps as jobs of a real Slurm on this machine: one controller and one node on the loopback.

Needs slurmctld, slurmd and the commands sbatch and scancel, and root, as which slurmd starts jobs
(`script/bootstrap --slurm`); without them it is skipped, and says so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import systole
from conftest import SOURCE
from systole import Program
from test_sweep import contents

dask = pytest.importorskip("dask")
pytest.importorskip("dask_jobqueue")

COMMANDS = ("slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "squeue")
MISSING = [
    name for name in COMMANDS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None
]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {', '.join(MISSING)} not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="slurmd starts jobs as root only"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configuration(place: Path) -> str:
    host = socket.gethostname()
    return f"""
ClusterName=systole
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmctldPidFile={place}/ctld.pid
SlurmdPidFile={place}/d.pid
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldLogFile={place}/ctld.log
SlurmdLogFile={place}/d.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its directory. The daemons end with the test."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    config = tmp_path / "slurm.conf"
    config.write_text(configuration(tmp_path))
    (tmp_path / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    monkeypatch.setenv("SLURM_CONF", str(config))
    daemons = [
        subprocess.Popen([name, "-D", "-f", str(config)], stdout=log, stderr=log)
        for name in ("slurmctld", "slurmd")
        for log in [(tmp_path / f"{name}.out").open("w")]
    ]
    try:
        for _ in range(120):
            state = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False
            )
            if "idle" in state.stdout:
                break
            assert all(d.poll() is None for d in daemons), log_of(tmp_path)
            time.sleep(0.25)
        else:
            pytest.fail(log_of(tmp_path))
        yield tmp_path
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(20)


def log_of(place: Path) -> str:
    """The ends of what the daemons wrote."""
    return "\n".join(
        "\n".join(path.read_text().splitlines()[-8:])
        for path in sorted([*place.glob("*.out"), *place.glob("*.log")])
    )


def jobs() -> list[str]:
    listed = subprocess.run(
        ["squeue", "-h", "-o", "%i"], capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def test_jobs_of_slurm_write_the_same_file(
    slurm: Path, tmp_path: Path, quick: dict[str, Any], program: Program
) -> None:
    quick["axes"]["dma.outstanding_reads"] = [1, 2]
    systole.sweep(quick, store=tmp_path / "a.sqlite", progress=False)
    settings = {
        "cores": 1,
        "processes": 1,
        "memory": "1GB",
        "walltime": "00:05:00",
        "interface": "lo",
        "python": sys.executable,
        "local-directory": str(tmp_path),
        "log-directory": str(tmp_path),
        "job-script-prologue": [
            f"export PYTHONPATH={SOURCE / 'python'}:{SOURCE / 'tests/python'}",
            f"export SYSTOLE_PROGRAM={program.path}",
        ],
        # The memory of a job is no resource of this cluster.
        "job-directives-skip": ["--mem"],
    }
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in settings.items()}):
        found = systole.sweep(quick, store=tmp_path / "b.sqlite", dask="slurm:2", progress=False)
    assert not found.lost and found.computed == len(found.entries) == 50
    assert contents(tmp_path / "b.sqlite") == contents(tmp_path / "a.sqlite")
    for _ in range(80):  # cancelled with the cluster
        if not jobs():
            return
        time.sleep(0.25)
    pytest.fail(f"jobs {jobs()} still run: {log_of(slurm)}")
