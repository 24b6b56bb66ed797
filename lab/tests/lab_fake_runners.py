# SPDX-License-Identifier: Apache-2.0
"""Runners for the tests of the lab's machinery: results made up from the scenario alone, errors and crashes on demand. Nothing is measured."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fairlane_lab.run_result import FlowResult, PortResult, RunError, RunResult, SeriesPoint, Transfer
from fairlane_lab.scenario import Scenario
from pydantic import BaseModel, PlainSerializer


def run(scenario: Scenario) -> RunResult:
    """Shares that depend on threshold and seed."""
    chance = random.Random(scenario.seed)
    rate = float(scenario.params.get("rate_bps", 2e6))
    threshold = scenario.control.threshold if scenario.control.scheme == "qthresh" else 50
    size = threshold if isinstance(threshold, int) else 5
    weights = [1.0 / (1 + index * size / 10) + chance.uniform(0, 0.05) for index in range(len(scenario.flows))]
    flows = [
        FlowResult(flow.name, flow.group, flow.variant, flow.weight, 0.94 * rate * part / sum(weights), size, 0, 4.0, 9.0, flow.app.kind == "greedy")
        for flow, part in zip(scenario.flows, weights, strict=True)
    ]  # fmt: skip
    port = PortResult(
        "s1",
        3,
        round(rate),
        0.99 * rate,
        0.99,
        size,
        1.5 * size,
        values={"qthresh_packets": None if size == 50 else float(size)},
    )
    transfers = [Transfer(flow.name, flow.group, 1.0 + index, 12_000, chance.uniform(0.1, 0.5)) for flow in scenario.flows if flow.app.kind == "web" for index in range(5)]  # fmt: skip
    series = [SeriesPoint(0.5 * step, flow.name, "cwnd_packets", 2.0 + step % 4) for flow in scenario.flows for step in range(8)]  # fmt: skip
    return RunResult(flows, [port], transfers, series, [{"t_s": 1.0, "event": "threshold"}], scenario.duration_s, packets=1000, about={"kernel": "none"})  # fmt: skip


def other(scenario: Scenario) -> RunResult:
    """As `run` would be after a change of the code."""
    return run(replace(scenario, seed=scenario.seed + 1))


def fails(scenario: Scenario) -> RunResult:
    """The second repeat is a run that cannot be trusted, the third a fault of the runner."""
    if scenario.repeat == 1:
        raise RunError("this machine stood still")
    if scenario.repeat == 2:
        raise ZeroDivisionError("a fault")
    return run(scenario)


def crashes(scenario: Scenario) -> RunResult:
    """The second repeat takes its process with it."""
    if scenario.repeat == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(scenario)


def slow(scenario: Scenario) -> RunResult:
    """A quarter of a second each; says which process made it."""
    time.sleep(0.25)
    result = run(scenario)
    result.about["pid"] = os.getpid()
    return result


def sleeps(scenario: Scenario) -> RunResult:
    """Takes a quarter of a second, and no processor."""
    time.sleep(0.25)
    return run(scenario)


def computes(scenario: Scenario) -> RunResult:
    """Takes a fifth of a second of a processor, and a child of its the same."""
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", burn], check=True, timeout=60)
    until_s = time.process_time() + 0.2
    while time.process_time() < until_s:
        pass
    return run(scenario)


def hangs(scenario: Scenario) -> RunResult:
    """The second repeat takes longer than the tests wait."""
    if scenario.repeat == 1:
        time.sleep(120)
    return run(scenario)


def interrupted(scenario: Scenario) -> RunResult:
    """The user presses Ctrl-C in the second repeat."""
    if scenario.repeat == 1:
        raise KeyboardInterrupt
    return run(scenario)


def press_ctrl_c(_value: object) -> None:
    """As `form_of` of a link's setting, while the user presses Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


class Varies(BaseModel):
    """Has a serializer in Python, as all that may be a function of time; pydantic makes an error of its own of what that raises."""

    value: Annotated[int, PlainSerializer(press_ctrl_c)] = 1


def interrupted_in_serializer(scenario: Scenario) -> RunResult:
    """Ctrl-C in the second repeat becomes a ValueError."""
    if scenario.repeat == 1:
        Varies().model_dump_json()
    return run(scenario)


def interrupted_in_destructor(scenario: Scenario) -> RunResult:
    """Ctrl-C in the second repeat is lost."""
    if scenario.repeat == 1:
        with contextlib.suppress(KeyboardInterrupt):
            press_ctrl_c(None)
    return run(scenario)


@dataclass(frozen=True)
class MininetOptions:
    """What the Mininet runner would get."""

    target: str
    parallel: int


def run_many(
    scenarios: Sequence[Scenario],
    options: MininetOptions,
    on_result: Callable[[Scenario, RunResult | RunError], None],
    report: Callable[[str], None] = lambda _text: None,
) -> None:
    """All but the last repeat of each point."""
    report(f"{options.parallel} networks on {options.target}")
    for scenario in scenarios:
        on_result(scenario, RunError("no network") if scenario.repeat == 2 else run(scenario))
