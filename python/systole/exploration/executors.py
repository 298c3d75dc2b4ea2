"""Where simulations run: a pool of processes here, or the workers of a Dask cluster.

An executor only computes. The driver alone writes results.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from systole.errors import InputError
from systole.extras import require
from systole.pool import Pool
from systole.program import Outcome, Program

_RECOUNT = 2.0  # seconds


@dataclass(frozen=True)
class Lost:
    """No outcome: whatever ran it is gone."""

    line: str


class Executor(Protocol):
    @property
    def workers(self) -> int:
        """Simulations at once."""

    def submit(self, arguments: Sequence[str]) -> Future[Outcome]: ...

    def close(self, *, kill: bool) -> None: ...


class LocalExecutor:
    def __init__(self, program: Program, workers: int | None) -> None:
        self._pool = Pool(workers, program=program)

    @property
    def workers(self) -> int:
        return self._pool.workers

    def submit(self, arguments: Sequence[str]) -> Future[Outcome]:
        return self._pool.call(arguments)

    def close(self, *, kill: bool) -> None:
        self._pool.close(kill=kill)


@functools.cache
def _own_pool() -> Pool:
    """Of a process of the cluster: the digest of its program is computed once."""
    return Pool()


def simulate_on_worker(arguments: Sequence[str], digest: str) -> Outcome:
    """Raises InputError if the worker has another build than the driver."""
    pool = _own_pool()
    program = pool.program
    if program.digest != digest:
        raise InputError(f"{program.path}: another build than the driver's, expected the same file")
    return pool.call(arguments).result()


class DaskExecutor:
    """`where`: a scheduler's address (tcp://HOST:PORT), local:N processes, or slurm:N jobs.

    Slurm's jobs are described as dask-jobqueue describes them, in jobqueue.yaml.
    """

    def __init__(self, program: Program, where: str) -> None:
        kind, _, count = where.partition(":")
        own = kind in ("local", "slurm")
        if own and (not count.isdecimal() or int(count) < 1):
            raise InputError(f"dask: found {where!r}, expected {kind}:N, N from 1")
        if not own and "://" not in where:
            raise InputError(
                f"dask: found {where!r}, expected a scheduler's address, local:N or slurm:N"
            )
        distributed = require("distributed", "dask")
        self._program = program
        self._cluster: Any = None
        if own:
            make = self.slurm_cluster if kind == "slurm" else self.local_cluster
            self._cluster = make(int(count))
        address = self._cluster if own else where
        try:
            self._client = distributed.Client(address, timeout=30, set_as_default=False)
            self._client.wait_for_workers(1, timeout=600)
        except (OSError, TimeoutError) as error:
            self._close_cluster()
            raise InputError(
                f"dask: {where}: {error or 'no answer'}, expected a scheduler"
            ) from None
        self._executor = self._client.get_executor(pure=False)
        self._workers, self._counted = 1, -_RECOUNT

    @property
    def workers(self) -> int:
        """Threads of all workers; jobs of a queue come one after the other."""
        now = time.monotonic()
        if now - self._counted >= _RECOUNT:
            self._workers = max(sum(self._client.nthreads().values()), 1)
            self._counted = now
        return self._workers

    @staticmethod
    def local_cluster(count: int) -> Any:
        return require("distributed", "dask").LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None
        )

    @staticmethod
    def slurm_cluster(count: int) -> Any:
        jobqueue = require("dask_jobqueue", "dask")
        try:
            cluster = jobqueue.SLURMCluster()
        except (ValueError, OSError) as error:
            raise InputError(f"dask: slurm: {error}") from None
        cluster.scale(jobs=count)
        return cluster

    def submit(self, arguments: Sequence[str]) -> Future[Outcome]:
        future: Future[Outcome] = self._executor.submit(
            simulate_on_worker, list(arguments), self._program.digest
        )
        return future

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def close(self, *, kill: bool) -> None:
        if kill:
            self._executor.shutdown(wait=False)
        self._client.close()
        self._close_cluster()


def outcome_of(future: Future[Outcome]) -> Outcome | Lost:
    """Of a future that is done. Raises InputError of a worker that cannot take part."""
    error = future.exception() if not future.cancelled() else None
    if future.cancelled():
        return Lost("cancelled")
    if isinstance(error, InputError):
        raise error
    if error is not None:  # a worker died, or the connection to it
        return Lost(f"{type(error).__name__}: {error}".splitlines()[0])
    outcome = future.result()
    return Lost(outcome.line) if outcome.was_killed else outcome
