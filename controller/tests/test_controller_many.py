# SPDX-License-Identifier: Apache-2.0
"""One controller for a whole topology: dumbbell, parking lot, a line of 20; a switch that is away or slow delays no other."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from live_topology import Controller, LiveTopology, controllers, live_topology, wait_until

pytestmark = pytest.mark.timed


def thresholds(topology: LiveTopology) -> dict[tuple[str, int], int]:
    """(switch, port) -> threshold in packets, as the switches hold it."""
    return {(row["switch"], row["port"]): row["qthresh_packets"] for row in topology.json("threshold", "show")}


@pytest.mark.parametrize(("file", "bottlenecks"), [("dumbbell.json", 1), ("parking.json", 3), ("line20.json", 19)])
def test_one_controller_keeps_a_whole_topology(tmp_path: Path, file: str, bottlenecks: int) -> None:
    with live_topology(tmp_path, file) as topology, controllers(Controller(tmp_path, "run")) as (loop,):
        loop.wait_ready()
        assert len(thresholds(topology)) == bottlenecks
        statuses = topology.statuses()
        assert set(statuses) == set(topology.switches)
        assert all(status["connected"] and not status["refused"] for status in statuses.values())
        topology.set_thresholds(9)
        assert set(thresholds(topology).values()) == {9}
        # The topology's longest way has a route in every switch.
        routes = topology.entries("ipv4_lpm")["ipv4_lpm"]
        assert {row["switch"] for row in routes} == set(topology.switches)

        killed = next(
            name for name, ports in topology.topology.ports.items() if any(p.bottleneck for p in ports.values())
        )
        others = [name for name in topology.switches if name != killed]
        topology.switches[killed].kill()
        wait_until("the loop to notice", lambda: not topology.json_of_loop()[killed]["connected"])
        assert all(topology.json_of_loop()[name]["connected"] for name in others)
        topology.restart(killed)
        wait_until("the switch to be restored", lambda: topology.json_of_loop()[killed]["connected"])
        assert set(thresholds(topology).values()) == {9}


def test_switches_that_are_away_or_silent_delay_no_other(tmp_path: Path) -> None:
    """s1 and s2 serve; s3 is not there; s4 takes connections and never says a word."""
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen()
    with silent, live_topology(tmp_path, "parking.json", only=("s1", "s2")) as topology:
        topology.addresses["s4"] = f"127.0.0.1:{silent.getsockname()[1]}"
        topology.write_state()
        topology.fairlane("config", "init", "--scheme", "qthresh", "--timeout", "2s", code=4)
        message = topology.fairlane("config", "init", "--timeout", "1s", "-s", "s3", "-s", "s4", code=4)
        assert "2 of 2 switches: switch s3 at" in message
        assert "switch s4 at" in message
        rows = topology.json("threshold", "show", "-s", "s1", "-s", "s2")
        assert [row["scheme"] for row in rows] == ["qthresh", "qthresh"]
        with controllers(Controller(tmp_path, "run")):
            wait_until("the loop", topology.has_loop)
            wait_until("s1 and s2 to be kept", lambda: topology.connected() == {"s1", "s2"})
            away = dict.fromkeys(("s3", "s4"), "switch_unreachable")
            wait_until("the loop to say what is wrong with s3 and s4", lambda: topology.errors() == away)
            topology.fairlane("threshold", "set", "7", "-s", "s1")
            status = topology.json("status", code=4)
            assert [switch["reachable"] for switch in status["switches"]] == [True, True, False, False]
            topology.restart("s3")
            wait_until("s3 to be kept too", lambda: topology.connected() == {"s1", "s2", "s3"})


def test_a_change_of_one_switch_needs_no_other_one(tmp_path: Path) -> None:
    """s2 is away: what concerns s1 alone is shown, made and taken back; what concerns both is refused, and nothing is written."""
    with live_topology(tmp_path, "dumbbell.json", program="codel") as topology:
        topology.switches["s2"].kill()

        def target(switch: str = "s1") -> list[str]:
            rows = topology.json("p4", "table_dump", "codel_port", "-s", switch)["entries"]
            return [str(row) for row in rows]

        before = target()
        assert "dry run: 1 update" in topology.fairlane("config", "set", "s1:3", "target=10ms", "--dry-run")
        topology.fairlane("config", "set", "s1:3", "target=10ms")
        assert target() != before
        topology.fairlane("undo")
        assert target() == before
        one, both = tmp_path / "one.toml", tmp_path / "both.toml"
        one.write_text('[[ports]]\nswitch = "s1"\nport = 3\ntarget = "20ms"\n', encoding="utf-8")
        both.write_text(one.read_text() + '[[ports]]\nswitch = "s2"\nport = 1\ntarget = "20ms"\n', encoding="utf-8")
        topology.fairlane("config", "diff", str(one), code=10)
        topology.fairlane("config", "apply", str(both), code=4)
        assert target() == before
        topology.fairlane("config", "apply", str(one))
        after = target()
        assert after != before
        topology.restart("s2")
        topology.fairlane("config", "init")
        topology.fairlane("config", "apply", str(both))
        assert target() == after
        assert target("s2")


def test_beside_a_loop_a_change_of_one_switch_needs_no_other_one(tmp_path: Path) -> None:
    """The loop writes it; when the other switch is back, it has what the configuration that was applied last says of it."""
    with live_topology(tmp_path, "dumbbell.json") as topology, controllers(Controller(tmp_path, "run")) as (loop,):
        loop.wait_ready()
        topology.switches["s2"].kill()
        topology.fairlane("config", "set", "s1:3", "limit_packets=40")
        topology.fairlane("threshold", "set", "s1:3", "5")
        topology.fairlane("undo")
        wait_until("s2 to be away", lambda: topology.connected() == {"s1"})
        topology.fairlane("config", "set", "s2:1", "managed=true", code=4)
        topology.restart("s2")
        wait_until("s2 to be kept", lambda: topology.connected() == {"s1", "s2"})
        topology.fairlane("config", "set", "s2:1", "managed=true", "limit_packets=30")
        limits = [row["match"] for row in topology.entries("port_limit")["port_limit"]]
        assert len(limits) == 2
        topology.switches["s2"].kill()
        topology.fairlane("config", "set", "s1:3", "limit_packets=45")
        wait_until("s2 to be away", lambda: topology.connected() == {"s1"})
        topology.restart("s2")
        wait_until("s2 to be kept", lambda: topology.connected() == {"s1", "s2"})
        wait_until(
            "s2's limit", lambda: [row["match"] for row in topology.entries("port_limit")["port_limit"]] == limits
        )
