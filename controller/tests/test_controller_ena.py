# SPDX-License-Identifier: Apache-2.0
"""Switches that run ena.p4, without frames: far sides by the topology and by hand, and what other commands report there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def far_sides(switch: LiveSwitch) -> dict[int, dict[str, Any]]:
    """The rows of the far sides in `status`, by port."""
    return {row["port"]: row for row in switch.json("status")["ports"] if row["managed"]}


def test_init_writes_routes_and_far_sides_once(switch: LiveSwitch) -> None:
    done = {"switch": "s1", "routes": 3, "managed_ports": [1], "written": 5}
    assert switch.json("config", "init") == [done]
    assert switch.json("config", "init") == [{**done, "written": 0}]
    assert "far-side ports" in switch.fairlane("config", "init")
    (row,) = far_sides(switch).values()
    names = ("ena_corrupted", "ena_strays", "ena_notified", "ena_no_room", "ena_no_place", "dropped")
    assert {name: row[name] for name in names} == dict.fromkeys(names, 0)
    write_state(switch, 2, 3)
    assert switch.json("config", "init") == [{**done, "managed_ports": [2, 3], "written": 6}]
    assert [*far_sides(switch)] == [2, 3]


def test_ports_are_marked_and_unmarked(switch: LiveSwitch) -> None:
    switch.fairlane("config", "init")
    switch.fairlane("config", "set", "s1:3", "far_side=true")
    assert [*far_sides(switch)] == [1, 3]
    switch.fairlane("config", "set", "s1:3", "far_side=true")
    switch.fairlane("config", "set", "s1:1", "far_side=false")
    assert [*far_sides(switch)] == [3]
    assert "corrupted, named" in switch.fairlane("status"), "the program's own columns"
    said = " ".join(switch.fairlane("config", "set", "s1:4", "far_side=true", code=3).split())
    assert "switch s1 has no port 4; valid: 1, 2, 3" in said
    assert [*far_sides(switch)] == [3]


@pytest.mark.parametrize("switch", ["embedded"], indirect=True)
def test_a_mark_whose_command_is_killed_before_it_is_recorded_is_taken_back(
    switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise SystemExit(9)

    switch.fairlane("config", "init")
    with monkeypatch.context() as patch:
        patch.setattr("fairlane_controller.state.intent.Intent.keep", kill)
        switch.fairlane("config", "set", "s1:3", "far_side=true", code=9)
    assert [*far_sides(switch)] == [1, 3]
    assert "cannot be undone: the program was loaded" in " ".join(switch.fairlane("undo", code=2).split())
    assert [*far_sides(switch)] == [1]
    assert len(switch.json("undo", "--list")) == 1


def test_other_programs_commands_say_what_runs(switch: LiveSwitch) -> None:
    switch.fairlane("config", "init")
    said = " ".join(switch.fairlane("threshold", "show", code=5).split())
    assert "the program on the switch is ena, not qthresh" in said
    assert "the program ena needs no control loop" in " ".join(switch.fairlane("run", code=2).split())
    assert "the program ena has no schemes" in switch.fairlane("config", "init", "--scheme", "drop_tail", code=2)
