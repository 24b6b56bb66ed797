# SPDX-License-Identifier: Apache-2.0
"""Runs in Mininet: its runner takes all scenarios at once, because topologies run side by side and are used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Scenario
from fairlane_lab.sweep.runners import MININET, Executor, Failure, OnOutcome, Outcome, find_runner


def mininet_testbed(
    target: str, parallel: int, tell: Callable[[str, float], None] | None = None, runner: str = MININET
) -> Executor:
    """Runs on Mininet with at most `parallel` topologies side by side; `tell` hears what happens and the seconds so far."""

    def execute(scenarios: Sequence[Scenario], on_outcome: OnOutcome) -> None:
        def on_result(scenario: Scenario, result: RunResult | RunError) -> None:
            if isinstance(result, RunError):
                failure = Failure(scenario.point, scenario.repeat, str(result))
                on_outcome(Outcome(scenario, None, failure))
            else:
                on_outcome(Outcome(scenario, result))

        run_many = find_runner(runner)
        options = find_runner(f"{runner.partition(':')[0]}:MininetOptions")(target=target, parallel=parallel)
        if tell is None:
            run_many(scenarios, options, on_result)
        else:
            run_many(scenarios, options, on_result, tell)

    return execute
