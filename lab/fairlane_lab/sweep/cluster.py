# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
"""Runs on dask.distributed: a cluster of this machine by default, any scheduler by its address."""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Generator, Sequence
from typing import Any

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.estimates import by_repeat_and_cost
from fairlane_lab.sweep.pool import STALL_S
from fairlane_lab.sweep.runners import Executor, Failure, OnOutcome, Outcome, run_one

CONNECT_S = 30
BATCH = 8
"""Runs of one task: enough to hide dask's few milliseconds a task, few enough to lose little."""
AHEAD = 4
"""Tasks that each worker has at hand or in work."""


def dask_cluster(
    runner: str,
    scheduler: str | None = None,
    workers: int | None = None,
    batch: int = BATCH,
    stall_s: float = STALL_S,
) -> Executor:
    """Runs on the scheduler at `scheduler`, or on `workers` processes of this machine (default: its cores).

    Raises RunError when the scheduler does not answer or has no workers, or when no task has ended for as long as its runs
    may take (`stall_s` each), whatever the sweep's own length. A task whose worker dies is made again elsewhere by dask,
    three times; then its runs are failures.
    """
    patience_s = batch * stall_s

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        try:
            run_all(scenarios, on_outcome)
        except queue.Empty:
            raise RunError(f"the dask cluster had no result for {patience_s:g} s: given up") from None
        except (OSError, TimeoutError) as error:  # the cluster is gone
            raise RunError(f"the dask cluster does not answer any more: {type(error).__name__}: {error}") from error

    def run_all(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        ordered = by_repeat_and_cost(scenarios)
        batches = [ordered[start : start + batch] for start in range(0, len(ordered), batch)]
        with _client(scheduler, workers) as client:
            count = len(client.scheduler_info()["workers"])
            waiting = iter(batches)
            content: dict[str, list[Scenario]] = {}
            done: queue.SimpleQueue[Any] = queue.SimpleQueue()

            def submit(group: list[Scenario]) -> None:
                future = client.submit(_run_batch, runner, group, pure=False, retries=0)
                content[future.key] = group
                future.add_done_callback(done.put)

            for _, group in zip(range(count * AHEAD), waiting, strict=False):
                submit(group)
            while content:
                future = done.get(timeout=patience_s)
                group = content.pop(future.key)
                if future.status == "finished":
                    outcomes: list[Outcome] = future.result(timeout=60)
                else:
                    error = f"lost by the cluster: {future.exception(timeout=60)!r}"
                    outcomes = [Outcome(each, None, Failure(each.point, each.repeat, error)) for each in group]
                for outcome in outcomes:
                    on_outcome(outcome)
                future.release()
                following = next(waiting, None)
                if following is not None:
                    submit(following)

    return execute


def _run_batch(runner: str, scenarios: Sequence[Scenario]) -> list[Outcome]:
    return [run_one(runner, scenario) for scenario in scenarios]


@contextlib.contextmanager
def _client(scheduler: str | None, workers: int | None) -> Generator[Any]:
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        if scheduler is None:
            options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
            address: Any = stack.enter_context(
                LocalCluster(n_workers=workers, silence_logs=logging.CRITICAL, memory_limit=0, **options)
            )
        else:
            address = scheduler
        try:
            client = stack.enter_context(Client(address, timeout=CONNECT_S, set_as_default=False))
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError) as error:
            raise RunError(
                f"the dask scheduler {scheduler or 'of this machine'} has no workers for us: {error}"
            ) from error
        try:
            yield client
        except KeyboardInterrupt:
            with contextlib.suppress(Exception):  # workers that Ctrl-C has ended too are no news
                stack.close()
            raise
