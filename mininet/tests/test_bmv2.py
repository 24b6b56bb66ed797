# SPDX-License-Identifier: Apache-2.0
"""What BMv2 is started with, and the lines that its command line gets; it need not be there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fairlane_controller.state.run_state import LinkEnd, read_run_state, write_topology
from fairlane_switch import bmv2
from fairlane_switch.link_control import RunningPorts
from fairlane_topology import nodes
from fairlane_topology.topology import PortSpec


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> nodes.SimpleSwitchGrpc:
    """s1 with a limited port 1 and an unlimited port 2."""

    def binary(name: str) -> Path:
        return Path("/bin") / name

    monkeypatch.setattr(bmv2, "find_binary", binary)
    monkeypatch.setenv("FAIRLANE_STATE_DIR", "pem")
    made = object.__new__(nodes.SimpleSwitchGrpc)
    made.specs = {1: PortSpec(rate_bps=2_000_000, queue_packets=50), 2: PortSpec(rate_bps=0)}
    made.options = nodes.NetworkOptions(tls=True, frame_bytes=1250)
    made.grpc, made.device_id = "127.0.0.1:50051", 3
    made.intfs = {0: "lo", 1: "s1-eth1", 2: "s1-eth2"}
    made.name = "s1"
    return made


def test_its_command_line_has_ports_addresses_and_certificates(switch: nodes.SimpleSwitchGrpc) -> None:
    assert " ".join(switch.arguments()) == (
        "--no-p4 --device-id 3 --thrift-port 20051 -i 1@s1-eth1 -i 2@s1-eth2 -- "
        "--grpc-server-addr 127.0.0.1:50051 --cpu-port 510 --priority-queues 8 --grpc-server-cert pem/0/tls/server.pem "
        "--grpc-server-key pem/0/tls/server.key --grpc-server-cacert pem/0/tls/ca.pem --grpc-server-ssl --grpc-server-with-client-auth"
    )
    assert str(switch.endpoint) == "switch s1 at 127.0.0.1:50051"


def test_its_queues_are_limited_in_packets(
    switch: nodes.SimpleSwitchGrpc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[str] = []

    def run(command: list[str], *, input: str, **_: Any) -> Any:
        assert command == ["/bin/simple_switch_CLI", "--thrift-port", "20051"]
        given.append(input)
        return SimpleNamespace(returncode=0, stdout="Error: no such port" if "9" in input else "", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    folder = switch.options.folder
    folder.mkdir()
    there = [{"port": 1, "rate_bps": 2_000_000, "queue_packets": 50}, {"port": 2, "queue_packets": 1000}]
    one = {"name": "s1", "grpc": switch.grpc, "thrift": switch.thrift_port, "frame_bytes": 1250, "ports": there}
    write_topology(folder, {"name": "0", "target": "bmv2", "switches": [one]})
    switch.shape()
    assert given == ["set_queue_rate 200 1\nset_queue_depth 50 1\nset_queue_depth 1000 2\n"]
    ports = RunningPorts(read_run_state(folder))
    ports.set_rate(LinkEnd("s1", 1), 3_000_000)
    assert given[1:] == ["set_queue_rate 300 1\n"]
    assert RunningPorts(read_run_state(folder)).rate_bps(LinkEnd("s1", 1)) == 3_000_000
    switch.shape()  # of a process that has started again
    assert given[2] == "set_queue_rate 300 1\nset_queue_depth 50 1\nset_queue_depth 1000 2\n"
    with pytest.raises(RuntimeError, match=r"^/bin/simple_switch_CLI .*: Error: no such port"):
        ports.set_rate(LinkEnd("s1", 9), 1_000_000)
    with pytest.raises(RuntimeError, match='a spike may block "delivery"'):
        ports.spike(LinkEnd("s1", 1), 5e6)
