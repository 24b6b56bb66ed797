# SPDX-License-Identifier: Apache-2.0
"""Runs in several processes of this machine. A process that dies takes its run with it, not the others."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import signal
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.estimates import by_repeat_and_cost
from fairlane_lab.sweep.runners import Failure, OnOutcome, Outcome, run_one

STALL_S = 1800.0
"""No run takes longer: when none finishes for so long, something hangs."""
_PR_SET_PDEATHSIG = 1


class ProcessPool:
    """`jobs` processes, started when they are first needed and kept for further campaigns; a context manager."""

    def __init__(self, runner: str, jobs: int, stall_s: float = STALL_S) -> None:
        self._runner = runner
        self._jobs = jobs
        self._stall_s = stall_s
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[int | None] = set()

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child.pid not in self._others:
                child.terminate()
                child.join(timeout=10)
        self._pool = None

    def execute(self, scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        """An `Executor`."""
        left = by_repeat_and_cost(scenarios)
        suspects: list[Scenario] = []
        try:
            while left:
                held = self._pass(left, on_outcome, self._jobs)
                suspects += held
                if not held:
                    break
                self.close()
            for scenario in suspects:  # one of them killed its process: each alone shows which
                if self._pass([scenario], on_outcome, 1):
                    on_outcome(_failed(scenario, "its process died (a crash, or no memory)"))
                    self.close()
        except BaseException:
            self.close()
            raise

    def _pass(self, left: list[Scenario], on_outcome: OnOutcome, jobs: int) -> list[Scenario]:
        """Run what is `left`, taking it out, until all is done or a process dies: then returns what was being run."""
        pool = self._started()
        running: dict[Future[Outcome], Scenario] = {}
        while left or running:
            try:
                while left and len(running) < 2 * jobs:
                    running[pool.submit(run_one, self._runner, left[0])] = left[0]
                    left.pop(0)
            except BrokenProcessPool:
                return list(running.values())
            done, _ = wait(running, timeout=self._stall_s, return_when=FIRST_COMPLETED)
            if not done:
                self.close()
                for scenario in running.values():
                    on_outcome(_failed(scenario, f"no result in {self._stall_s:.0f} s: given up"))
                return [] if not left else self._pass(left, on_outcome, jobs)
            for future in done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    return list(running.values())
                del running[future]
                on_outcome(outcome)
        return []

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._others = {child.pid for child in multiprocessing.active_children()}
            self._pool = ProcessPoolExecutor(self._jobs, multiprocessing.get_context("spawn"), initializer=_worker)
        return self._pool


def _failed(scenario: Scenario, error: str) -> Outcome:
    return Outcome(scenario, None, Failure(scenario.point, scenario.repeat, error))


def _worker() -> None:
    """Ctrl-C ends a worker at once and silently; so does the end of the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
