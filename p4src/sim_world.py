# SPDX-License-Identifier: Apache-2.0
"""A program of ours in virtual time: one switch, hosts that send UDP at exact times, P4Runtime with finsy's entities.

h1 ── port 1 ┐
h2 ── port 2 ┤ switch ├── port 9 ── sink      port N's host is 10.0.N.1
 …           ┘
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finsy as fy
from fairlane_switch import native
from finsy import P4Schema
from finsy.p4entity import decode_entity, encode_entities, encode_updates
from finsy.proto import p4r

COMPILED = Path(__file__).resolve().parent / "compiled"
SINK_PORT = 9
SWITCH_MAC = "02:00:00:00:00:01"
UDP_HEADERS_BYTES = 42
"""Ethernet, IPv4 and UDP."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Cbr:
    """UDP from the host behind a port: payload bits `rate_bps`, from `start_ns` to before `stop_ns`."""

    port: int
    rate_bps: int
    payload_bytes: int
    start_ns: int
    stop_ns: int
    ect1: bool = False
    "Its datagrams say ECT(1), else not-ECT."

    def times_ns(self) -> Iterator[int]:
        """When each frame leaves the host, as netsim's cbr_udp has it, and with no delay reaches the switch."""
        for k in range(1 << 62):
            at = self.start_ns + k * self.payload_bytes * 8 * NS_PER_S // self.rate_bps
            if at >= self.stop_ns:
                return
            yield at

    @property
    def frame_bytes(self) -> int:
        return self.payload_bytes + UDP_HEADERS_BYTES


class World:
    """The network with the program loaded and routes set; port 9 is the one to manage."""

    def __init__(
        self,
        program: str,
        flows: Iterable[Cbr],
        *,
        sink_rate_bps: int = 0,
        sink: dict[str, Any] | None = None,
        seed: int = 1,
    ) -> None:
        """`sink_rate_bps` 0: port 9 takes no time. `sink`: more keys of port 9."""
        flows = list(flows)
        sources = sorted({flow.port for flow in flows})
        ports: list[dict[str, Any]] = [{"port": port} for port in sources]
        ports.append({"port": SINK_PORT, "rate_bps": sink_rate_bps, "queue_packets": 100_000} | (sink or {}))
        self.schema = P4Schema(COMPILED / f"{program}.p4info.txtpb", COMPILED / f"{program}.json")
        self.simulation = native.Simulation(
            json.dumps(
                {
                    "seed": seed,
                    "switches": [{"name": "s1", "program": None, "cpu_port": 510, "ports": ports}],
                    "hosts": [_host(port) for port in (*sources, SINK_PORT)],
                    "links": [
                        {"name": f"h{port}", "a": {"node": f"h{port}"}, "b": {"node": "s1", "port": port}}
                        for port in (*sources, SINK_PORT)
                    ],
                    "flows": [
                        {
                            "name": f"f{index}",
                            "from": f"h{flow.port}",
                            "to": f"h{SINK_PORT}",
                            "start_ns": flow.start_ns,
                            "stop_ns": flow.stop_ns,
                            "app": {"kind": "cbr_udp", "rate_bps": flow.rate_bps, "payload_bytes": flow.payload_bytes},
                            "tcp": {"ect1": flow.ect1},
                        }
                        for index, flow in enumerate(flows)
                    ],
                }
            )
        )
        self._switch = self.simulation.p4rt("s1")
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=1,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self.schema.get_pipeline_config(),
        )
        self._switch.set_pipeline(request.SerializeToString())
        for port in (*sources, SINK_PORT):
            self.insert("ipv4_lpm", {"hdr.ipv4.dst": f"10.0.{port}.0/24"}, "forward", dst_mac=_mac(port), port=port)

    def run_until(self, t_ns: int) -> None:
        self.simulation.run_until(t_ns)

    def write(self, *updates: Any) -> None:
        messages = [u for u in encode_updates(updates, self.schema) if isinstance(u, p4r.Update)]
        self._switch.write(p4r.WriteRequest(device_id=1, updates=messages).SerializeToString())

    def insert(self, table: str, match: dict[str, Any], action: str, priority: int = 0, **args: Any) -> None:
        self.write(+_entry(table, match, action, priority, args))

    def modify(self, table: str, match: dict[str, Any], action: str, priority: int = 0, **args: Any) -> None:
        self.write(~_entry(table, match, action, priority, args))

    def read(self, *entities: Any) -> list[Any]:
        request = p4r.ReadRequest(device_id=1, entities=encode_entities(entities, self.schema))
        answers = self._switch.read(request.SerializeToString())
        return [decode_entity(e, self.schema) for a in answers for e in p4r.ReadResponse.FromString(a).entities]

    def register(self, name: str, index: int) -> int:
        (entry,) = self.read(fy.P4RegisterEntry(name, index=index))
        return entry.data

    def set_register(self, name: str, index: int, value: int) -> None:
        self.write(~fy.P4RegisterEntry(name, index=index, data=value))

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes)."""
        (entry,) = self.read(fy.P4CounterEntry(name, index=index))
        return entry.packet_count, entry.byte_count

    def sink(self) -> dict[str, Any]:
        """The report of port 9 (crate netsim)."""
        reports: list[dict[str, Any]] = json.loads(self.simulation.ports())
        return next(report for report in reports if report["port"] == SINK_PORT)


def _entry(table: str, match: dict[str, Any], action: str, priority: int, args: dict[str, Any]) -> fy.P4TableEntry:
    return fy.P4TableEntry(table, match=fy.Match(**match), action=fy.Action(action, **args), priority=priority)


def _mac(port: int) -> str:
    return f"08:00:00:00:{port:02x}:01"


def _host(port: int) -> dict[str, Any]:
    return {"name": f"h{port}", "ip": f"10.0.{port}.1", "mac": _mac(port), "gateway_mac": SWITCH_MAC}
