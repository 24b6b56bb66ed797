# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Runs in several processes: any executor of concurrent.futures. Those of this machine, or the workers of a dask scheduler.

A process that dies takes its run with it, not the others.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import pickle
import signal
import socket
import sys
import weakref
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any

from fairlane_controller.program.registry import load_program

from fairlane_lab.inputs import build_hashes, digest_once, scenario_inputs
from fairlane_lab.run_result import KERNEL, RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep import runners
from fairlane_lab.sweep.runners import OnOutcome, Outcome, run_one

STALL_S = 1800.0
LONG_S = 100.0
"""No run of LONG_S simulated seconds takes longer than STALL_S, and a longer one in proportion: when none finishes for so long, something hangs."""
CONNECT_S = 30
AHEAD = 4
"""Runs that each worker has at hand or in work."""
_PR_SET_PDEATHSIG = 1

Workers = tuple[Executor, Callable[[], int]]
"""Workers, and what counts them, since others may come."""
Start = Callable[[], AbstractContextManager[Workers]]
"""Starts workers, which end with the block at the latest when it fails, whatever they are doing. Raises RunError."""


def executor_of(runner: str, start: Start, stall_s: float = STALL_S) -> runners.Executor:
    """An executor of a campaign. It raises RunError when there are no workers, or when no run has ended for `stall_s` seconds: as much more
    as the longest run at work is longer than LONG_S."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        # What is interrupted has something of every point; long runs first, so that workers end together.
        left = deque(sorted(scenarios, key=lambda each: (each.repeat, -each.duration_s)))
        suspects: list[Scenario] = []
        while left:
            suspects += run_until_lost(left, on_outcome)
        for each in suspects:  # one of them killed its process: each alone shows which
            for lost in run_until_lost(deque([each]), on_outcome):
                on_outcome(Outcome(lost, None, "its process died (a crash, or no memory)"))

    def run_until_lost(left: deque[Scenario], on_outcome: OnOutcome) -> list[Scenario]:
        """Run what is `left`, taking it out, until all is done or the pool breaks: then returns what was being run."""
        running: dict[Future[Outcome], Scenario] = {}
        ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
        limit_s = stall_s
        try:
            with start() as (executor, count_workers):
                while left or running:
                    while left and len(running) < AHEAD * max(1, count_workers()):
                        pickled, ours = pickle.dumps(left[0]), _hashes(runner, left[0])
                        task = executor.submit(_work, runner, left[0].program, pickled, ours)
                        running[task] = left.popleft()
                        task.add_done_callback(ended.put)
                    longest_s = max(each.duration_s for each in running.values())
                    limit_s = stall_s * max(1.0, longest_s / LONG_S)
                    done = ended.get(timeout=limit_s)
                    error = CancelledError() if done.cancelled() else done.exception()
                    if isinstance(error, BrokenProcessPool | RunError):  # RunError: a worker with another build
                        raise error
                    scenario = running.pop(done)
                    on_outcome(Outcome(scenario, None, f"lost by the cluster: {error!r}") if error else done.result())
        except Empty:
            raise RunError(f"no run ended for {limit_s:g} s: given up") from None
        except BrokenProcessPool:
            return list(running.values())
        return []

    return execute


def process_pool(runner: str, jobs: int, stall_s: float = STALL_S) -> runners.Executor:
    """`jobs` processes of this machine, which stay for further campaigns of the same executor."""
    pools: list[tuple[ProcessPoolExecutor, set[int | None]]] = []

    @contextmanager
    def start() -> Generator[Workers]:
        if not pools:
            others = {child.pid for child in multiprocessing.active_children()}
            pools.append((ProcessPoolExecutor(jobs, _Context(), initializer=_prepare_worker), others))
        try:
            yield pools[0][0], lambda: jobs
        except BaseException:
            pool, others = pools.pop()
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child.pid not in others:
                    child.terminate()
                    child.join(timeout=10)
            raise

    execute = executor_of(runner, start, stall_s)
    # In this thread and to its end: a pool that a thread of its own still closes when Python ends is reported as an error there.
    weakref.finalize(execute, _shut_down, pools)
    return execute


def _shut_down(pools: list[tuple[ProcessPoolExecutor, set[int | None]]]) -> None:
    while pools:
        pools.pop()[0].shutdown()


def dask_cluster(runner: str, scheduler: str, stall_s: float = STALL_S) -> runners.Executor:
    """The workers of the dask scheduler at `scheduler`. A run whose worker dies is made again elsewhere by dask, three times; then it is a failure."""

    @contextmanager
    def start() -> Generator[Workers]:
        try:
            with _connect(scheduler) as client:
                yield client.get_executor(pure=False, retries=0), lambda: len(client.nthreads())
        except OSError as error:
            raise RunError(f"the dask scheduler {scheduler} is gone: {error}") from error

    return executor_of(runner, start, stall_s)


def _connect(scheduler: str) -> Any:
    from distributed import Client

    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
        client.wait_for_workers(1, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(f"the dask scheduler {scheduler} has no workers for us: {error}") from error
    return client


def _hashes(runner: str, scenario: Scenario) -> dict[str, str]:
    """Of this process's fairlane, and of the files that a scenario names."""
    own = {f"{each.kind} {each.given}": digest_once(each) for each in scenario_inputs(scenario)}
    return {**build_hashes(runner == KERNEL), **own}


def _work(runner: str, program: str, pickled: bytes, ours: Mapping[str, str]) -> Outcome:
    """One run in a worker. Its settings may be of classes of a folder's program, which has to be loaded first.

    Raises RunError where this process is of another build, or has other files: its runs would be of something else.
    """
    check_build(build_hashes(runner == KERNEL), ours)
    load_program(program)
    scenario: Scenario = pickle.loads(pickled)
    check_build(_hashes(runner, scenario), ours)
    return run_one(runner, scenario)


def check_build(theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Raises RunError for a worker that has not what the campaign was started with."""
    both = [(name, value, ours.get(name, "")) for name, value in theirs.items()]
    if different := [f"{name} is {value}, here {own}" for name, value, own in both if value != own]:
        text = f"worker {socket.gethostname()} has another fairlane, or other files: {'; '.join(different)}"
        raise RunError(f"{text}: every machine needs the same, and a running campaign no change")


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
