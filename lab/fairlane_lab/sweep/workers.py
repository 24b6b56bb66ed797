# SPDX-License-Identifier: Apache-2.0
"""Runs in several processes of this machine."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import pickle
import signal
import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import Empty, SimpleQueue
from types import ModuleType

from fairlane_controller.program.registry import load_program

from fairlane_lab.estimates import sort_by_repeat_and_cost
from fairlane_lab.inputs import build_hashes, differences, digest_once, scenario_inputs
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep import runners
from fairlane_lab.sweep.runners import OnOutcome, Outcome, failed, run_one

STALL_S = 1800.0
"""No run takes longer: when none finishes for so long, something hangs."""
AHEAD = 4
"""Runs that each process has at hand or in work."""
_PR_SET_PDEATHSIG = 1


def process_pool(runner: str, jobs: int, stall_s: float = STALL_S) -> runners.Executor:
    """`jobs` processes of this machine, which stay for further campaigns of the same executor.

    A process that dies takes its run with it, not the others. Raises RunError when no run has ended for `stall_s` seconds.
    """
    pools: list[tuple[ProcessPoolExecutor, set[int | None]]] = []

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        left = deque(sort_by_repeat_and_cost(scenarios))
        suspects: list[Scenario] = []
        while left:
            suspects += run_until_lost(left, on_outcome)
        for each in suspects:  # one of them killed its process: each alone shows which
            for lost in run_until_lost(deque([each]), on_outcome):
                on_outcome(failed(lost, "its process died (a crash, or no memory)"))

    def run_until_lost(left: deque[Scenario], on_outcome: OnOutcome) -> list[Scenario]:
        """Run what is `left`, taking it out, until all is done or the pool breaks: then returns what was being run."""
        running: dict[Future[Outcome], Scenario] = {}
        ended: SimpleQueue[Future[Outcome]] = SimpleQueue()
        try:
            with _ended_on_failure(pools, jobs) as pool:
                while left or running:
                    while left and len(running) < AHEAD * jobs:
                        each = left.popleft()
                        task = pool.submit(_work, runner, each.program, pickle.dumps(each), _hashes(runner, each))
                        running[task] = each
                        task.add_done_callback(ended.put)
                    done = ended.get(timeout=stall_s)
                    error = done.exception()
                    if isinstance(error, BrokenProcessPool | RunError):  # RunError: a process with another build
                        raise error
                    scenario = running.pop(done)
                    on_outcome(failed(scenario, f"lost by its process: {error!r}") if error else done.result())
        except Empty:
            raise RunError(f"no run ended for {stall_s:g} s: given up") from None
        except BrokenProcessPool:
            return list(running.values())
        return []

    return execute


@contextmanager
def _ended_on_failure(
    pools: list[tuple[ProcessPoolExecutor, set[int | None]]], jobs: int
) -> Generator[ProcessPoolExecutor]:
    """The pool of `pools`, made where there is none; its processes end with the block when it fails, whatever they are doing."""
    if not pools:
        others = {child.pid for child in multiprocessing.active_children()}
        pools.append((ProcessPoolExecutor(jobs, _Context(), initializer=_prepare_worker), others))
    try:
        yield pools[0][0]
    except BaseException:
        pool, others = pools.pop()
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child.pid not in others:
                child.terminate()
                child.join(timeout=10)
        raise


def _work(runner: str, program: str, pickled: bytes, ours: Mapping[str, str]) -> Outcome:
    """One run in a worker. Its settings may be of classes of a folder's program, which has to be loaded first.

    Raises RunError where this process has read another fairlane or other files than the one that started it: its runs would be of something else.
    """
    _check_same(build_hashes(runner == runners.KERNEL), ours)
    load_program(program)
    scenario: Scenario = pickle.loads(pickled)
    _check_same(_hashes(runner, scenario), ours)
    return run_one(runner, scenario)


def _hashes(runner: str, scenario: Scenario) -> dict[str, str]:
    own = {f"{each.kind} {each.given}": digest_once(each) for each in scenario_inputs(scenario)}
    return {**build_hashes(runner == runners.KERNEL), **own}


def _check_same(mine: Mapping[str, str], ours: Mapping[str, str]) -> None:
    if different := differences({name: ours.get(name, "") for name in mine}, mine):
        raise RunError(f"fairlane, or a file, has changed since the campaign began: {'; '.join(different)}")


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
