# SPDX-License-Identifier: Apache-2.0
"""Switches that run ena.p4, without frames: `init`, `fairlane ena`, and what other commands say there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlane_controller.state.run_state import read_topology, write_topology
from live_switch import COMPILED, TARGETS, LiveSwitch, binary


def write_state(switch: LiveSwitch, *far_side: int) -> None:
    """A run state of one switch with three ports, some of them far sides."""
    switch.write_state()
    state = read_topology(switch.folder)
    (one,) = state["switches"]
    one |= {"json": str(COMPILED / "ena.json"), "p4info": str(COMPILED / "ena.p4info.txtpb")}
    one["ports"] = [{"port": port, "far_side": port in far_side} for port in (1, 2, 3)]
    write_topology(switch.folder, {**state, "program": "ena"})


@pytest.fixture(params=TARGETS)
def switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    target = str(request.param)
    if binary(target) is None:
        pytest.skip(f"the {target} switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    made = LiveSwitch(target, tmp_path)
    write_state(made, 1)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def ports(switch: LiveSwitch) -> list[int]:
    return [row["port"] for row in switch.json("ena", "show")]


def test_init_writes_routes_and_far_sides_once(switch: LiveSwitch) -> None:
    done = {"switch": "s1", "routes": 3, "managed_ports": [1], "written": 5}
    assert switch.json("config", "init") == [done]
    assert switch.json("config", "init") == [{**done, "written": 0}]
    assert "far-side ports" in switch.fairlane("config", "init")
    (row,) = switch.json("ena", "show")
    assert row == {
        "switch": "s1",
        "port": 1,
        "ena_corrupted": 0,
        "ena_strays": 0,
        "ena_notified": 0,
        "ena_no_room": 0,
        "ena_no_place": 0,
        "dropped": 0,
    }
    write_state(switch, 2, 3)
    assert switch.json("config", "init") == [{**done, "managed_ports": [2, 3], "written": 6}]
    assert ports(switch) == [2, 3]


def test_ports_are_marked_and_unmarked(switch: LiveSwitch) -> None:
    switch.fairlane("config", "init")
    assert "s1: port 3 is a far side; 2 entries written" in switch.fairlane("ena", "mark", "3")
    assert "0 entries written" in switch.fairlane("ena", "mark", "3")
    assert ports(switch) == [1, 3]
    assert "s1: port 1 is no far side; 2 entries written" in switch.fairlane("ena", "unmark", "1")
    assert ports(switch) == [3]
    assert [port["port"] for port in switch.json("status")["ports"] if port["managed"]] == [3]
    assert "corrupted, named" in switch.fairlane("status"), "the program's own columns"
    assert "switch s1 has no port 4; valid: 1, 2, 3" in " ".join(switch.fairlane("ena", "mark", "4", code=2).split())
    assert ports(switch) == [3]


@pytest.mark.parametrize("switch", ["embedded"], indirect=True)
def test_a_mark_whose_command_is_killed_before_it_is_recorded_is_taken_back(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise SystemExit(9)

    switch.fairlane("config", "init")
    with monkeypatch.context() as patch:
        patch.setattr("fairlane_controller.state.intent.Intent.keep", kill)
        switch.fairlane("ena", "mark", "3", code=9)
    assert ports(switch) == [1, 3]
    assert "cannot be undone: the program was loaded" in " ".join(switch.fairlane("undo", code=2).split())
    assert ports(switch) == [1]
    assert len(switch.json("undo", "--list")) == 1


def test_other_programs_commands_say_what_runs(switch: LiveSwitch) -> None:
    switch.fairlane("config", "init")
    said = " ".join(switch.fairlane("threshold", "show", code=5).split())
    assert "the program on the switch is ena, not qthresh: see `fairlane ena`" in said
    assert "the program ena needs no control loop" in " ".join(switch.fairlane("run", code=2).split())
    assert "the program ena has no schemes" in switch.fairlane("config", "init", "--scheme", "drop_tail", code=2)


def test_ena_on_a_switch_that_runs_another_program(tmp_path: Path) -> None:
    if binary("embedded") is None:
        pytest.skip("fairlane-switch is not built")
    made = LiveSwitch("embedded", tmp_path)
    made.write_state()
    made.start()
    try:
        made.fairlane("config", "init")
        said = " ".join(made.fairlane("ena", "show", code=5).split())
        assert "the program on the switch is qthresh, not ena" in said
    finally:
        made.kill()
