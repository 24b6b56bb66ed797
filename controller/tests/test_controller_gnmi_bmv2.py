# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports` on a real BMv2: what Thrift can do is done and said, the rest is refused."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from fairlane_controller.gnmi.bmv2 import COMMAND
from fairlane_controller.state.run_state import read_topology, write_topology
from live_switch import LiveSwitch, binary, wait_until

pytestmark = [
    pytest.mark.skipif(binary("bmv2") is None, reason="simple_switch_grpc is not on the PATH"),
]


@pytest.fixture
def switch(tmp_path: Path) -> Generator[LiveSwitch]:
    """A BMv2 with its program, without interfaces; the run state names its Thrift port."""
    live = LiveSwitch("bmv2", tmp_path)
    live.write_state()
    state = read_topology(tmp_path)
    state["switches"][0]["thrift"] = live.thrift_port
    write_topology(tmp_path, state)
    try:
        live.start()
        live.fairlane("config", "init")
        yield live
    finally:
        live.kill()


def test_rate_and_depth_are_set_in_packets_and_the_rest_is_refused(switch: LiveSwitch) -> None:
    wait_until(f"{COMMAND} to be answered", lambda: switch.json("ports", "--interval", "0s"))
    said = switch.fairlane("ports", "set", "s1:3", "--rate", "4Mbit", "--queue-packets", "80")
    assert "4 Mbit/s is 330 packets/s for frames of 1514 bytes" in said
    assert "port_limit of port 3 = 80 packets" in said
    row = next(row for row in switch.json("ports", "--interval", "0s") if row["port"] == 3)
    assert (row["rate_bps"], row["queue_packets"], row["waiting_packets"]) == (4_000_000, 80, None)
    refused = switch.fairlane("ports", "set", "s1:3", "--rate", "5Mbit", "--scheduler", "drr", code=5)
    assert "is a BMv2: scheduler: it has strict priority only" in refused
    switch.fairlane("undo")
    row = next(row for row in switch.json("ports", "--interval", "0s") if row["port"] == 3)
    assert (row["rate_bps"], row["queue_packets"]) == (2_000_000, 50)
