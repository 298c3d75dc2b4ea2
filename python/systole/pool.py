"""Several simulations at once, each in a separate process.

SystemC elaborates once per process, and a process that crashes or runs out of memory takes no other
simulation with it. Threads wait for the processes, so no work is done under Python's lock. Each
has a worker, which copies itself for every simulation.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from systole.commands import MachineLike, arguments_of, program_of, result_of
from systole.errors import InputError, KilledError
from systole.program import Option, Outcome, Program
from systole.result import Result
from systole.worker import Worker


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


class Pool:
    """At most `workers` processes of the program at a time; all cores without.

    >>> with Pool(2) as pool:
    ...     results = [pool.run("transformer", "vit17", limit=1) for _ in range(4)]
    ...     cycles = [result.result().cycles for result in results]

    Leaving the `with` waits for what was submitted; after an exception it ends the processes.
    """

    def __init__(self, workers: int | None = None, *, program: Program | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers: found {workers}, expected a whole number from 1")
        self.workers = workers or cores()
        self.program = program or Program()
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="systole")
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def call(self, arguments: Sequence[str], program: Program | None = None) -> Future[Outcome]:
        """One process with that command line; the future has exit code and output."""
        return self._threads.submit(self._call, program or self.program, list(arguments))

    def run(self, machine: MachineLike, model: str | Path, **options: Option) -> Future[Result]:
        """As `systole.run()`, of which the future has result or error."""
        program = program_of(machine, self.program)
        arguments = arguments_of(program, "run", machine, model, options)

        def work() -> Result:
            document = self._call(program, [*arguments, "--json"]).document()
            return result_of(document, program, machine, model, options)

        return self._threads.submit(work)

    def processes(self) -> list[int]:
        """Process ids of the simulations under way."""
        with self._lock:
            under_way = [worker.simulation for worker in self._workers]
        return [process for process in under_way if process is not None]

    def close(self, *, kill: bool = False) -> None:
        """Waits for the simulations, or ends them and drops what has not begun."""
        if kill:
            self._end_workers()
        self._threads.shutdown(wait=True, cancel_futures=kill)
        self._end_workers()
        for worker in self._workers:
            worker.wait()
        self._workers.clear()

    def _end_workers(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.close()

    def _worker(self, program: Program) -> Worker:
        with self._lock:
            if self._closed:
                raise KilledError("the pool was closed")
            for worker in self._idle:
                if worker.program == program:
                    self._idle.remove(worker)
                    return worker
            worker = Worker(program)
            self._workers.append(worker)
            return worker

    def _call(self, program: Program, arguments: list[str]) -> Outcome:
        worker = self._worker(program)
        try:
            return worker.call(arguments)
        finally:
            with self._lock:
                if worker.usable:
                    self._idle.append(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(kill=error is not None)
