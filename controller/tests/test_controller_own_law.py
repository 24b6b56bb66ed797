# SPDX-License-Identifier: Apache-2.0
"""A program in a folder whose law is `Program.decide`: the loop writes what it says, and goes on whatever it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState, read_topology, write_topology
from live_switch import LiveSwitch, binary, wait_until

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LAW = '''
    decide_every_s = 0.05
    {more}

    def decide(self, port, settings, seen, loop):
        """One packet more each time, up to six; {fault}"""
        limit = min(6, settings.limit + 1)
        {code}
        return self.Settings(limit=limit)
'''
"""In place of the example's law."""


def folder_with(tmp_path: Path, fault: str, code: str, more: str) -> Path:
    """The example with a law of the test's."""
    folder = tmp_path / "mine"
    folder.mkdir()
    text = (EXAMPLES / "shortwait" / "program.py").read_text(encoding="utf-8")
    text = text[: text.index("    def decide(")] + LAW.format(fault=fault, code=code, more=more).strip("\n")
    text = text.replace("../droptail/droptail", str(EXAMPLES / "droptail" / "droptail"))
    (folder / "program.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts a switch that runs the example with a law; its port 3 has a limit of 1."""
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    made = LiveSwitch("embedded", tmp_path)

    def begin(fault: str = "", code: str = "", more: str = "") -> LiveSwitch:
        made.write_state()
        state, compiled = read_topology(tmp_path), EXAMPLES / "droptail" / "droptail"
        (one,) = state["switches"]
        one |= {"json": f"{compiled}.json", "p4info": f"{compiled}.p4info.txtpb"}
        one["ports"] = [{"port": 1}, {"port": 3, "limit": 1, "bottleneck": True}]
        write_topology(tmp_path, {**state, "program": str(folder_with(tmp_path, fault, code, more))})
        made.start()
        made.fairlane("config", "init")
        return made

    yield begin
    made.kill()


def limit_of(switch: LiveSwitch, number: int = 3) -> int:
    """The limit of a port."""
    (port,) = (port for port in switch.json("status")["ports"] if port["port"] == number)
    return int(port["limit_packets"])


def test_the_loop_writes_what_the_law_decides(start: Any, tmp_path: Path) -> None:
    switch: LiveSwitch = start()
    assert limit_of(switch) == 1
    file = tmp_path / "mine.toml"
    file.write_text('[[ports]]\nswitch = "s1"\nport = 3\nlimit = 1\n')
    with switch.loop():
        wait_until("the limit that the law wants", lambda: limit_of(switch) == 6)
        assert switch.loop_status()["ports"] == [{"port": 3, "limit": 6}]
        steps = [(event["port"], event["limit"], event["why"]) for event in switch.events("decided")]
        assert steps == [(3, limit, f"limit from {limit - 1} to {limit}") for limit in range(2, 7)]
        # What the loop decides is no difference to a file, and a file does not take it back.
        switch.fairlane("config", "diff", str(file))
        # A switch that has restarted gets what it had.
        switch.kill()
        switch.start()
        wait_until("the switch to be restored", lambda: switch.events("restored"))
        wait_until("the loop to go on", lambda: switch.loop_status()["connected"])
        assert limit_of(switch) == 6
        assert len(switch.events("decided")) == 5
    switch.fairlane("config", "diff", str(file), code=10)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise KeyError('rate')", "KeyError: 'rate'"),
        ("return limit", "AttributeError: 'int' object has no attribute 'model_dump'"),
        ("limit = -1", "limit"),
    ],
)
def test_a_law_that_fails_is_told_once_and_the_port_keeps_what_it_has(start: Any, code: str, why: str) -> None:
    switch: LiveSwitch = start("it fails", code)
    with switch.loop():
        wait_until("an event", lambda: switch.events("error"))
        said = switch.loop_status()["failed"]
        assert why in said
        assert limit_of(switch) == 1
        assert len(switch.events("error")) == 1
        assert switch.loop_status()["connected"]


def test_a_law_that_fails_at_one_of_two_ports_is_one_event(start: Any) -> None:
    switch: LiveSwitch = start("it fails at port 1", "if port.port == 1: raise KeyError('rate')")
    switch.fairlane("config", "set", "s1:1", "limit=2")
    with switch.loop():
        wait_until("the other port's limit", lambda: switch.events("decided")[-1:] and limit_of(switch, 3) == 6)
        assert [event["port"] for event in switch.events("error")] == [1]
        assert limit_of(switch, 1) == 2
        assert "KeyError: 'rate'" in switch.loop_status()["failed"]


def test_a_decision_about_a_port_changes_no_other_one(start: Any, tmp_path: Path) -> None:
    # Its configuration is a document, which has nothing of what the law decided.
    switch: LiveSwitch = start("at port 3 alone", "if port.port == 1: limit = settings.limit", 'document = "mine"')
    file = tmp_path / "mine.toml"
    file.write_text("".join(f'[[ports]]\nswitch = "s1"\nport = {port}\nlimit = 2\n' for port in (1, 3)))
    switch.fairlane("config", "apply", str(file))
    with switch.loop():
        wait_until("the limit that the law wants", lambda: limit_of(switch, 3) == 6)
        assert limit_of(switch, 1) == 2


def test_the_limit_of_the_example_follows_the_line() -> None:
    program, port = load_program(str(EXAMPLES / "shortwait")), PortState(port=3)
    held: Any = program.Settings()
    loop = program.LoopSettings()

    def decide(**seen: float) -> int:
        return int(program.decide(port, held, seen, loop).limit)

    assert decide(sent_packets_per_s=1000.0, refused_per_s=3.0) == 20
    assert decide(sent_packets_per_s=10.0, refused_per_s=3.0) == 2
    assert decide(sent_packets_per_s=1000.0, refused_per_s=0.0) == decide() == held.limit
