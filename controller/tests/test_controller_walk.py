# SPDX-License-Identifier: Apache-2.0
"""The way of one threshold, beside a loop: what is called, written and read, as docs/architecture.md shows it."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from fairlane_controller.programs.qthresh import cli_threshold
from live_switch import REPOSITORY
from live_topology import MAIN, Controller, controllers, live_topology
from state_tools import count_transactions

MAX_FUNCTIONS = 30
WAITS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
PACKAGE = "fairlane_controller/"
CLIENT, BOUNDED = "switch/client.py", "switch/bounded.py"
"""finsy behind time limits: one line a call that others make, and what we override of finsy."""
RECORD = """
import sys, asyncio
sys.path[:0] = {paths!r}
from test_controller_walk import step_of

def record(frame, event, argument):
    step = step_of(frame, event)
    if step is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return
        if task is not None and "_carry_out" in task.get_coro().__qualname__:
            with open({path!r}, "a") as file:
                print(step, file=file)

sys.setprofile(record)
"""


def step_of(frame: FrameType, event: str) -> str | None:
    """`history/steps.py make`, of a coroutine of ours that begins or goes on; None of anything else."""
    code = frame.f_code
    _, ours, place = code.co_filename.rpartition(PACKAGE)
    if event != "call" or not ours or not code.co_flags & WAITS or code.co_name.startswith(("__", "<")):
        return None
    if place == BOUNDED or (place == CLIENT and ((caller := _caller(frame)) is None or caller.endswith(CLIENT))):
        return None
    return f"{place} {code.co_name}"


def _caller(frame: FrameType) -> str | None:
    """The file of the coroutine that awaits it."""
    back = frame.f_back
    while back is not None and PACKAGE not in back.f_code.co_filename:
        back = back.f_back
    return None if back is None else back.f_code.co_filename


def test_the_way_of_a_threshold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 30 of our functions that can wait, one transaction, one write; docs/architecture.md shows these."""
    transactions = count_transactions(monkeypatch)
    steps: list[str] = []

    def record(frame: FrameType, event: str, _: object) -> None:
        step = step_of(frame, event)
        if step is not None:
            steps.append(step)

    change = cli_threshold.change_policies

    def recorded(*arguments: Any, **options: Any) -> None:
        sys.setprofile(record)
        try:
            change(*arguments, **options)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(cli_threshold, "change_policies", recorded)
    path = tmp_path / "steps"
    code = RECORD.format(path=str(path), paths=sys.path) + MAIN
    with live_topology(tmp_path, "dumbbell.json") as topology, controllers(Controller(tmp_path, "run", "--no-probes", code=code)) as (loop,):  # fmt: skip
        loop.wait_ready()
        transactions.clear()
        topology.fairlane("threshold", "set", "s1:3", "5")
    assert transactions == ["record"]
    of_command, of_loop = ([*dict.fromkeys(one)] for one in (steps, path.read_text(encoding="utf-8").splitlines()))
    assert [one for one in of_loop if "write" in one][-1] == "switch/client.py write_each_with_reasons"
    shown = "\n".join([*(f"command  {one}" for one in of_command), *(f"loop     {one}" for one in of_loop)])
    assert len(of_command) + len(of_loop) <= MAX_FUNCTIONS, shown
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    found = re.search(r"```text\n(command .*?)\n```", text, re.DOTALL)
    assert found is not None, f"docs/architecture.md must have:\n{shown}"
    assert found[1] == shown, f"docs/architecture.md must have:\n{shown}"
