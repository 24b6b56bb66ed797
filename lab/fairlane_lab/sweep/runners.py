# SPDX-License-Identifier: Apache-2.0
"""The runner of a runtime, found when it is needed, and one run of it: a result or an error, never an exception."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario

SIM = "fairlane_lab.runners.sim:run"
"""`run(scenario, progress) -> RunResult`; progress is called with the virtual seconds that have passed."""
KERNEL = "fairlane_lab.runners.kernel:run"
"""As `SIM`, with real hosts."""
MININET = "fairlane_lab.runners.mininet:run_many"
"""`run_many(scenarios, options, on_result)`."""

Progress = Callable[[float], None]


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
"""Runs scenarios and tells each outcome as it comes, in any order. Raises RunError when it cannot run at all."""


def find_runner(name: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises RunError when it is not there."""
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise RunError(f"the runner {name} is not there: {error}") from error


def run_one(runner: str, scenario: Scenario, progress: Progress | None = None) -> Outcome:
    """Run one scenario with the runner called `runner`. Whatever goes wrong in it is the outcome's failure."""
    try:
        return Outcome(scenario, find_runner(runner)(scenario, progress))
    except RunError as error:
        return Outcome(scenario, None, Failure(scenario.point, scenario.repeat, str(error)))
    except Exception as error:  # one point's fault must not stop the others; it is reported with its traceback
        text = f"{type(error).__name__}: {error}"
        return Outcome(scenario, None, Failure(scenario.point, scenario.repeat, text, traceback.format_exc()))


def local_executor(runner: str, progress: Callable[[Scenario, float], None] | None = None) -> Executor:
    """An executor that makes one run after the other in this process."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        for scenario in scenarios:
            on_outcome(run_one(runner, scenario, partial(progress, scenario) if progress else None))

    return execute


def mininet_testbed(
    target: str, parallel: int, tell: Callable[[str, float], None] | None = None, runner: str = MININET
) -> Executor:
    """Runs on Mininet with at most `parallel` topologies side by side; `tell` hears what happens and the seconds so far.

    Its runner takes all scenarios at once, because topologies run side by side and are used again.
    """

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        def on_result(scenario: Scenario, result: RunResult | RunError) -> None:
            if isinstance(result, RunError):
                on_outcome(Outcome(scenario, None, Failure(scenario.point, scenario.repeat, str(result))))
            else:
                on_outcome(Outcome(scenario, result))

        options = find_runner(f"{runner.partition(':')[0]}:MininetOptions")(target=target, parallel=parallel)
        find_runner(runner)(scenarios, options, on_result, *([tell] if tell else []))

    return execute
