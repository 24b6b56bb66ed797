#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exercises `ecn` and `link_monitor` of p4lang/tutorials in virtual time: their compiled programs, topologies and entries, with the simulator's flows in place of iperf.

.venv/bin/python tutorials/virtual_time.py ~/tutorials/exercises/ecn      # after `make build` there
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairlane_controller.errors import short
from fairlane_lab.programs import set_pipeline
from fairlane_lab.sim.config import network_of
from fairlane_switch import native
from fairlane_topology import topology as fl_topology
from fairlane_topology.runtime_json import load_all
from finsy import P4Schema
from finsy.proto import p4r

S = 1_000_000_000
SECONDS = 30
"""Of virtual time."""
CPU_PORT = 255
"""Of the switches: where a probe names its next port it has 8 bits for it."""
PROBE_ETHERTYPE = 0x812
PROBE_DATA_BYTES = 18
PROBE_WAY = (4, 1, 4, 1, 3, 2, 3, 2, CPU_PORT)
"""Ports of s1, s4, s2, s3, s1, s3, s2, s4 and s1, as the exercise's `send.py` has them; then back to whoever sent it."""


class Network:
    """A topology of the tutorials in virtual time, each switch with the program and the entries of its `runtime_json`."""

    def __init__(self, file: Path, flows: Sequence[dict[str, Any]]) -> None:
        """`flows` as the simulator has them. Raises TopologyError for what is wrong with a file, native.P4RuntimeError for what a switch refuses."""
        topology = fl_topology.load(file)
        runtimes = load_all(topology)
        if left := sorted(topology.switches.keys() - runtimes.keys()):
            raise fl_topology.TopologyError(f"{file}: /switches/{left[0]}: runtime_json is missing: what would it run?")
        document = {**network_of(topology, cpu_port=CPU_PORT), "flows": list(flows)}
        self.simulation = native.Simulation(json.dumps(document))
        self.switches = {name: self.simulation.p4rt(name) for name in topology.switches}
        for name, runtime in runtimes.items():
            schema = P4Schema(runtime.pipeline.p4info, runtime.pipeline.json)
            self.switches[name].set_pipeline(set_pipeline(schema))
            updates = [make().encode_update(schema) for _, make in runtime.updates]
            self.switches[name].write(p4r.WriteRequest(device_id=1, updates=updates).SerializeToString())

    def flow(self, name: str) -> dict[str, Any]:
        """Counts of a flow so far."""
        return next(row for row in json.loads(self.simulation.flows()) if row["flow"] == name)

    def port(self, switch: str, port: int) -> dict[str, Any]:
        """State and counts of a port."""
        rows = json.loads(self.simulation.ports())
        return next(row for row in rows if (row["switch"], row["port"]) == (switch, port))

    def send(self, switch: str, frame: bytes) -> None:
        """Give a switch a frame at its CPU port."""
        message = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=frame))
        self.switches[switch].send(message.SerializeToString())

    def received(self, switch: str) -> Iterator[bytes]:
        """Frames that have left by a switch's CPU port since the last call."""
        for data in self.switches[switch].messages():
            message = p4r.StreamMessageResponse.FromString(data)
            if message.WhichOneof("update") == "packet":
                yield message.packet.payload


def ecn(folder: Path) -> Iterator[str]:
    """h1 sends to h2 by TCP with ECN (RFC 3168) over the link s1-s2: the program's marks halve the window before anything is lost."""
    tcp = {"cc": "reno", "mss_bytes": 1_000, "ecn": True}
    flow = {"name": "h1", "from": "h1", "to": "h2", "app": {"kind": "greedy"}, "tcp": tcp}
    network = Network(folder / "topology.json", [flow])
    sent_bytes = 0
    yield "  time   s1:3 kbit/s   waiting there   window   halved   retransmitted"
    for second in range(1, SECONDS + 1):
        network.simulation.run_until(second * S)
        h1, port = network.flow("h1"), network.port("s1", 3)
        rate, sent_bytes = 8 * (port["tx_bytes"] - sent_bytes) / 1000, port["tx_bytes"]
        counts = f"{h1['cwnd_packets']:6}   {h1['window_reductions']:6}   {h1['retransmits']:13}"
        yield f"{second:4} s   {rate:11.3f}   {port['waiting_packets']:13}   {counts}"


def probe(ports: Sequence[int]) -> bytes:
    """A frame that is to leave by these ports, one switch after the other."""
    return bytes(12) + PROBE_ETHERTYPE.to_bytes(2, "big") + bytes([0, *ports])


def measurements(frame: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(switch, port, bytes that have left since the last probe, µs since then) that a probe brings, the last switch first."""
    for number in range(frame[14]):
        data = frame[15 + number * PROBE_DATA_BYTES :][:PROBE_DATA_BYTES]
        last_us, now_us = (int.from_bytes(data[at : at + 6], "big") for at in (6, 12))
        yield data[0] & 0x7F, data[1], int.from_bytes(data[2:6], "big"), now_us - last_us


def link_monitor(folder: Path) -> Iterator[str]:
    """A probe a second on the exercise's way, while h1 sends 8 Mbit/s of payload to h4 in frames of 1042 bytes: 8.336 Mbit/s."""
    app = {"kind": "cbr_udp", "rate_bps": 8_000_000, "payload_bytes": 1_000}
    network = Network(folder / "pod-topo" / "topology.json", [{"name": "h1", "from": "h1", "to": "h4", "app": app}])
    for second in range(1, SECONDS + 1):
        network.simulation.run_until(second * S)
        network.send("s1", probe(PROBE_WAY))
        network.simulation.run_until(second * S + S // 2)
        for frame in network.received("s1"):
            rates = [(8 * count / us, switch, port) for switch, port, count, us in measurements(frame) if us]
            busy = [f"s{switch}:{port} {rate:.3f}" for rate, switch, port in rates if rate > 1]
            yield f"{second:4} s   Mbit/s: {', '.join(busy)}"


EXERCISES: dict[str, Callable[[Path], Iterator[str]]] = {"ecn": ecn, "link_monitor": link_monitor}


def main(arguments: list[str]) -> int:
    """0: done; 2: there is something wrong with the folder."""
    folder = Path(arguments[0]).absolute() if len(arguments) == 1 else Path()
    if folder.name not in EXERCISES:
        print(
            f"error: name one folder of p4lang/tutorials: exercises/{' or exercises/'.join(EXERCISES)}", file=sys.stderr
        )
        return 2
    began_s = time.monotonic()
    try:
        for line in EXERCISES[folder.name](folder):
            print(line)
    except (fl_topology.TopologyError, native.P4RuntimeError, ValueError) as error:
        print(f"error: {short(str(error), 500)}; `make build` in the exercise compiles it", file=sys.stderr)
        return 2
    print(f"{SECONDS} s of virtual time in {time.monotonic() - began_s:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
