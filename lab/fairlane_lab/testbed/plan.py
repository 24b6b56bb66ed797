# SPDX-License-Identifier: Apache-2.0
"""A scenario's flows as command lines of `fairlane-traffic`: one sender process a flow, one sink for flows that want the same of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from fairlane_hosts.variants import find_variant

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import UDP_KINDS, Flow, Place, Scenario, command_words, names_of, tcp_of

FIRST_SINK_PORT = 5001
FIRST_COMMAND_PORT = 6001
COMMANDS = {"greedy": "send", "bytes": "transfer", "on_off": "onoff", "cbr_udp": "udp"}
"""Kind of an application → the command of `fairlane-traffic`, where that has another name."""
OPTIONS = {"on_mean_s": "on-s", "off_mean_s": "off-s", "payload_bytes": "payload"}
"""Settings of an application whose options have other names."""


@dataclass(frozen=True)
class Sink:
    """One sink process. Flows share it where all but `port` is equal; the weight, because the switch knows flows by port."""

    host: str
    is_udp: bool
    weight: float
    receive_window_bytes: int
    mss_bytes: int
    read_interval_s: float
    folder: Path
    port: int = 0

    @property
    def name(self) -> str:
        return f"sink-{self.host}-{self.port}"

    @property
    def out(self) -> Path:
        return self.folder / f"{self.name}.jsonl"

    @property
    def ready(self) -> Path:
        return self.folder / f"{self.name}.ready"

    def command(self, sample_ms: int) -> list[str]:
        """Arguments of `fairlane-traffic`."""
        given: dict[str, Any] = {"port": self.port, "ready-file": self.ready, "sample-ms": sample_ms}
        if self.is_udp:
            given["udp"] = True
        if self.receive_window_bytes:
            # Linux rounds what the SYN-ACK offers down to whole segments of the receiver's own MSS: 10,136 bytes are six of
            # 1460, and seven of 1448.
            given |= {"window": self.receive_window_bytes, "mss": self.mss_bytes}
        if self.read_interval_s:
            given["read-after-ms"] = f"{self.read_interval_s * 1000:g}"
        return ["sink", *_options({**given, "out": self.out})]


@dataclass(frozen=True)
class Sender:
    """One sender process: a flow of the scenario, with all its connections."""

    flow: Flow
    sink: Sink
    address: str
    """Of the receiver."""

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def out(self) -> Path:
        return self.sink.folder / (re.sub(r"[^\w.-]", "_", self.name) + ".jsonl")

    @property
    def is_udp(self) -> bool:
        return self.sink.is_udp

    def command(self, scenario: Scenario, zero_ns: int) -> list[str]:
        """Arguments of `fairlane-traffic` for a run whose zero is `zero_ns` of CLOCK_MONOTONIC. Raises RunError."""
        flow, app, tcp = self.flow, self.flow.app, tcp_of(scenario, self.flow)
        if tcp.ipv6:
            raise RunError(
                f"flow {flow.name}: tcp.ipv6: runs in Mininet are over IPv4; allowed: --runtime sim or kernel"
            )
        given: dict[str, Any] = {
            "to": f"{self.address}:{self.sink.port}",
            "flows": flow.connections,
            "seconds": f"{scenario.end_s(flow) - flow.start_s:.6f}",
            "start-at": zero_ns + round(flow.start_s * 1e9),
            "sample-ms": sample_ms(scenario),
            "out": self.out,
        }
        if not self.is_udp:
            given |= {"cc": find_variant(flow.variant).congestion_control, "mss": tcp.mss_bytes}
        given |= {OPTIONS.get(name, name.replace("_", "-")): value for name, value in app.settings.items()}
        if "distribution" in app.settings:  # the simulator draws the same numbers from them
            given |= {"seed": scenario.seed, "names": tuple(self.results())}
        return [COMMANDS.get(app.kind, app.kind), *_options(given)]

    def results(self) -> list[str]:
        """Names of the flows that this process is reported as, in the order of its connections."""
        return names_of(self.flow)


@dataclass(frozen=True)
class Plan:
    """The processes of one run."""

    scenario: Scenario
    senders: tuple[Sender, ...]
    places: Mapping[str, Place]
    """Where connections go, by name."""
    commands: Mapping[str, Flow]
    """Those that are programs of the user's, by name."""

    @cached_property
    def sinks(self) -> tuple[Sink, ...]:
        """One process each."""
        return tuple(dict.fromkeys(sender.sink for sender in self.senders))

    @property
    def processes(self) -> int:
        """How many processes start at once."""
        return len(self.sinks) + len(self.senders) + 2 * len(self.commands)

    def words(self, name: str) -> dict[str, list[str]]:
        """The programs of a `command` application, by role. Raises RunError."""
        return command_words(name, self.commands[name], self.scenario, self.places)

    def weights(self) -> list[dict[str, Any]]:
        """Rules for flows that do not weigh 1, by their sinks."""
        found = {sender.sink: sender.address for sender in self.senders if sender.flow.weight != 1.0}
        return [{"dst": to, "dst_port": sink.port, "weight": sink.weight} for sink, to in found.items()]


def sample_ms(scenario: Scenario) -> int:
    """Period of the samples in ms."""
    return max(1, round(scenario.sample_s * 1000))


def make_plan(scenario: Scenario, addresses: Mapping[str, str], folder: Path) -> Plan:
    """The processes for a scenario; `addresses` are the hosts'."""
    sinks: dict[Sink, Sink] = {}
    senders: list[Sender] = []
    places: dict[str, Place] = {}
    commands: dict[str, Flow] = {}
    for flow in scenario.flows:
        ends = addresses[flow.sender], addresses[flow.receiver]
        if flow.app.kind == "command":
            if flow.window_packets or tcp_of(scenario, flow).ipv6:
                raise RunError(f"flow {flow.name}: window_packets and tcp.ipv6 of a command need --runtime kernel")
            for name in names_of(flow):
                places[name] = Place(*ends, FIRST_COMMAND_PORT + len(commands))
                commands[name] = replace(flow, connections=1)
            continue
        tcp, is_udp = tcp_of(scenario, flow), flow.app.kind in UDP_KINDS
        sizes = tcp.receive_window_bytes, tcp.mss_bytes
        wanted = Sink(flow.receiver, is_udp, flow.weight, *sizes, tcp.read_interval_s, folder)
        sink = sinks.setdefault(wanted, replace(wanted, port=FIRST_SINK_PORT + len(sinks)))
        senders.append(Sender(flow, sink, addresses[flow.receiver]))
        places |= dict.fromkeys(names_of(flow), Place(*ends, sink.port))
    return Plan(scenario, tuple(senders), places, commands)


def _options(given: Mapping[str, Any]) -> list[str]:
    """`--name value`; of True the name alone."""
    words: list[str] = []
    for name, value in given.items():
        words.append(f"--{name}")
        if value is not True:
            many = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
            words.append(",".join(map(str, many)))
    return words
