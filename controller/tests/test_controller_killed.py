# SPDX-License-Identifier: Apache-2.0
"""Who is killed (-9) in the middle of a change, at each of its awaits in turn: the next start leaves all switches with one revision.

Each run is a process of its own, forked from one that has imported everything, with real switches: it kills itself at the await that is
its turn. Then comes what would come: another command, or another loop. What the switches have, what is remembered and the journal are
then all of the revision before, or all of the one after.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.history import undo as history
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.undo import settle_at_start
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.state.store import Store
from live_topology import Controller, LiveTopology, controllers, live_topology

MAX_AWAITS = 600
COUNTING = """
import asyncio, collections.abc, contextlib, os, sys
from fairlane_controller.cli.main import main
from fairlane_controller.state import intent

counted, limit, only = -1, 0, ""

class Counted(collections.abc.Coroutine):
    "A coroutine that counts how often it goes on, and kills its process when it is its turn."
    def __init__(self, coroutine):
        self._coroutine = coroutine
    def send(self, value):
        global counted
        if counted >= 0 and only in self._coroutine.__qualname__:
            counted += 1
            if counted == limit:
                os.kill(os.getpid(), 9)
        return self._coroutine.send(value)
    def throw(self, *problem):
        return self._coroutine.throw(*problem)
    def close(self):
        return self._coroutine.close()
    def __await__(self):
        return self._coroutine.__await__()

def factory(loop, coroutine, **options):
    return asyncio.Task(Counted(coroutine), loop=loop, **options)

real_run, real_store = asyncio.run, intent.Store

def run(coroutine, **options):
    async def whole():
        asyncio.get_running_loop().set_task_factory(factory)
        return await asyncio.create_task(coroutine)
    return real_run(whole(), **options)

def store(*arguments):
    global counted
    counted = max(0, counted)
    return real_store(*arguments)

asyncio.run, intent.Store = run, store
"""
COMMANDS_IN_TURN = (
    COUNTING
    + """
for line in sys.stdin:
    turn, *arguments = line.split()
    process = os.fork()
    if process == 0:
        limit = int(turn)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        try:
            main(arguments)
        except SystemExit as ended:
            os._exit(ended.code or 0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
)
"""Reads an await's number and a command from each line, and counts from where the command announces what takes it back."""
LOOP = (
    COUNTING
    + """
counted, limit, only = 0, int(sys.argv[1]), "_carry_out"
main(sys.argv[2:])
"""
)
"""A loop that counts in what it is asked to write."""


@contextmanager
def killer() -> Generator[Callable[..., int]]:
    """Runs a command until the await of a number; the exit code."""
    command = [sys.executable, "-c", COMMANDS_IN_TURN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def run(turn: int, *arguments: str) -> int:
            stdin.write(" ".join((str(turn), *arguments)) + "\n")
            stdin.flush()
            return int(stdout.readline())

        try:
            yield run
        finally:
            process.kill()


def revision(topology: LiveTopology) -> tuple[Any, ...]:
    """What the switches have, and what is remembered."""

    async def entries() -> dict[str, str]:
        async with Sites(read_run_state(topology.folder)) as sites:
            clients = {name: await sites.reader(name) for name in sites.endpoints}
            return {name: str(sorted(map(str, await one.read_table("policy")))) for name, one in clients.items()}

    with Store(topology.folder) as store:
        return asyncio.run(entries()), store.all("policy/")


def is_one(found: tuple[Any, ...], *, before: tuple[Any, ...], after: tuple[Any, ...], turn: int) -> bool:
    """Whether it is the revision after; it must be one of the two."""
    assert found in (before, after), f"killed at await {turn}"
    return found == after


CASES = {
    "alone": ("threshold set --scheme drop_tail", False),
    "an-undo": ("undo", False),
    "beside-a-loop": ("threshold set --scheme drop_tail", True),
}
"""Changes of entries and settings of all switches; whether a loop runs, which then writes."""


@pytest.mark.parametrize("case", CASES)
def test_a_command_that_is_killed(tmp_path: Path, case: str) -> None:
    command, beside_loop = CASES[case]
    with live_topology(tmp_path, "parking.json") as topology, controllers() as loops:
        if beside_loop:
            loops.append(Controller(tmp_path, "run", "--no-probes"))
            loops[0].wait_ready()
        topology.fairlane("threshold", "set", "--scheme", "drop_tail")
        back = ("threshold", "set", "--scheme", "drop_tail") if command == "undo" else ("undo",)
        if command != "undo":
            topology.fairlane("undo")
        before = revision(topology)
        topology.fairlane(*command.split())
        after = revision(topology)
        assert after != before
        topology.fairlane(*back)
        assert revision(topology) == before
        turn = made = code = 0
        with killer() as killed:
            while turn < MAX_AWAITS and (code or not turn):
                turn += 1
                code = killed(turn, *command.split(), "--state", str(tmp_path))
                assert code in (0, -signal.SIGKILL)
                asyncio.run(_next(tmp_path))
                if is_one(revision(topology), before=before, after=after, turn=turn):
                    made += 1
                    topology.fairlane(*back)
        assert 3 < turn < MAX_AWAITS
        assert made >= 1, "the last one was made whole"


async def _next(folder: Path) -> None:
    """The next change begins with what was not ended."""
    async with history.changing(folder, "next", read_run_state(folder)):
        pass


def test_a_loop_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    """The command sees that it has gone, and takes back what was made of it."""
    with live_topology(tmp_path, "parking.json") as topology, controllers() as loops:
        before = revision(topology)
        topology.fairlane("threshold", "set", "--scheme", "drop_tail")
        after = revision(topology)
        topology.fairlane("undo")
        turn, is_killed = 0, True
        while is_killed:
            turn += 1
            loop = Controller(tmp_path, "run", "--no-probes", code=LOOP, before=(str(turn),))
            loops.append(loop)
            loop.wait_ready()
            with contextlib.suppress(AssertionError):
                topology.fairlane("threshold", "set", "--scheme", "drop_tail")
            is_killed = loop.process.poll() is not None
            loop.kill()
            asyncio.run(settle_at_start(tmp_path))
            if is_one(revision(topology), before=before, after=after, turn=turn):
                topology.fairlane("undo")
        assert 3 < turn < MAX_AWAITS
