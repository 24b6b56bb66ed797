# SPDX-License-Identifier: Apache-2.0
"""The runner of a runtime, found when it is needed, and one run of it: a result or an error, never an exception."""

from __future__ import annotations

import pkgutil
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlane_lab.definition.schema import MininetOverrides
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario

SIM = "fairlane_lab.runners.sim:run"
"""`run(scenario) -> RunResult`."""
KERNEL = "fairlane_lab.runners.kernel:run"
"""As `SIM`, with real hosts."""
MININET = "fairlane_lab.runners.mininet:run_many"
"""`run_many(scenarios, options, on_result, report)`."""


@dataclass(frozen=True)
class Failure:
    """Why a run has no result."""

    point: str
    repeat: int
    error: str
    detail: str = ""
    """The traceback, when the error was not foreseen."""


@dataclass(frozen=True)
class Outcome:
    """What became of one scenario: its result, or why there is none."""

    scenario: Scenario
    result: RunResult | None
    failure: Failure | None = None


OnOutcome = Callable[[Outcome], None]
Executor = Callable[[Sequence[Scenario], OnOutcome], None]
"""Runs scenarios and reports each outcome as it comes, in any order. Raises RunError when it cannot run at all."""


def failed(scenario: Scenario, error: object, detail: str = "") -> Outcome:
    """The outcome of a run without a result."""
    return Outcome(scenario, None, Failure(scenario.point, scenario.repeat, str(error), detail))


def run_one(runner: str, scenario: Scenario) -> Outcome:
    """Run one scenario with the runner called `runner`. Whatever goes wrong in it is the outcome's failure."""
    try:
        return Outcome(scenario, pkgutil.resolve_name(runner)(scenario))
    except RunError as error:
        return failed(scenario, error)
    except Exception as error:  # one point's fault must not stop the others; it is reported with its traceback
        return failed(scenario, f"{type(error).__name__}: {error}", traceback.format_exc())


def local_executor(runner: str) -> Executor:
    """An executor that makes one run after the other in this process."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        for scenario in scenarios:
            on_outcome(run_one(runner, scenario))

    return execute


def mininet_testbed(
    target: str, settings: MininetOverrides, report: Callable[[str], None] = lambda _text: None, runner: str = MININET
) -> Executor:
    """Runs on Mininet as an experiment's `[mininet]` says; `report` is called with what happens.

    Its runner takes all scenarios at once, because topologies run side by side and are used again.
    """

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        def on_result(scenario: Scenario, result: RunResult | RunError) -> None:
            is_error = isinstance(result, RunError)
            on_outcome(failed(scenario, result) if is_error else Outcome(scenario, result))

        make = pkgutil.resolve_name(f"{runner.partition(':')[0]}:MininetOptions")
        options = make(target=target, parallel=settings.parallel)
        pkgutil.resolve_name(runner)(scenarios, options, on_result, report)

    return execute
