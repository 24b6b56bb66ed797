# SPDX-License-Identifier: Apache-2.0
"""A scenario's flows as command lines of `fairlane-traffic`: one sender process a flow, one sink for flows that want the same of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairlane_hosts.errors import HostsError
from fairlane_hosts.variants import find_variant

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import UDP_KINDS, App, Flow, Scenario, TcpOptions, names_of, tcp_of

FIRST_SINK_PORT = 5001
COMMANDS = {
    "greedy": "send",
    "bytes": "transfer",
    "on_off": "onoff",
    "web": "web",
    "interactive": "interactive",
    "video": "video",
}
"""Kind of an application over TCP → the command of `fairlane-traffic`."""
OPTIONS = {"on_mean_s": "on-s", "off_mean_s": "off-s", "payload_bytes": "payload"}
"""Settings of an application whose options have other names."""


@dataclass(frozen=True)
class SinkKey:
    """What flows that share a sink have in common; the weight, because the switch knows flows by port."""

    receiver: str
    protocol: str
    weight: float
    receive_window_bytes: int
    mss_bytes: int
    read_interval_s: float = 0.0


@dataclass(frozen=True)
class Sink:
    """One sink process."""

    host: str
    port: int
    key: SinkKey
    folder: Path

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
        words = ["sink", "--port", str(self.port), "--ready-file", str(self.ready), "--sample-ms", str(sample_ms)]
        if self.key.protocol == "udp":
            words.append("--udp")
        if self.key.receive_window_bytes:
            # Linux rounds what the SYN-ACK offers down to whole segments of the receiver's own MSS: 10,136 bytes are six of
            # 1460, and seven of 1448.
            words += ["--window", str(self.key.receive_window_bytes), "--mss", str(self.key.mss_bytes)]
        if self.key.read_interval_s:
            words += ["--read-after-ms", f"{self.key.read_interval_s * 1000:g}"]
        return [*words, "--out", str(self.out)]


@dataclass(frozen=True)
class Sender:
    """One sender process: a flow of the scenario, with all its connections."""

    flow: Flow
    tcp: TcpOptions
    sink: Sink
    folder: Path
    address: str
    """Of the receiver."""
    seed: int
    """Of the run: the simulator draws the same numbers from it and the flow's name."""

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def out(self) -> Path:
        return self.folder / f"{_file_name(self.flow.name)}.jsonl"

    @property
    def is_udp(self) -> bool:
        return self.flow.app.kind in UDP_KINDS

    def stop_s(self, duration_s: float) -> float:
        """When it ends, seconds after the scenario's zero."""
        return duration_s if self.flow.stop_s is None else min(self.flow.stop_s, duration_s)

    def command(self, scenario: Scenario, zero_ns: int) -> list[str]:
        """Arguments of `fairlane-traffic` for a run whose zero is `zero_ns` of CLOCK_MONOTONIC."""
        flow, app = self.flow, self.flow.app
        start_ns = zero_ns + round(flow.start_s * 1e9)
        words = ["--to", f"{self.address}:{self.sink.port}", "--flows", str(flow.connections)]
        words += ["--seconds", f"{self.stop_s(scenario.duration_s) - flow.start_s:.6f}", "--start-at", str(start_ns)]
        words += ["--sample-ms", str(sample_ms(scenario)), "--out", str(self.out)]
        if self.is_udp:
            return ["udp", *words, *_settings(app)]
        words += ["--cc", find_variant(flow.variant).congestion_control, "--mss", str(self.tcp.mss_bytes)]
        if app.kind not in COMMANDS:
            raise RunError(f"flow {flow.name}: Mininet has no application {app.kind!r}")
        words += _settings(app)
        if "distribution" in app.settings:
            words += ["--seed", str(self.seed), "--names", ",".join(self.results())]
        return [COMMANDS[app.kind], *words]

    def results(self) -> list[str]:
        """Names of the flows that this process is reported as, in the order of its connections."""
        return names_of(self.flow)


@dataclass(frozen=True)
class Plan:
    """The processes of one run."""

    scenario: Scenario
    sinks: tuple[Sink, ...]
    senders: tuple[Sender, ...]

    @property
    def processes(self) -> int:
        """How many processes start at once."""
        return len(self.sinks) + len(self.senders)


def sample_ms(scenario: Scenario) -> int:
    """Period of the samples in ms."""
    return max(1, round(scenario.sample_s * 1000))


def make_plan(scenario: Scenario, addresses: dict[str, str], folder: Path) -> Plan:
    """The processes for a scenario; `addresses` are the hosts'. Raises RunError naming what cannot be run."""
    _check(scenario, addresses)
    sinks: dict[SinkKey, Sink] = {}
    senders: list[Sender] = []
    for flow in scenario.flows:
        tcp = tcp_of(scenario, flow)
        protocol = "udp" if flow.app.kind in UDP_KINDS else "tcp"
        key = SinkKey(
            flow.receiver, protocol, flow.weight, tcp.receive_window_bytes, tcp.mss_bytes, tcp.read_interval_s
        )
        sink = sinks.get(key)
        if sink is None:
            sink = sinks[key] = Sink(flow.receiver, FIRST_SINK_PORT + len(sinks), key, folder)
        senders.append(Sender(flow, tcp, sink, folder, addresses[flow.receiver], scenario.seed))
    return Plan(scenario, tuple(sinks.values()), tuple(senders))


def _check(scenario: Scenario, addresses: dict[str, str]) -> None:
    if not scenario.flows:
        raise RunError("the scenario has no flows")
    names = [flow.name for flow in scenario.flows]
    if len(set(names)) < len(names):
        raise RunError(f"two flows are called {next(n for n in names if names.count(n) > 1)!r}")
    if not 0 <= scenario.warmup_s < scenario.duration_s:
        raise RunError(f"warmup_s {scenario.warmup_s:g} is not between 0 and duration_s {scenario.duration_s:g}")
    for flow in scenario.flows:
        for what, host in (("sender", flow.sender), ("receiver", flow.receiver)):
            if host not in addresses:
                raise RunError(f"flow {flow.name}: {what} {host!r} is no host; there are {', '.join(addresses)}")
        if flow.sender == flow.receiver:
            raise RunError(f"flow {flow.name}: {flow.sender} would send to itself")
        end_s = scenario.duration_s if flow.stop_s is None else flow.stop_s
        if not 0 <= flow.start_s < end_s:
            raise RunError(f"flow {flow.name}: start_s {flow.start_s:g} is not between 0 and its end {end_s:g}")
        if flow.app.kind not in UDP_KINDS:
            try:
                find_variant(flow.variant)
            except HostsError as error:
                raise RunError(f"flow {flow.name}: {error}") from None


def _settings(app: App) -> list[str]:
    """An application's settings as options of `fairlane-traffic`."""
    words: list[str] = []
    for name, value in app.settings.items():
        words.append(f"--{OPTIONS.get(name, name.replace('_', '-'))}")
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, tuple) else str(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return words


def _file_name(flow: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in flow)
