# SPDX-License-Identifier: Apache-2.0
"""A RunResult out of what a run left: the senders' and sinks' files, the watch's samples, the controller's events. Nothing runs here."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from fairlane_hosts.variants import find_variant

from fairlane_lab.atm import atm_line_bytes
from fairlane_lab.host_counters import counters_of
from fairlane_lab.known import known_sum
from fairlane_lab.measures import (
    carried_bps,
    counter_at,
    mean_between,
    rate_series,
    recovery_s,
    summed,
    window_rate_bps,
)
from fairlane_lab.programs.part import Records
from fairlane_lab.run_result import (
    AFTER_SPIKE_S,
    FlowResult,
    PortResult,
    RunError,
    RunResult,
    SeriesPoint,
    Transfer,
)
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, Flow, Scenario, tcp_of
from fairlane_lab.testbed.bed import Bed, ManagedPort, Running
from fairlane_lab.testbed.plan import Sender
from fairlane_lab.testbed.port_watch import PortKey, Samples

LATE_S = 0.1
"""A sender that starts this much after its time has not made the run that was asked for."""
STARTING_S = 1.0
"""So long after a run's start a standstill spoils nothing, unless that time is counted: a flow that starts a little later is what chance draws too."""
UTILISATION_MAX = 1.02
SERIES_STEP_S = 0.5

Points = list[tuple[float, float]]


class VoidError(RunError):
    """This machine spoilt the run: it says nothing, another attempt may."""


@dataclass(frozen=True)
class Window:
    """The measured window and the zero, CLOCK_MONOTONIC seconds."""

    zero_s: float
    start_s: float
    end_s: float

    @classmethod
    def from_running(cls, running: Running) -> Window:
        zero_s = running.zero_ns / 1e9
        scenario = running.scenario
        end_s = zero_s + scenario.duration_s
        if running.done_ns is not None:
            end_s = min(end_s, max(running.done_ns / 1e9, zero_s + scenario.warmup_s + 1e-3))
        return cls(zero_s, zero_s + scenario.warmup_s, end_s)

    def series(self, points: Sequence[tuple[float, Any]], digits: int = 3) -> list[tuple[float, Any]]:
        """Points with times after the zero; those before it and after the run's end left out."""
        return [(round(t - self.zero_s, digits), value) for t, value in points if self.zero_s <= t <= self.end_s]


@dataclass
class _Connection:
    """One connection's samples at its sender."""

    local: str
    error: str
    cc: str
    samples: list[dict[str, Any]]

    def points(self, name: str, scale: float = 1.0) -> Points:
        """(s, value) of what was sampled of a name, where it was."""
        found = ((record["t_ns"] / 1e9, record.get(name)) for record in self.samples)
        return [(t, value * scale) for t, value in found if value is not None]

    @cached_property
    def ssthresh(self) -> Points:
        """Packets, once there is one."""
        return [(t, value) for t, value in self.points("ssthresh") if value < 1 << 30]


@dataclass
class _SenderFile:
    """What one sender process wrote."""

    connections: list[_Connection]
    transfers: list[dict[str, Any]]
    """Finished ones, and those that were cut with `complete` false."""
    summary: dict[str, Any]


def collect(bed: Bed, running: Running, samples: Samples, changes: Sequence[tuple[float, PortKey, int]]) -> RunResult:
    """The result of a run that has ended; `changes` are (s after zero, port, new bit/s).

    Raises VoidError when this machine stood still, a flow started late or the numbers cannot be true; RunError when a
    flow broke or used another congestion control.
    """
    window = Window.from_running(running)
    _check_standstills(samples, window)
    scenario = running.scenario
    received = _received(running)
    result = RunResult([], [], virtual_s=scenario.duration_s)
    carried: dict[str, Points] = {}
    last_rates = {(port.switch, port.port): port.rate_bps for port in bed.ports}
    last_rates |= {which: rate for _, which, rate in sorted(changes) if which in last_rates}
    rate_bps = float(min(last_rates.values(), default=0))
    for sender in running.plan.senders:
        written = _read_sender(sender.out)
        _check_sender(sender, written)
        _add_flows(result, running, sender, written, received, window, samples, carried, rate_bps)
    events = read_events(bed.state, window)
    part, seen = bed.part.part, _for_program(bed, running, samples, window, events, carried)
    for port in bed.ports:
        key = (port.switch, port.port)
        name = "" if len(bed.ports) == 1 else f"{port.switch}-p{port.port}"
        rates = [(0.0, port.rate_bps), *((at_s, rate) for at_s, which, rate in changes if which == key)]
        _add_port(result, scenario, samples, window, port, rates, part.port_values(seen, key), name)
        result.series += part.port_series(seen, key, name)
    result.events = [event for event in events if event["t_s"] <= scenario.duration_s]
    _check_utilisation(result, running)
    result.values, result.vcs = part.values(seen), part.vcs(seen)
    result.series += part.series(seen)
    if not scenario.series:
        result.series = []
    return result


def _for_program(
    bed: Bed,
    running: Running,
    samples: Samples,
    window: Window,
    events: Sequence[Mapping[str, Any]],
    carried: Mapping[str, Points],
) -> Records:
    zero_s = window.zero_s
    start_s, end_s = window.start_s - zero_s, window.end_s - zero_s

    def read_at(at_s: float) -> dict[str, Any]:
        return {
            switch: [values for t, values in points if t <= at_s or t == points[0][0]][-1]
            for switch, points in samples.of_program.items()
        }

    return Records(
        running.scenario,
        bed.network.topology,
        bed.part.managed,
        start_s,
        end_s,
        [event for event in events if 0 < event["t_s"] <= end_s],
        {port: window.series(looks) for port, looks in samples.measured.items()},
        read_at(window.start_s),
        read_at(window.end_s),
        {name: [(t - zero_s, count) for t, count in points] for name, points in carried.items()},
        running.thresholds,
    )


# ---- flows ------------------------------------------------------------------------------------------------------


def _add_flows(
    result: RunResult,
    running: Running,
    sender: Sender,
    written: _SenderFile,
    received: dict[str, Points],
    window: Window,
    samples: Samples,
    carried: dict[str, Points],
    port_rate_bps: float,
) -> None:
    """Rows of a sender's flows; `carried` gets the bytes over time of each. `port_rate_bps`: of the managed port at the run's end."""
    flow = sender.flow
    names = sender.results()
    for record in written.transfers:
        index: int = record["flow"]
        start_s = record["start_ns"] / 1e9 - window.zero_s
        done_s = (record["end_ns"] - record["start_ns"]) / 1e9
        complete = record.get("complete", True)
        if not complete and flow.app.kind != "bytes":
            continue
        ran_s, packets = None, None
        if flow.app.kind == "bytes":
            ran_s, packets = (record["end_ns"] - record["first_ns"]) / 1e9, record["packets"]
        result.transfers.append(
            Transfer(
                names[index],
                flow.group,
                start_s,
                record["bytes"],
                done_s,
                record["retransmits"],
                ran_s,
                packets,
                complete,
            )
        )
    if sender.is_udp or flow.app.kind == "web" or flow.app.times > 1:
        _add_whole_flows(result, sender, written, received, window, carried)
        return
    for name, connection in zip(names, written.connections, strict=True):
        series = received.get(connection.local)
        if series is None and flow.app.kind == "bytes":
            series = []  # asked for, but not connected before the run was over
        if series is None:
            raise RunError(f"flow {name}: the sink saw nothing of {connection.local}")
        carried[name] = series
        result.flows.append(
            FlowResult(
                flow=name,
                group=flow.group,
                variant=flow.variant,
                weight=flow.weight,
                goodput_bps=window_rate_bps(series, window.start_s, window.end_s),
                retransmits=_grown(connection.points("retrans"), window),
                timeouts=_known(connection.points("timeouts"), window),
                cwnd_packets=_mean(connection.points("cwnd"), window),
                srtt_ms=_mean(connection.points("srtt_us", 1e-3), window),
                greedy=flow.app.kind == "greedy",
                segments_sent=_known(connection.points("segments"), window),
                window_reductions=_reductions(connection, window),
                counters=counters_of(flow, running.scenario.flows, running.counters),
                **_after_spike(running, port_rate_bps, flow, series, connection, window),
            )
        )
        rates = rate_series(series, SERIES_STEP_S)
        host, _, port = connection.local.rpartition(":")
        queue = samples.flows.get((host, int(port or 0), sender.sink.port), [])
        for metric, points in (
            ("goodput_bps", rates),
            ("cwnd_packets", connection.points("cwnd")),
            ("ssthresh_packets", connection.ssthresh),
            ("srtt_ms", connection.points("srtt_us", 1e-3)),
            ("queue_packets", queue),
        ):
            result.series += [SeriesPoint(t, name, metric, value) for t, value in window.series(points)]


def _after_spike(
    running: Running, port_rate_bps: float, flow: Flow, series: Points, connection: _Connection, window: Window
) -> dict[str, Any]:
    """What became of a greedy flow after the run's delay spike; empty without one. `port_rate_bps`: at the run's end."""
    spike_s = running.scenario.spike_s
    if spike_s is None or flow.app.kind != "greedy":
        return {}
    start_s, end_s = (window.zero_s + at_s for at_s in spike_s)
    later_s = min(end_s + AFTER_SPIKE_S, window.end_s)
    mss = tcp_of(running.scenario, flow).mss_bytes
    return {
        "after_spike_bytes": counter_at(series, later_s) - counter_at(series, end_s),
        "after_spike_retransmits": round(
            _last(connection.points("retrans"), later_s) - _last(connection.points("retrans"), start_s)
        ),
        "recovery_s": recovery_s(series, end_s, carried_bps(port_rate_bps, mss)),
    }


def _reductions(connection: _Connection, window: Window) -> int:
    """How often ssthresh fell below the largest window since it last changed, as the samples show it."""
    reductions, before, largest = 0, math.inf, 0.0
    thresholds_at = dict(connection.ssthresh)
    for t, cwnd in connection.points("cwnd"):
        ssthresh = thresholds_at.get(t, math.inf)
        if ssthresh != before:
            if ssthresh < largest and window.start_s <= t <= window.end_s:
                reductions += 1
            before, largest = ssthresh, 0.0
        largest = max(largest, cwnd)
    return reductions


def _add_whole_flows(
    result: RunResult,
    sender: Sender,
    written: _SenderFile,
    received: dict[str, Points],
    window: Window,
    carried: dict[str, Points],
) -> None:
    """Flows of many short connections, or of datagrams: one row for all connections of a flow together."""
    flow = sender.flow
    for index, name in enumerate(sender.results()):
        peers = [peer["local"] for peer in written.summary["peers"] if peer["flow"] == index]
        carried[name] = summed([received[peer] for peer in peers if peer in received])
        mine = [record for record in written.transfers if record["flow"] == index]
        inside = [record for record in mine if record["start_ns"] / 1e9 >= window.start_s]
        timeouts = known_sum(record.get("timeouts") for record in inside)
        result.flows.append(
            FlowResult(
                flow=name,
                group=flow.group,
                variant="udp" if sender.is_udp else flow.variant,
                weight=flow.weight,
                goodput_bps=sum(
                    window_rate_bps(received[peer], window.start_s, window.end_s) for peer in peers if peer in received
                ),
                retransmits=sum(record["retransmits"] for record in inside),
                timeouts=None if timeouts is None else round(timeouts),
                cwnd_packets=None,
                srtt_ms=median(record["srtt_us"] / 1e3 for record in mine) if mine else None,
                greedy=False,
            )
        )


def _read_sender(path: Path) -> _SenderFile:
    summary: dict[str, Any] | None = None
    transfers: list[dict[str, Any]] = []
    samples: dict[int, list[dict[str, Any]]] = {}
    for record in _records(path):
        if "summary" in record:
            summary = record["summary"]
        elif "transfer" in record:
            transfers.append(record["transfer"])
        elif "unfinished" in record:
            transfers.append({**record["unfinished"], "complete": False})
        elif "cwnd" in record:
            samples.setdefault(record["flow"], []).append(record)
    if summary is None:
        raise RunError(f"{path.name}: the sender wrote no summary")
    connections = [
        _Connection(row["local"], row["error"], row["cc"], samples.get(row["flow"], [])) for row in summary["flows"]
    ]
    return _SenderFile(connections, transfers, summary)


def _check_standstills(samples: Samples, window: Window) -> None:
    from_s = min(window.zero_s + STARTING_S, window.start_s)
    for t_s, what, seconds in samples.standstills:
        if from_s <= t_s <= window.end_s:
            raise VoidError(f"{what} stood still for {seconds:.1f} s, {t_s - window.zero_s:.1f} s after the start")


def _check_sender(sender: Sender, written: _SenderFile) -> None:
    late_s = written.summary["late_ns"] / 1e9
    if late_s > LATE_S:
        raise VoidError(f"flow {sender.name} started {late_s:.2f} s late: this machine is busy")
    if sender.is_udp:
        return
    expected = find_variant(sender.flow.variant).congestion_control
    for connection in written.connections:
        if connection.cc != expected:
            raise RunError(f"flow {sender.name}: wanted congestion control {expected}, got {connection.cc}")
        if connection.error:
            raise RunError(f"flow {sender.name}: {connection.error}")


def _received(running: Running) -> dict[str, Points]:
    """(time in s, bytes so far) of each connection, by the sender's address and port."""
    series: dict[str, Points] = {}
    for sink in running.plan.sinks:
        before: dict[str, float] = {}
        for record in _records(sink.out):
            if "bytes" in record and "peer" in record:
                peer, count = record["peer"], float(record["bytes"])
                points = series.setdefault(peer, [])
                if points and count < points[-1][1] - before.get(peer, 0.0):
                    before[peer] = points[-1][1]  # a port that was used again: another connection
                points.append((record["t_ns"] / 1e9, before.get(peer, 0.0) + count))
    return series


def _records(path: Path) -> list[dict[str, Any]]:
    """Objects of a JSON-lines file; a last line that was cut off is left out, a missing file is empty."""
    found: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return found


def _grown(points: Points, window: Window) -> int:
    """How much a counter grew in the window."""
    return round(_last(points, window.end_s) - _last(points, window.start_s))


def _known(points: Points, window: Window) -> int | None:
    """As `_grown`; None of a counter that the kernel does not have."""
    return _grown(points, window) if points else None


def _last(points: Points, time_s: float) -> float:
    index = bisect_left(points, (time_s, float("inf")))
    return points[index - 1][1] if index else 0.0


def _mean(points: Points, window: Window) -> float | None:
    inside = [value for t, value in points if window.start_s <= t <= window.end_s]
    return fmean(inside) if inside else None


# ---- ports ------------------------------------------------------------------------------------------------------


def _add_port(
    result: RunResult,
    scenario: Scenario,
    samples: Samples,
    window: Window,
    port: ManagedPort,
    rates: list[tuple[float, int]],
    of_program: dict[str, Any],
    name: str,
) -> None:
    """`of_program` is what the P4 program knows of it; `name` is the port's in the series."""
    key = (port.switch, port.port)
    sent = samples.tx_bytes.get(key, [])
    if len(sent) < 2:
        raise RunError(f"nothing was sampled at port {port.port} of {port.switch}: {'; '.join(samples.problems)}")
    throughput = window_rate_bps(sent, window.start_s, window.end_s)
    line = throughput
    if port.link_layer == "atm" and key in samples.tx_packets:
        packets = window_rate_bps(samples.tx_packets[key], window.start_s, window.end_s) / 8
        line = 8 * atm_line_bytes(packets, throughput / 8)
    rate = mean_between([(window.zero_s + at_s, float(value)) for at_s, value in rates], window.start_s, window.end_s)
    drops = samples.drops.get(key, [])
    spike_s = scenario.spike_s
    after_spike_drops = None
    if spike_s is not None:
        later_s = min(window.zero_s + spike_s[1] + AFTER_SPIKE_S, window.end_s)
        after_spike_drops = round(counter_at(drops, later_s) - counter_at(drops, window.zero_s + spike_s[0]))
    waiting = samples.waiting.get(key, [])
    result.ports.append(
        PortResult(
            switch=port.switch,
            port=port.port,
            rate_bps=round(rate),
            throughput_bps=throughput,
            utilisation=line / rate if rate else 0.0,
            drops=round(counter_at(drops, window.end_s) - counter_at(drops, window.start_s)),
            queue_packets=_mean(waiting, window),
            after_spike_drops=after_spike_drops,
            values=of_program,
        )
    )
    for metric, points in (
        ("queue_packets", waiting),
        ("throughput_bps", rate_series(sent, SERIES_STEP_S)),
    ):
        result.series += [SeriesPoint(t, name, metric, float(value)) for t, value in window.series(points)]


def read_events(folder: Path, window: Window) -> list[dict[str, Any]]:
    """The controller's events of a run, from a second before its zero on, with `t_s`."""
    found: list[dict[str, Any]] = []
    for event in _records(folder / "controller-events.jsonl"):
        t_s = event.get("monotonic_ns", 0) / 1e9 - window.zero_s
        if t_s >= -1.0:
            found.append(
                {"t_s": round(t_s, 3), **{k: v for k, v in event.items() if k not in ("time", "monotonic_ns")}}
            )
    return found


def _check_utilisation(result: RunResult, running: Running) -> None:
    for port in result.ports:
        if port.utilisation > UTILISATION_MAX:
            where = f"port {port.port} of {port.switch}"
            raise VoidError(f"utilisation {port.utilisation:.3f} of {where} is above 1: the run is void")
    if len(result.ports) == 1 and result.ports[0].rate_bps:
        mss = running.scenario.tcp.mss_bytes
        carried = sum(flow.goodput_bps for flow in result.flows) * (mss + FRAME_OVERHEAD_BYTES) / mss
        if carried / result.ports[0].rate_bps > UTILISATION_MAX:
            share = carried / result.ports[0].rate_bps
            raise VoidError(f"the flows' goodputs would fill {share:.3f} of the link: the run is void")
