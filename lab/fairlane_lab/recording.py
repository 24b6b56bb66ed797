# SPDX-License-Identifier: Apache-2.0
"""What a runtime has recorded of a run, and the result that is made of it: the same for virtual time and for Mininet. Pure.

Times are seconds from the scenario's zero. A runtime describes each flow and each managed port by their `Samples`; `make_result` does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from fairlane_controller.documents import is_table
from fairlane_controller.switch.shared import ETHERNET_HEADER_BYTES
from fairlane_hosts.programs import COUNTERS
from fairlane_switch.link_series import Series
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey

from fairlane_lab.measures import (
    INSTANT_S,
    NOTHING,
    Points,
    Samples,
    atm_line_bytes,
    carried_bps,
    header_bytes,
    mean_between,
    on_line_bps,
    recovery_s,
)
from fairlane_lab.run_result import FlowResult, PortResult, RunResult, SeriesPoint, Transfer
from fairlane_lab.scenario import UDP_KINDS, Flow, Scenario, tcp_of

if TYPE_CHECKING:
    from fairlane_lab.programs.part import LabPart


def counters_of(flow: Flow, flows: Sequence[Flow], of_hosts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """`FlowResult.counters`. A host counts for all its flows: what other flows have a part in is left out."""
    found: dict[str, int] = {}
    for host, of_receiver, sharing in (
        (flow.sender, False, [other for other in flows if other.sender == flow.sender]),
        (flow.receiver, True, [other for other in flows if other.receiver == flow.receiver]),
    ):
        if len(sharing) == 1 and flow.connections == 1:
            counted = of_hosts.get(host, {}).items()
            found |= {name: value for name, value in counted if COUNTERS[name].of_receiver == of_receiver}
    return found


def is_trace(port: fl_topology.PortSpec) -> bool:
    """Whether a port's rate is a delivery trace."""
    return isinstance(port.rate_bps, Series) and "trace" in port.rate_bps.form


CARRIED_STEP_S = 0.1


@dataclass
class FlowRecord:
    """One flow, or one of its connections."""

    name: str
    flow: Flow
    variant: str
    received: Samples
    """Bytes so far, exact at the ends of the measured window."""
    sampled: Samples
    """The same as often as it was sampled."""
    mss_bytes: int
    totals: Mapping[str, Samples] = field(default_factory=dict[str, Samples])
    """Counters that the runtime knows, by the fields of `FlowResult`; `spurious_timeouts` and `bw_est_pps` of the simulator's senders."""
    cwnd: Samples = NOTHING
    """Packets, as the two below."""
    ssthresh: Samples = NOTHING
    queue: Samples = NOTHING
    """What waits at the bottleneck."""
    srtt_ns: Samples = NOTHING
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `FlowResult` that the runtime knows otherwise."""

    @property
    def is_tcp(self) -> bool:
        """Whether it has connections."""
        return self.flow.app.kind not in UDP_KINDS

    @property
    def is_greedy_tcp(self) -> bool:
        """Whether it sends over TCP as much as it may."""
        return self.flow.app.kind == "greedy"


@dataclass
class PortRecord:
    """One managed port."""

    key: PortKey
    rates: Points
    """(s, bit/s) from which on it had a rate; the first holds from the beginning. Empty where they are not known."""
    tx_bytes: Samples
    tx_packets: Samples
    drops: Samples
    """Refused by the program, and by the queue behind it."""
    waiting: Samples
    """Packets."""
    sampled: Samples
    """`tx_bytes` as often as it was sampled."""
    is_atm: bool = False
    is_trace: bool = False
    """Whether its rate is a delivery trace, which counts what is behind Ethernet headers."""

    def counted_share(self, start_s: float, end_s: float) -> float:
        """Of the bytes that it sent in a window, what its rate counts where that is not of cells."""
        sent = self.tx_bytes.grown(start_s, end_s) if self.is_trace else 0.0
        return 1 - ETHERNET_HEADER_BYTES * self.tx_packets.grown(start_s, end_s) / sent if sent else 1.0


@dataclass
class Recording:
    """One run."""

    scenario: Scenario
    topology: fl_topology.Topology
    start_s: float
    end_s: float
    """Of the measured window."""
    flows: Sequence[FlowRecord]
    ports: Sequence[PortRecord]
    spike: tuple[float, float, float] | None = None
    """Start and end of its delay spike, and the instant by which the recovery is judged."""
    step: int = 1
    """Every so many-th sample is in the series."""
    rate_step_s: float | None = None
    """Between two rates of the series; None: between these samples."""
    events: Sequence[Mapping[str, Any]] = ()
    """The controller's during the run, with `t_s`."""
    measured: Mapping[PortKey, Sequence[tuple[float, Mapping[str, float | None]]]] = field(
        default_factory=dict[Any, Any]
    )
    """What the control loop had measured at each poll, by `LabPart.loop_values`."""
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the program's part read of each switch (`LabPart.read`) at both ends of the window."""
    thresholds: Mapping[PortKey, int | None] = field(default_factory=dict[PortKey, "int | None"])
    """In force at the zero, packets."""

    @property
    def managed(self) -> list[PortKey]:
        """The managed ports."""
        return [port.key for port in self.ports]

    @property
    def carried(self) -> dict[str, Samples]:
        """Bytes so far of each flow every `CARRIED_STEP_S`, and at the end."""
        count = int(self.end_s / CARRIED_STEP_S + INSTANT_S)
        t_s = np.unique([*np.round(np.arange(count + 1) * CARRIED_STEP_S, 9), self.end_s])
        return {each.name: Samples(t_s, each.sampled.at(t_s)) for each in self.flows}

    def rates(self, samples: Samples) -> Samples:
        """Bit/s of bytes so far, for the series."""
        if self.rate_step_s is None:
            return samples.every(self.step).rates()
        return samples.rates(self.rate_step_s)

    def loop_series(self, port: PortKey, name: str) -> list[tuple[float, float]]:
        """(s, value) of what the loop had measured at a port, where it had."""
        return [(t, value) for t, row in self.measured.get(port, ()) if (value := row.get(name)) is not None]

    def loop_mean(self, port: PortKey, name: str) -> float | None:
        """Mean over the window; of the last value before its end when nothing was measured in it; None without any."""
        samples = [(t, value) for t, value in self.loop_series(port, name) if t <= self.end_s + INSTANT_S]
        inside = [value for t, value in samples if t >= self.start_s - INSTANT_S]
        if inside:
            return sum(inside) / len(inside)
        return samples[-1][1] if samples else None


def make_transfer(name: str, flow: Flow, row: Mapping[str, Any], zero_s: float = 0.0, *, complete: bool) -> Transfer:
    """A transfer as the simulator or `fairlane-traffic` reports it; of a file also what it took from its first segment on."""
    first_ns = row.get("first_ns", row.get("first_sent_ns")) if flow.app.kind == "bytes" else None
    return Transfer(
        flow=name,
        group=flow.group,
        start_s=row["start_ns"] / 1e9 - zero_s,
        bytes=row["bytes"],
        completion_s=(row["end_ns"] - row["start_ns"]) / 1e9,
        retransmits=row["retransmits"],
        ran_s=None if first_ns is None else (row["end_ns"] - first_ns) / 1e9,
        packets=None if first_ns is None else row.get("packets", row.get("segments")),
        complete=complete,
    )


def program_transfer(name: str, flow: Flow, start_s: float, end_s: float, acked_bytes: int) -> Transfer:
    """What a program took from its start to its end; its bytes are those of the `command`, or else those last seen acknowledged."""
    return Transfer(name, flow.group, start_s, flow.app.bytes or acked_bytes, end_s - start_s)


def make_result(seen: Recording, part: LabPart, **fields: Any) -> RunResult:
    """The result of a run.

    Args:
        seen: What was recorded.
        part: The lab's part of its program.
        fields: Further fields of `RunResult`.
    """
    return RunResult(
        flows=[_flow(seen, each) for each in seen.flows],
        ports=[_port(seen, each, part.port_values(seen, each.key)) for each in seen.ports],
        series=list(_series(seen, part)) if seen.scenario.series else [],
        values=part.values(seen),
        vcs=part.vcs(seen),
        **fields,
    )


def _flow(seen: Recording, each: FlowRecord) -> FlowResult:
    window = seen.start_s, seen.end_s
    names = ("retransmits", "timeouts", "segments_sent", "window_reductions")
    srtt_ns = each.srtt_ns.mean(*window)
    fields: dict[str, Any] = {"retransmits": 0, "timeouts": None}
    fields |= {"cwnd_packets": each.cwnd.mean(*window), "srtt_ms": None if srtt_ns is None else srtt_ns / 1e6}
    fields |= {name: round(each.totals[name].grown(*window)) for name in names if name in each.totals}
    fields |= {} if seen.spike is None or not each.is_greedy_tcp else _after_spike(seen, each, seen.spike)
    return FlowResult(
        flow=each.name,
        group=each.flow.group,
        variant=each.variant,
        weight=each.flow.weight,
        goodput_bps=8 * each.received.grown(*window) / (seen.end_s - seen.start_s),
        greedy=each.flow.app.kind == "greedy",
        **fields | dict(each.given),
    )


def _after_spike(seen: Recording, each: FlowRecord, spike: tuple[float, float, float]) -> dict[str, Any]:
    """What became of a greedy flow after the delay spike."""
    start_s, end_s, later_s = spike
    if not all(port.rates for port in seen.ports):
        return {}
    size = each.mss_bytes, header_bytes(tcp_of(seen.scenario, each.flow))
    rate_bps = min((port.rates[-1][1] for port in seen.ports), default=0.0)
    found: dict[str, Any] = {
        "after_spike_bytes": each.received.grown(end_s, later_s),
        "after_spike_retransmits": round(each.totals["retransmits"].grown(start_s, later_s)),
        "recovery_s": recovery_s(each.sampled, end_s, carried_bps(rate_bps, *size)),
    }
    if "bw_est_pps" in each.totals:
        undone, pps = (each.totals[name].grown(start_s, later_s) for name in ("spurious_timeouts", "bw_est_pps"))
        if undone == 1 and pps:
            bps = on_line_bps(pps, *size)
            found |= {"bw_est_bps": bps, "bw_est_ratio": bps / rate_bps if rate_bps else None}
    return found


def _port(seen: Recording, each: PortRecord, of_program: dict[str, Any]) -> PortResult:
    window, seconds = (seen.start_s, seen.end_s), seen.end_s - seen.start_s
    sent, rate_bps = each.tx_bytes.grown(*window), mean_between(each.rates, *window) if each.rates else None
    on_line = (
        atm_line_bytes(each.tx_packets.grown(*window), sent) if each.is_atm else sent * each.counted_share(*window)
    )
    return PortResult(
        switch=each.key[0],
        port=each.key[1],
        rate_bps=None if rate_bps is None else round(rate_bps),
        throughput_bps=8 * sent / seconds,
        utilisation=8 * on_line / seconds / rate_bps if rate_bps else rate_bps,
        drops=round(each.drops.grown(*window)),
        queue_packets=each.waiting.mean(*window),
        after_spike_drops=None if seen.spike is None else round(each.drops.grown(seen.spike[0], seen.spike[2])),
        values=of_program,
    )


def _series(seen: Recording, part: LabPart) -> Iterator[SeriesPoint]:
    """A port is the flow `""`, or its own name where several are managed."""
    for each in seen.flows:
        yield from _points(seen, each.name, "cwnd_packets", each.cwnd.every(seen.step))
        yield from _points(seen, each.name, "srtt_ms", each.srtt_ns.every(seen.step), 1e-6)
        yield from _points(seen, each.name, "ssthresh_packets", each.ssthresh.every(seen.step))
        if each.is_tcp:
            yield from _points(seen, each.name, "goodput_bps", seen.rates(each.sampled))
        yield from _points(seen, each.name, "queue_packets", each.queue.every(seen.step))
    for port in seen.ports:
        name = "" if len(seen.ports) == 1 else f"{port.key[0]}-p{port.key[1]}"
        yield from _points(seen, name, "queue_packets", port.waiting.every(seen.step))
        yield from _points(seen, name, "throughput_bps", seen.rates(port.sampled))
        if port.rates and isinstance(seen.topology.ports[port.key[0]][port.key[1]].rate_bps, Series):
            yield from _points(seen, name, "rate_bps", Samples.of([*_stairs(port.rates, seen.end_s)]))
        yield from part.port_series(seen, port.key, name)
    yield from part.series(seen)


def _stairs(rates: Points, end_s: float) -> Iterator[tuple[float, float]]:
    """Both ends of each step."""
    for (t_s, rate_bps), until_s in zip(rates, [*(t_s for t_s, _ in rates[1:]), end_s], strict=True):
        yield from ((t_s, rate_bps), (max(t_s, until_s - INSTANT_S), rate_bps))


def _points(seen: Recording, name: str, metric: str, samples: Samples, factor: float = 1.0) -> Iterator[SeriesPoint]:
    """What was sampled between the zero and the end."""
    for t_s, value in samples.points:
        if 0 <= t_s <= seen.end_s + INSTANT_S:
            yield SeriesPoint(t_s, name, metric, value * factor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file; a last line that was cut off is left out, a missing file is empty."""
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if is_table(event):
            yield event
