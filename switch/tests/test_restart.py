# SPDX-License-Identifier: Apache-2.0
"""A switch that is killed (-9) is started again at once, at the same addresses; switches in one process start together and serve alone."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import finsy as fy
import pytest
from fairlane_switch.process import READY, ProcessFailedError, find_binary, start_process

PROGRAM = Path(__file__).parent.parent.parent / "p4src" / "compiled"
RESTARTS = 20

pytestmark = pytest.mark.timeout(120)


def command(control: Path, grpc: str) -> list[str | Path]:
    program = ["--pipeline", PROGRAM / "qthresh.json", "--p4info", PROGRAM / "qthresh.p4info.txtpb"]
    return [find_binary("fairlane-switch"), "--grpc", grpc, "--control", control, *program]


def test_a_killed_switch_is_started_again_at_once(tmp_path: Path) -> None:
    """It has its sockets until its memory is gone; who comes meanwhile waits for that, and does not say "address in use"."""
    control = tmp_path / "s1.sock"
    running = start_process(command(control, "127.0.0.1:0"))
    grpc = running.line(READY).split("grpc=")[1].split()[0]
    try:
        for _ in range(RESTARTS):
            os.kill(running.pid, signal.SIGKILL)
            killed, running = running, start_process(command(control, grpc))
            assert killed.stop() == -signal.SIGKILL
    finally:
        running.stop()


def test_what_lives_is_not_pushed_away(tmp_path: Path) -> None:
    control, other = tmp_path / "s1.sock", tmp_path / "s2.sock"
    with start_process(command(control, "127.0.0.1:0")) as first:
        grpc = first.line(READY).split("grpc=")[1].split()[0]
        with pytest.raises(ProcessFailedError, match=r"--control .*s1.sock: cannot listen: address in use"):
            start_process(command(control, "127.0.0.1:0"))
        with pytest.raises(ProcessFailedError, match=f"cannot listen on {grpc}: Address already in use"):
            start_process(command(other, grpc))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(control))


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
def test_a_network_starts_with_all_its_switches_or_not_at_all(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_address = f"127.0.0.1:{taken.getsockname()[1]}"
        switches = [
            {"name": name, "arguments": ["--grpc", address]}
            for name, address in (("s1", "127.0.0.1:0"), ("s2", taken_address))
        ]
        config = tmp_path / "network.json"
        config.write_text(json.dumps({"switches": switches, "links": []}))
        network = [find_binary("fairlane-switch"), "network", "--config", config, "--control", tmp_path / "n.sock"]
        with pytest.raises(ProcessFailedError, match=f'switch "s2": cannot listen on {taken_address}'):
            start_process(network, ready="fairlane-switch: ready switches=")


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
def test_a_long_write_to_a_switch_of_a_network_ends_though_nobody_wakes_its_loop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "network.json"
    arguments = [*map(str, command(tmp_path / "s1.sock", address))][1:]
    config.write_text(json.dumps({"switches": [{"name": "s1", "arguments": arguments}], "links": []}))
    network = [find_binary("fairlane-switch"), "network", "--config", config, "--control", tmp_path / "n.sock"]
    flows = [
        fy.P4TableEntry(
            "flow_v4",
            match=fy.Match(src="10.0.1.1", dst="10.0.2.2", protocol=17, src_port=flow, dst_port=9, vid=0),
            action=fy.Action("set_flow", flow_id=flow),
        )
        for flow in range(10_000)
    ]

    async def write() -> int:
        p4info = PROGRAM / "qthresh.p4info.txtpb"
        async with fy.Switch("s1", address, fy.SwitchOptions(p4info=p4info)) as switch:
            await switch.insert(flows)
            return len([entry async for entry in switch.read(fy.P4TableEntry("flow_v4"))])

    with start_process(network, ready="fairlane-switch: ready switches="):
        assert asyncio.run(asyncio.wait_for(write(), 30)) == len(flows)
