# SPDX-License-Identifier: Apache-2.0
"""The runner of a runtime, found when it is needed, and one run of it: a result or an error, never an exception."""

from __future__ import annotations

import pkgutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from fairlane_controller.errors import FairlaneError

from fairlane_lab.definition.schema import MininetOverrides
from fairlane_lab.run_result import MININET, RunError, RunResult
from fairlane_lab.scenario import Scenario


@dataclass(frozen=True)
class Outcome:
    """What became of one scenario: its result, or why there is none."""

    scenario: Scenario
    result: RunResult | None
    error: str = ""
    detail: str = ""
    """The traceback, when the error was not foreseen."""

    def as_failure(self) -> dict[str, Any]:
        """For summary.json: which run has no result, and why."""
        named = {"point": self.scenario.point, "repeat": self.scenario.repeat}
        return {**named, "error": self.error, "detail": self.detail}


OnOutcome = Callable[[Outcome], None]
Executor = Callable[[Sequence[Scenario], OnOutcome], None]
"""Runs scenarios and reports each outcome as it comes, in any order. Raises RunError when it cannot run at all."""


def processor_s() -> float:
    """Processor time so far, seconds: of this process, and of all its children that have ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def run_one(runner: str, scenario: Scenario) -> Outcome:
    """Run one scenario with the runner called `runner`, and measure the time that it takes. Whatever goes wrong in it is the outcome's failure."""
    began_s, used_s = time.perf_counter(), processor_s()
    try:
        result: RunResult = pkgutil.resolve_name(runner)(scenario)
        result.wall_s, result.cpu_s = time.perf_counter() - began_s, processor_s() - used_s
        return Outcome(scenario, result)
    except FairlaneError as error:
        return Outcome(scenario, None, str(error))
    except Exception as error:  # one point's fault must not stop the others; it is reported with its traceback
        return Outcome(scenario, None, f"{type(error).__name__}: {error}", traceback.format_exc())


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
            on_outcome(Outcome(scenario, None, str(result)) if is_error else Outcome(scenario, result))

        make = pkgutil.resolve_name(f"{runner.partition(':')[0]}:MininetOptions")
        options = make(target=target, parallel=settings.parallel)
        pkgutil.resolve_name(runner)(scenarios, options, on_result, report)

    return execute
