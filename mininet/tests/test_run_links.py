# SPDX-License-Identifier: Apache-2.0
"""Real runs of links that change: by the topology file from the moment it is up, and by `fairlane link`. Needs root."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_session import launcher
from fairlane_controller.state.run_state import RunState
from fairlane_topology import state as fl_state
from steady import void_when_stalled

pytestmark = pytest.mark.kernel

HERE = Path(__file__).parents[1]
INSTANCE = "92"
START_TIMEOUT_S = 240.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root")


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """State goes to the test's own folder, and nothing is left behind."""
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    yield
    fl_state.clean(INSTANCE)


def run(tmp_path: Path, document: dict[str, Any], lines: list[str]) -> str:
    """What the launcher and the nodes say while these lines are read by Mininet's CLI."""
    topology, script = tmp_path / "t.json", tmp_path / "commands"
    topology.write_text(json.dumps(document))
    script.write_text("\n".join(lines) + "\n")
    command = launcher(INSTANCE, "--topology", str(topology), "--script", str(script))
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def document(link: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    """h1 - s1 - s2 - h2."""
    return {
        "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
        "switches": {"s1": {"ports": {"2": {"queue_packets": 50, "bottleneck": True}}}, "s2": {}},
        "links": [{"a": "h1", "b": "s1-p1"}, {"a": "s1-p2", "b": "s2-p1", **link}, {"a": "s2-p2", "b": "h2"}],
        "changes": changes,
    }


PING = "h1 ping -c 3 -i 0.2 -W 3 10.0.2.2"


def round_trips_ms(said: str) -> list[tuple[float, float]]:
    """(least, most) of each ping."""
    return [(float(a), float(b)) for a, b in re.findall(r"rtt min/avg/max/mdev = ([0-9.]+)/[0-9.]+/([0-9.]+)/", said)]


def shown(said: str) -> list[Any]:
    """Every JSON array that a command printed."""
    decoder, at = json.JSONDecoder(), 0
    found: list[Any] = []
    while (at := said.find("[\n", at)) >= 0:
        value, end = decoder.raw_decode(said, at)
        found.append(value)
        at = end
    return found


def keep_state(tmp_path: Path, name: str) -> str:
    """A line that keeps the run state as it is then, for `state_rates`."""
    read = "from fairlane_controller.state.run_state import find_folder, read_run_state"
    code = f"{read}; print(read_run_state(find_folder('{INSTANCE}')).model_dump_json())"
    return f'sh {sys.executable} -c "{code}" > {tmp_path / name}'


def state_rates(tmp_path: Path, name: str) -> dict[tuple[str, int], int]:
    """(switch, port) to bit/s, by the run state."""
    state = RunState.model_validate_json((tmp_path / name).read_text(), by_name=True)
    return {(switch.name, port.port): round(port.rate_bps) for switch in state.switches for port in switch.ports}


@needs_root
@void_when_stalled
def test_changes_of_the_file_are_played_from_the_moment_the_topology_is_up(tmp_path: Path) -> None:
    state = os.environ["FAIRLANE_STATE_DIR"]
    fairlane = f"sh FAIRLANE_STATE_DIR={state} {Path(sys.executable).with_name('fairlane')} link"
    changes = [
        {"at_s": 0, "link": "s1-s2", "delay_ms": 40, "rate_bps": "500kbit", "ge_enter": 0.0, "ge_leave": 0.5},
        {"at_s": 0.2, "every_s": 0.4, "link": "s1-s2", "direction": "b_to_a", "jitter_ms": 1},
        {"at_s": 0.3, "link": "s2-h2", "direction": "a_to_b", "rate_bps": {"trace": "12mbit.trace"}},
    ]
    (tmp_path / "12mbit.trace").write_text("1\n")
    said = run(
        tmp_path,
        document({"preset": "3g", "delay": "5ms", "jitter": 0}, changes),
        ["sh sleep 1", PING, f"{fairlane} list --json", keep_state(tmp_path, "seen")],
    )
    ((least, _),) = round_trips_ms(said)
    assert 78 <= least < 95, said
    (links,) = shown(said)
    middle = links[1]
    assert (middle["emulated"], middle["preset"]) == (True, "3g")
    assert middle["a_to_b"]["settings"]["delay_us"] == 40_000
    assert middle["a_to_b"]["settings"]["ge_leave"] == 0.5
    assert (middle["a_to_b"]["settings"]["jitter_us"], middle["b_to_a"]["settings"]["jitter_us"]) == (0, 1_000)
    assert (middle["a_to_b"]["port_rate_bps"], middle["b_to_a"]["port_rate_bps"]) == (500_000, 500_000)
    assert links[2]["a_to_b"]["port_rate_bps"] == 12_000_000
    assert state_rates(tmp_path, "seen") == {
        ("s1", 1): 0,
        ("s1", 2): 500_000,
        ("s2", 1): 500_000,
        ("s2", 2): 12_000_000,
    }


@needs_root
@void_when_stalled
def test_a_drawn_delay_and_a_trace_as_the_rate_of_a_port(tmp_path: Path) -> None:
    state = os.environ["FAIRLANE_STATE_DIR"]
    fairlane = f"sh FAIRLANE_STATE_DIR={state} {Path(sys.executable).with_name('fairlane')} link"
    (tmp_path / "cell.trace").write_text("20\n")
    burst = "h1 ping -c 10 -i 0.002 -s 1400 -W 5 10.0.2.2"
    lines = [
        "h1 ping -c 20 -i 0.2 -W 3 10.0.2.2",
        burst,
        f"{fairlane} list --json",
        f"{fairlane} set s1-s2 --delay '{{\"uniform\": [5, 100]}}'",
        f"{fairlane} set s1-s2 --delay 5ms --rate '{{\"steps\": [[0, 400e3]]}}'",
        burst,
        f"{fairlane} show s1-s2",
    ]
    link = {"bandwidth": {"trace": "cell.trace"}, "delay": {"uniform": [20, 40], "every_s": 1}}
    said = run(tmp_path, document(link, []), lines)
    trips, (links,) = round_trips_ms(said), shown(said)
    assert len(trips) == 3, said
    # Four draws or five; the request and its answer meet one delay, and wait for the trace, each at most 20 ms.
    assert 40 <= trips[0][0] < trips[0][1] - 4 < 130, said
    # Packets that come each 10 ms leave each 20 ms, then each 29 ms, until Qthresh refuses one.
    assert 95 < trips[1][1] < 400, said
    assert 110 < trips[2][1] < 400, said
    now = [links[1][way]["present"]["delay_us"] for way in ("a_to_b", "b_to_a")]
    assert now[0] == now[1]
    assert 20_000 <= now[0] <= 40_000
    assert links[1]["a_to_b"]["port_rate_bps"] == 600_000
    assert "delay: uniform: every_s is missing" in said
    assert '{"steps": [[0, 400000.0]]} (mean 400 kbit/s)' in said


@needs_root
@void_when_stalled
def test_links_change_by_command_while_it_runs(tmp_path: Path) -> None:
    state = os.environ["FAIRLANE_STATE_DIR"]
    fairlane = f"sh FAIRLANE_STATE_DIR={state} {Path(sys.executable).with_name('fairlane')} link"
    lines = [
        PING,
        f"{fairlane} set s1-s2 --delay 50ms --rate 2Mbit",
        PING,
        f"{fairlane} spike s1-s2 3s -d a_to_b",
        PING,
        f"{fairlane} outage s1-s2 60s -d b_to_a",
        "h1 ping -c 2 -i 0.2 -W 1 10.0.2.2",
        f"{fairlane} set h1-s1 --delay 1ms",
        f"{fairlane} set s1-s2-2 --delay 7ms",
        "h1 cat /proc/sys/net/ipv4/ip_local_port_range",
        f"{fairlane} list --json",
        keep_state(tmp_path, "seen"),
    ]
    both = document({"emulated": True}, [])
    both["links"].append({"a": "s1-p4", "b": "s2-p4"})
    said = run(tmp_path, both, lines)
    assert "20000\t65535" in said
    trips = round_trips_ms(said)
    assert len(trips) == 3, said
    assert trips[0][0] < 50
    assert 100 <= trips[1][0] < 120
    assert trips[2][1] > 300, "held"
    assert "2 packets transmitted, 0 received" in said
    access, middle, _, second = shown(said)[-1]
    assert (middle["name"], second["name"]) == ("s1-s2", "s1-s2-2")
    assert second["a_to_b"]["settings"]["delay_us"] == 7_000
    assert access["b_to_a"]["settings"]["delay_us"] == 1_000, "a link takes changes that the file does not foresee"
    assert middle["b_to_a"]["outage_left_us"] > 0
    assert middle["a_to_b"]["outage_left_us"] == 0
    assert middle["a_to_b"]["port_rate_bps"] == 2_000_000
    assert state_rates(tmp_path, "seen")["s1", 2] == 2_000_000
