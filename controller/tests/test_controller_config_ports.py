# SPDX-License-Identifier: Apache-2.0
"""Settings of ports in the configuration file, on real switches: over gNMI on the embedded one, over Thrift on BMv2."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest
from fairlane_controller.config.compare import read_infos
from fairlane_controller.errors import FairlaneError
from fairlane_controller.history.sites import Sites
from fairlane_controller.programs.qthresh.policies import read_managed
from fairlane_controller.state.run_state import read_run_state, read_topology, write_topology
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from live_switch import LiveSwitch

PORT = """
[[ports]]
switch = "s1"
port = 3
rate = "{rate}"
queue_packets = {queue}
managed = true
limit_packets = {limit}
"""


@pytest.fixture
def port_switch(wired_switch: LiveSwitch) -> LiveSwitch:
    """A switch whose ports can be set: it serves gNMI, or is a BMv2 with its command line."""
    switch = wired_switch
    state = read_topology(switch.folder)
    state["switches"][0]["thrift"] = switch.thrift_port
    write_topology(switch.folder, state)
    if switch.target == "bmv2" and shutil.which("simple_switch_CLI") is None:
        pytest.skip("simple_switch_CLI is not on the PATH")
    try:
        asyncio.run(read_infos(Sites(read_run_state(switch.folder)), "s1"))
    except FairlaneError as ex:
        pytest.skip(f"{ex.message}: build the switch")
    return switch


def limit(switch: LiveSwitch) -> int:
    """What the program lets wait at port 3."""

    async def read() -> int:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}")) as client:
            return (await read_managed(client)).ports[3].limit_packets or 0

    return asyncio.run(read())


def port(switch: LiveSwitch) -> dict[str, Any]:
    """Port 3 as `config show` has it."""
    ports = switch.json("config", "show")["config"]["ports"]
    (found,) = [one for one in ports if one["port"] == 3]
    return found


def test_rate_and_queue_with_the_limit_beside_them(port_switch: LiveSwitch) -> None:
    switch, file = port_switch, port_switch.folder / "ports.toml"
    file.write_text(PORT.format(rate="1Mbit", queue=60, limit=55), encoding="utf-8")
    rows = switch.json("config", "diff", str(file), code=10)["differences"]
    assert (rows[0]["what"], rows[0]["file"]) == ("port", "rate=1 Mbit/s, queue_packets=60")
    assert [row["what"] for row in rows] == ["port", "port_limit"]
    assert switch.json("config", "apply", str(file)) == {"written": {"s1": 1}, "settings": 0, "ports": 1}
    assert limit(switch) == 55
    assert switch.json("config", "diff")["same"] is True
    assert {"rate": 1e6, "queue_packets": 60, "limit_packets": 55}.items() <= port(switch).items()
    # The limit stays where the file has it although the queue grows.
    file.write_text(PORT.format(rate="1Mbit", queue=80, limit=55), encoding="utf-8")
    switch.fairlane("config", "apply", str(file))
    assert limit(switch) == 55
    switch.fairlane("undo")
    assert (limit(switch), port(switch)["queue_packets"]) == (55, 60)
    switch.fairlane("undo")
    assert (limit(switch), port(switch)["queue_packets"], port(switch)["rate"]) == (50, 50, 2e6)


def test_a_port_that_marks_goes_on_marking(switch: LiveSwitch) -> None:
    """Who does not name `ecn` leaves it as it is; a limit that was made without it marks nothing."""
    file = switch.folder / "marks.toml"
    file.write_text('[[ports]]\nswitch = "s1"\nport = 3\nmanaged = true\n', encoding="utf-8")
    switch.fairlane("config", "apply", str(file))
    assert port(switch)["ecn"] is False
    assert "ecn=true" in switch.fairlane("config", "set", "s1:3", "ecn=true")
    switch.fairlane("config", "set", "s1:3", "limit_packets=40")
    assert (port(switch)["ecn"], limit(switch)) == (True, 40)
    switch.fairlane("undo")
    switch.fairlane("undo")
    assert (port(switch)["ecn"], limit(switch)) == (False, 50)


def test_a_refusal_takes_the_ports_back(port_switch: LiveSwitch) -> None:
    switch, file = port_switch, port_switch.folder / "ports.toml"
    rule = "[[classes]]\nclass = 1\ndscp = {}\n"
    many = "".join(rule.format(n) for n in range(64))
    fill(switch)
    text = PORT.format(rate="1Mbit", queue=60, limit=60) + many
    # What is new is inserted before what is extra goes, and the table has no room for both.
    file.write_text(text, encoding="utf-8")
    before = port(switch)
    switch.fairlane("config", "apply", str(file), code=5)
    assert port(switch) == before
    assert limit(switch) == 50


def fill(switch: LiveSwitch) -> None:
    """Fill the table of classes with rules that no file can say."""

    async def work() -> None:
        async with SwitchClient(Endpoint("s1", f"127.0.0.1:{switch.grpc_port}"), write=True) as client:
            size = client.switch.p4info.tables["flow_class"].size
            action = P4TableAction("set_class", traffic_class=1)
            await client.write(
                [
                    +P4TableEntry(
                        "flow_class", match=P4TableMatch(ingress_port=(1, 0x1FF)), action=action, priority=100 + n
                    )
                    for n in range(size)
                ]
            )

    asyncio.run(work())


def test_a_port_is_set_where_the_program_cannot_be_loaded(port_switch: LiveSwitch) -> None:
    write_topology(port_switch.folder, {**read_topology(port_switch.folder), "program": "/is/not/there"})
    assert "s1:3 is set: rate 1 Mbit/s" in port_switch.fairlane("ports", "set", "s1:3", "--rate", "1Mbit")
