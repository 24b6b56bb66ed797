# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Runs in several processes: of this machine, or of a dask cluster. A process that dies takes its run with it, not the others."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import pickle
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

from fairlane_controller.program.registry import load_program

from fairlane_lab.estimates import sort_by_repeat_and_cost
from fairlane_lab.inputs import build_hashes, differences, digest_once, scenario_inputs
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep import runners
from fairlane_lab.sweep.runners import Failure, OnOutcome, Outcome, run_one

STALL_S = 1800.0
"""No run takes longer: when none finishes for so long, something hangs."""
CONNECT_S = 30
BATCH = 8
"""Runs of one task of a cluster: enough to hide dask's few milliseconds a task, few enough to lose little."""
AHEAD = 4
"""Tasks that each worker has at hand or in work."""
_PR_SET_PDEATHSIG = 1

Start = Callable[[ExitStack], "tuple[Executor, Callable[[], int]]"]
"""Starts workers, whose end is left to the stack; returns them and what counts them, since others may come. Raises RunError."""


class Workers:
    """Processes, started when they are first needed and kept for further campaigns; a context manager."""

    def __init__(self, runner: str, start: Start, batch: int = 1, stall_s: float = STALL_S) -> None:
        self._runner = runner
        self._start = start
        self._batch = batch
        self._patience_s = batch * stall_s
        self._stack = ExitStack()
        self._workers: tuple[Executor, Callable[[], int]] | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._workers = None
        self._stack.close()

    def execute(self, scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        """An `Executor`. Raises RunError when there are no workers, or when no task has ended for as long as its runs may take."""
        ordered = sort_by_repeat_and_cost(scenarios)
        left = deque(ordered[start : start + self._batch] for start in range(0, len(ordered), self._batch))
        suspects: list[Sequence[Scenario]] = []
        try:
            while left:
                lost = self._pass(left, on_outcome)
                suspects += lost
                if lost:
                    self.close()
            for group in suspects:  # one of them killed its process: each alone shows which
                if self._pass(deque([group]), on_outcome):
                    _fail(group, "its process died (a crash, or no memory)", on_outcome)
                    self.close()
        except BaseException:
            with contextlib.suppress(Exception):  # workers that Ctrl-C has ended too are no news
                self.close()
            raise

    def _pass(self, left: deque[list[Scenario]] | deque[Sequence[Scenario]], on_outcome: OnOutcome) -> list[Any]:
        """Run what is `left`, taking it out, until all is done or the pool breaks: then returns what was being run."""
        if self._workers is None:
            self._workers = self._start(self._stack)
        executor, count_workers = self._workers
        running: dict[Future[list[Outcome]], Sequence[Scenario]] = {}
        while left or running:
            try:
                while left and len(running) < AHEAD * max(1, count_workers()):
                    programs, ours = {scenario.program for scenario in left[0]}, _hashes(self._runner, left[0])
                    task = executor.submit(_run_batch, self._runner, programs, pickle.dumps(left[0]), ours)
                    running[task] = left.popleft()
                done, _ = wait(running, timeout=self._patience_s, return_when=FIRST_COMPLETED)
                if not done:
                    raise RunError(f"no run ended for {self._patience_s:g} s: given up")
                for future in done:
                    try:
                        outcomes = future.result()
                    except (BrokenProcessPool, RunError):  # RunError: a worker with another build
                        raise
                    except (CancelledError, Exception) as error:  # dask has tried it on several workers
                        _fail(running[future], f"lost by the cluster: {error!r}", on_outcome)
                        outcomes = []
                    del running[future]
                    for outcome in outcomes:
                        on_outcome(outcome)
            except BrokenProcessPool:
                return list(running.values())
        return []


def process_pool(runner: str, jobs: int, stall_s: float = STALL_S) -> Workers:
    """`jobs` processes of this machine."""

    def start(stack: ExitStack) -> tuple[Executor, Callable[[], int]]:
        others = {child.pid for child in multiprocessing.active_children()}
        pool = ProcessPoolExecutor(jobs, _Context(), initializer=_prepare_worker)
        stack.callback(_end_pool, pool, others)
        return pool, lambda: jobs

    return Workers(runner, start, stall_s=stall_s)


def dask_cluster(
    runner: str,
    scheduler: str | None = None,
    workers: int | None = None,
    batch: int = BATCH,
    stall_s: float = STALL_S,
) -> runners.Executor:
    """The scheduler at `scheduler`, or `workers` processes of this machine (default: its cores), anew for each campaign.

    A task whose worker dies is made again elsewhere by dask, three times; then its runs are failures.
    """

    def start(stack: ExitStack) -> tuple[Executor, Callable[[], int]]:
        from distributed import Client, LocalCluster

        address: Any = scheduler
        try:
            if scheduler is None:
                options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
                address = stack.enter_context(
                    LocalCluster(n_workers=workers, silence_logs=logging.CRITICAL, memory_limit=0, **options)
                )
            client: Any = stack.enter_context(Client(address, timeout=CONNECT_S, set_as_default=False))
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError) as error:
            raise RunError(
                f"the dask scheduler {scheduler or 'of this machine'} has no workers for us: {error}"
            ) from error
        # One that dies just now is left out: whoever takes its place is asked with its first runs.
        for worker, theirs in sorted(client.run(_hashes, runner, on_error="ignore").items()):
            _check_build(f"worker {worker}", theirs, _hashes(runner))
        return client.get_executor(pure=False, retries=0), lambda: len(client.nthreads())

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        try:
            with Workers(runner, start, batch, stall_s) as cluster:
                cluster.execute(scenarios, on_outcome)
        except OSError as error:
            raise RunError(f"the dask scheduler {scheduler or 'of this machine'} is gone: {error}") from error

    return execute


def _hashes(runner: str, scenarios: Iterable[Scenario] = ()) -> dict[str, str]:
    """Of this process's fairlane, and of the files that scenarios name."""
    files = dict.fromkeys(each for scenario in scenarios for each in scenario_inputs(scenario))
    own = {f"{each.kind} {each.given}": digest_once(each) for each in files}
    return {**build_hashes(runner == runners.KERNEL), **own}


def _check_build(worker: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Raises RunError for a worker that has not what the campaign was started with: its runs would be of something else."""
    if different := differences({name: ours.get(name, "") for name in theirs}, theirs):
        raise RunError(
            f"{worker} has another fairlane, or other files: {'; '.join(different)}: every machine needs the same"
        )


def _run_batch(runner: str, programs: Iterable[str], scenarios: bytes, ours: Mapping[str, str]) -> list[Outcome]:
    """`scenarios` are pickled: their settings may be of classes of a folder's program, which has to be loaded first.

    Raises RunError where this process, which may have come later, is of another build.
    """
    worker = f"worker {socket.gethostname()}, which came later,"
    _check_build(worker, _hashes(runner), ours)
    for program in programs:
        load_program(program)
    batch: list[Scenario] = pickle.loads(scenarios)
    _check_build(worker, _hashes(runner, batch), ours)
    return [run_one(runner, scenario) for scenario in batch]


def _fail(scenarios: Sequence[Scenario], error: str, on_outcome: OnOutcome) -> None:
    for each in scenarios:
        on_outcome(Outcome(each, None, Failure(each.point, each.repeat, error)))


def _end_pool(pool: ProcessPoolExecutor, others: set[int | None]) -> None:
    pool.shutdown(wait=False, cancel_futures=True)
    for child in multiprocessing.active_children():
        if child.pid not in others:
            child.terminate()
            child.join(timeout=10)


class _Process(SpawnProcess):
    """A new process that does not run the user's script again: no run needs anything of it, and it may have no `__main__` guard."""

    def start(self) -> None:
        """As of its base, which hands over what `__main__` is."""
        script, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = script


class _Context(SpawnContext):
    Process = _Process


def _prepare_worker() -> None:
    """Ctrl-C ends a worker at once and silently; so does the end of the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
