# SPDX-License-Identifier: Apache-2.0
"""A change of several switches is whole or did not happen, however its process ends: the second switch's Write is held, and then the process is ended."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from counting_proxy import CountingProxy, counting
from fairlane_controller.errors import ErrorCode
from fairlane_controller.state.run_state import read_topology, write_topology
from fairlane_controller.switch.changeset import BATCH_UPDATES
from fairlane_controller.switch.client import Endpoint, SwitchClient
from live_switch import LiveSwitch, binary, wait_until
from state_tools import documents

pytestmark = pytest.mark.timeout(240)
NAMES = ("s1", "s2", "s3")
WAIT_S = 60.0
"""For a command to begin, or to end: longer on a busy machine."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Trio:
    """Three switches in one run state, the second one behind a proxy."""

    def __init__(self, switches: list[LiveSwitch], proxy: CountingProxy) -> None:
        self.switches = switches
        self.proxy = proxy
        self.one = switches[0]

    def tables(self) -> dict[str, Any]:
        """Everything that the switches have."""

        async def read(port: int) -> dict[str, list[str]]:
            async with SwitchClient(Endpoint("s", f"127.0.0.1:{port}")) as client:
                return {name: sorted(map(str, await client.read_table(name))) for name in client.table_names()}

        async def read_all() -> list[dict[str, list[str]]]:
            return list(await asyncio.gather(*(read(switch.grpc_port) for switch in self.switches)))

        return dict(zip(NAMES, asyncio.run(read_all()), strict=True))

    def start(self, *arguments: str, passes: int = 0) -> subprocess.Popen[bytes]:
        """A command of which a Write of s2 is held, after `passes` others."""
        self.proxy.hold("Write", passes)
        with (self.one.folder / "command.log").open("ab") as log:
            return subprocess.Popen(self.one.command(*arguments), stdout=log, stderr=log)

    def wait_held(self, process: subprocess.Popen[bytes]) -> None:
        """Until s2's call is held."""
        log = self.one.folder / "command.log"
        wait_until("the second switch", lambda: self.proxy.holds.is_set() or process.poll() is not None, WAIT_S)
        assert process.poll() is None, log.read_text(encoding="utf-8")

    def file(self, *switches: str, threshold: int = 5) -> str:
        """A configuration with a threshold at port 3 of these."""
        policy = '[[policies]]\nswitch = "{}"\nport = 3\nthreshold = {}\n'
        path = self.one.folder / f"{threshold}.toml"
        path.write_text("".join(policy.format(name, threshold) for name in switches), encoding="utf-8")
        return str(path)

    def history(self) -> list[str]:
        """The commands of the journal."""
        return [str(one["command"]).split(" --")[0] for one in self.one.json("undo", "--list")]


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine")
    switches = [LiveSwitch("embedded", tmp_path) for _ in NAMES]
    states: list[dict[str, Any]] = []
    try:
        for name, one in zip(NAMES, switches, strict=True):
            one.write_state()
            (state,) = read_topology(tmp_path)["switches"]
            states.append({**state, "name": name})
            one.start()
        with counting(states[1]["grpc"]) as proxy:
            states[1]["grpc"] = f"127.0.0.1:{proxy.port}"
            write_topology(tmp_path, {**read_topology(tmp_path), "switches": states})
            switches[0].fairlane("config", "init", "--scheme", "qthresh")
            trio = Trio(switches, proxy)
            switches[0].fairlane("config", "apply", trio.file(*NAMES, threshold=8))
            yield trio
    finally:
        for one in switches:
            one.kill()


# ---- without a loop --------------------------------------------------------------------------------------------------


def next_change(trio: Trio) -> None:
    """A change that changes nothing: it settles what was begun and not ended."""
    trio.one.fairlane("config", "apply", trio.file(*NAMES, threshold=8))


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_a_configuration_whose_command_is_ended_is_taken_back(trio: Trio, end: signal.Signals) -> None:
    """By itself after ^C, else by the next change."""
    before, made = trio.tables(), trio.history()
    command = trio.start("config", "apply", trio.file(*NAMES))
    trio.wait_held(command)
    assert trio.tables()["s1"] != before["s1"], "the first switch is changed"
    command.send_signal(end)
    command.wait(WAIT_S)
    assert (trio.tables() == before) == (end is signal.SIGINT)
    next_change(trio)
    assert trio.tables() == before
    assert trio.history() == made
    assert "change" not in documents(trio.one.folder)
    (event,) = trio.one.events("settled")
    assert event["command"].startswith("config apply")
    assert f"change {len(made)} taken back: config apply" in trio.one.fairlane("undo")


def other_routes(trio: Trio) -> None:
    state = read_topology(trio.one.folder)
    for one in state["switches"]:
        one["routes"].append({"prefix": "10.0.9.0/24", "port": 1, "mac": "08:00:00:00:01:11"})
    write_topology(trio.one.folder, state)


def script(trio: Trio) -> None:
    """One line more than a batch has."""
    route = "ipv4_lpm forward 10.20.0.0/16 => 08:00:00:00:01:11"
    lines = [f"table_add {route} 1", *(f"table_modify {route} {1 + n % 2}" for n in range(BATCH_UPDATES))]
    (trio.one.folder / "lines").write_text("\n".join(lines), encoding="utf-8")


def nothing(trio: Trio) -> None:
    del trio


WRITERS: dict[str, tuple[Callable[[Trio], None], int, str, tuple[str, ...]]] = {
    "init": (other_routes, 0, "s1", ("config", "init")),
    "p4 script": (script, 1, "s2", ("p4", "script", "{folder}/lines", "-s", "s2")),
    "undo": (nothing, 0, "s3", ("undo",)),
    "qthresh": (nothing, 0, "s1", ("threshold", "set", "--scheme", "drop_tail")),
}
"""What is prepared, Writes of s2 that pass, whose tables show that it is half made, and the command."""


@pytest.mark.parametrize("name", WRITERS)
def test_a_change_whose_command_is_killed_is_taken_back_by_the_next(trio: Trio, name: str) -> None:
    prepare, passes, half, command = WRITERS[name]
    prepare(trio)
    before, made = trio.tables(), trio.history()
    process = trio.start(*(word.format(folder=trio.one.folder) for word in command), passes=passes)
    trio.wait_held(process)
    wait_until("half of it", lambda: trio.tables()[half] != before[half], WAIT_S)
    process.kill()
    process.wait(WAIT_S)
    next_change(trio)
    assert trio.tables() == before
    assert trio.history() == made


@pytest.mark.parametrize(("packets", "hold"), [(40, "Set"), (60, "Write")], ids=["less", "more"])
@pytest.mark.parametrize("wired_switch", ["embedded"], indirect=True)
def test_a_change_of_a_port_whose_command_is_killed_is_taken_back(
    wired_switch: LiveSwitch, packets: int, hold: str
) -> None:
    """Between its queue (gNMI) and the program's limit (P4Runtime)."""
    state = read_topology(wired_switch.folder)
    address = state["switches"][0]["grpc"]

    def seen() -> Any:
        (port,) = [one for one in wired_switch.json("ports", "-i", "0s") if one["port"] == 3]
        return port["queue_packets"], wired_switch.json("p4", "table_dump", "port_limit")

    with counting(address) as proxy:
        state["switches"][0]["grpc"] = f"127.0.0.1:{proxy.port}"
        write_topology(wired_switch.folder, state)
        before, made = seen(), wired_switch.json("undo", "--list")
        proxy.hold(hold)
        process = subprocess.Popen(wired_switch.command("ports", "set", "s1:3", "--queue-packets", str(packets)))
        wait_until("the second half", lambda: proxy.holds.is_set() or process.poll() is not None, WAIT_S)
        assert process.poll() is None
        assert seen() != before
        process.kill()
        process.wait(WAIT_S)
        assert "cannot be undone: the program was loaded" in " ".join(wired_switch.fairlane("undo", code=2).split())
        assert seen() == before
        assert wired_switch.json("undo", "--list") == made


# ---- with a loop -----------------------------------------------------------------------------------------------------

ASKED = {"config": ("config", "apply", "{folder}/5.toml"), "qthresh": ("threshold", "set", "--scheme", "drop_tail")}


@pytest.mark.parametrize(
    ("asked", "end"),
    [("config", signal.SIGTERM), ("config", signal.SIGKILL), ("qthresh", signal.SIGTERM)],
    ids=lambda part: str(getattr(part, "name", part)),
)
def test_a_change_whose_loop_is_ended_is_taken_back(trio: Trio, asked: str, end: signal.Signals) -> None:
    """By the command that has asked for it."""
    trio.file(*NAMES)
    before, made = trio.tables(), trio.history()
    with trio.one.loop() as loop:
        command = trio.start(*(word.format(folder=trio.one.folder) for word in ASKED[asked]))
        trio.wait_held(command)
        assert trio.tables()["s1"] != before["s1"]
        loop.send_signal(end)
        assert command.wait(WAIT_S) == ErrorCode.NO_LOOP.exit_code
        loop.wait(WAIT_S)
    assert trio.tables() == before
    assert trio.history() == made
    assert "change" not in documents(trio.one.folder)


def test_a_change_whose_loop_and_command_are_killed_is_taken_back_by_the_next_loop(trio: Trio) -> None:
    before, made = trio.tables(), trio.history()
    with trio.one.loop() as loop:
        command = trio.start(*ASKED["qthresh"])
        trio.wait_held(command)
        for process in (command, loop):
            process.kill()
            process.wait(WAIT_S)
    assert trio.tables()["s1"] != before["s1"]
    with trio.one.loop():
        assert trio.tables() == before
    assert trio.history() == made
    (event,) = trio.one.events("settled")
    assert event["command"].startswith("threshold set --scheme")


def test_a_change_whose_command_is_killed_is_taken_back_through_the_loop(trio: Trio) -> None:
    before, made = trio.tables(), trio.history()
    with trio.one.loop():
        command = trio.start("config", "apply", trio.file(*NAMES))
        trio.wait_held(command)
        command.kill()
        command.wait(WAIT_S)
        trio.proxy.release()
        next_change(trio)
        assert trio.tables() == before
        assert trio.history() == made
