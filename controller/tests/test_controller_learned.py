# SPDX-License-Identifier: Apache-2.0
"""A program in a folder that learns entries by a digest (docs/examples/talkers): they come, are counted, adopted, and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.state.run_state import read_topology, write_topology
from live_switch import LiveSwitch, wait_until
from test_controller_frames import ipv4_frame, send

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "talkers"


@pytest.fixture
def switch(wired_switch: LiveSwitch) -> LiveSwitch:
    """A switch that runs the example instead."""
    state = read_topology(wired_switch.folder)
    (one,) = state["switches"]
    one |= {"json": str(EXAMPLE / "talkers.json"), "p4info": str(EXAMPLE / "talkers.p4info.txtpb")}
    one["ports"] = [{"port": 1}, {"port": 3}]
    write_topology(wired_switch.folder, {**state, "program": str(EXAMPLE)})
    wired_switch.kill()
    wired_switch.start()
    wired_switch.fairlane("config", "init")
    return wired_switch


def talkers(switch: LiveSwitch) -> dict[str, tuple[int, int]]:
    """Packets and large ones of each pair that has an entry."""
    return {row["talker"]: (row["packets"], row["large_packets"]) for row in switch.json("status").get("talkers", ())}


def frame(number: int, length: int = 100) -> bytes:
    """From a host of its own."""
    return ipv4_frame(17, f"10.0.1.{number}", "10.0.3.1", bytes(length))


def test_what_a_digest_announces_is_learned_counted_and_taken_over(switch: LiveSwitch) -> None:
    first, second = "10.0.1.1 > 10.0.3.1", "10.0.1.2 > 10.0.3.1"
    with switch.loop() as process:
        send(switch, frame(1), frame(1), frame(2))
        wait_until("two entries", lambda: talkers(switch) == {first: (0, 0), second: (0, 0)})
        send(switch, frame(1), frame(1, 1200), frame(2, 1200))
        wait_until("the counters", lambda: talkers(switch) == {first: (2, 1), second: (1, 1)})
        status = switch.loop_status()["talkers"]
        assert (status["entries"], status["missed"]) == (2, 0)
        assert [(event["flow"], event["slot"]) for event in switch.events("flow")] == [(first, 0), (second, 1)]
        process.kill()
        process.wait(timeout=10)
    with switch.loop():
        send(switch, frame(3))
        wait_until("another entry", lambda: len(talkers(switch)) == 3)
        assert [event["slot"] for event in switch.events("flow")] == [0, 1, 2]
        assert talkers(switch)[first] == (2, 1)


def test_an_entry_goes_when_nothing_matches_it(switch: LiveSwitch, tmp_path: Path) -> None:
    folder = tmp_path / "brief"
    folder.mkdir()
    text = (EXAMPLE / "program.py").read_text(encoding="utf-8").replace('p4 = "talkers"', f'p4 = "{EXAMPLE}/talkers"')
    text = text.replace('counter="large"', 'counter="large", idle_timeout_s=0.2')
    (folder / "program.py").write_text(text, encoding="utf-8")
    state: dict[str, Any] = read_topology(switch.folder)
    write_topology(switch.folder, {**state, "program": str(folder)})
    with switch.loop():
        send(switch, frame(1))
        wait_until("the entry to come and go", lambda: switch.events("flow_gone"))
        assert talkers(switch) == {}
