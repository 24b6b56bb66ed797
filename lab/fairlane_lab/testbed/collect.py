# SPDX-License-Identifier: Apache-2.0
"""A RunResult out of what a run left: the senders' and sinks' files, the watch's samples, the controller's events. Nothing runs here."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from fairlane_hosts.variants import find_variant
from fairlane_switch.link_series import Series
from fairlane_topology import topology as fl_topology
from fairlane_topology.topology import PortKey

from fairlane_lab.measures import Samples, known_sum
from fairlane_lab.recording import (
    FlowRecord,
    PortRecord,
    Recording,
    counters_of,
    make_result,
    make_transfer,
    program_transfer,
    read_lines,
)
from fairlane_lab.run_result import AFTER_SPIKE_S, RunError, RunResult, Transfer
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, tcp_of
from fairlane_lab.testbed.bed import Bed, Running
from fairlane_lab.testbed.plan import Sender
from fairlane_lab.testbed.port_watch import Watched
from fairlane_lab.testbed.programs import Program

LATE_S = 0.1
"""A sender that starts this much after its time has not made the run that was asked for."""
STARTING_S = 1.0
"""So long after a run's start a standstill spoils nothing, unless that time is counted: a flow that starts a little later is what chance draws too."""
UTILISATION_MAX = 1.02
SERIES_STEP_S = 0.5

Points = list[tuple[float, float]]
Record = Mapping[str, Any]


class VoidError(RunError):
    """This machine spoilt the run: it says nothing, another attempt may."""


def collect(bed: Bed, running: Running, watched: Watched, changes: Sequence[tuple[float, PortKey, int]]) -> RunResult:
    """The result of a run that has ended; `changes` are (s after zero, port, new bit/s).

    Raises VoidError when this machine stood still, a flow started late or the numbers cannot be true; RunError when a
    flow broke or used another congestion control.
    """
    scenario, zero_s, end_s = running.scenario, running.zero_s, running.end_s
    for at_s, what, seconds in watched.standstills:
        if min(STARTING_S, scenario.warmup_s) <= at_s - zero_s <= end_s:
            raise VoidError(f"{what} stood still for {seconds:.1f} s, {at_s - zero_s:.1f} s after the start")
    received = _received(running)
    written = {sender.name: _read_sender(sender, zero_s) for sender in running.plan.senders}
    events = list(_events(bed.state, zero_s))
    spike = scenario.spike_s
    recording = Recording(
        scenario,
        bed.network.topology,
        scenario.warmup_s,
        end_s,
        [
            *(each for sender in running.plan.senders for each in _flows(running, sender, written, received, watched)),
            *(_program(running, each) for each in running.programs),
        ],
        [_port(key, spec, watched, changes, zero_s) for key, spec in bed.ports.items()],
        None if spike is None else (*spike, min(spike[1] + AFTER_SPIKE_S, end_s)),
        rate_step_s=SERIES_STEP_S,
        events=[event for event in events if 0 < event["t_s"] <= end_s],
        measured={port: _since(polls, zero_s) for port, polls in watched.measured.items()},
        before=_read_at(watched, zero_s + scenario.warmup_s),
        after=_read_at(watched, zero_s + end_s),
        thresholds=running.thresholds,
    )
    result = make_result(
        recording,
        bed.part,
        transfers=[
            *(each for sender in running.plan.senders for each in _transfers(sender, written[sender.name], zero_s)),
            *(
                program_transfer(each.name, each.flow, ran[0] - zero_s, ran[1] - zero_s, round(each.points[-1][1]))
                for each in running.programs
                if (ran := each.ran_s) is not None
            ),
        ],
        events=[event for event in events if event["t_s"] <= scenario.duration_s],
        virtual_s=scenario.duration_s,
    )
    _check_utilisation(result, scenario.tcp.mss_bytes, running.plan.commands)
    return result


def _since(points: Sequence[tuple[float, Any]], zero_s: float) -> list[tuple[float, Any]]:
    """With times after the zero."""
    return [(t_s - zero_s, value) for t_s, value in points]


def _samples(points: Sequence[tuple[float, float]], zero_s: float) -> Samples:
    return Samples.of(_since(points, zero_s))


def _read_at(watched: Watched, at_s: float) -> dict[str, Any]:
    """What the program's part had read of each switch by then."""
    return {
        switch: [values for t_s, values in points if t_s <= at_s or t_s == points[0][0]][-1]
        for switch, points in watched.of_program.items()
    }


# ---- files -----------------------------------------------------------------------------------------------------------


def _read_sender(sender: Sender, zero_s: float) -> dict[str, Any]:
    """The records of a sender by their kinds: `summary`, `transfer`, `unfinished`, `cwnd` (samples). Raises VoidError, RunError."""
    found: dict[str, Any] = {"transfer": [], "unfinished": [], "cwnd": []}
    for record in read_lines(sender.out):
        for kind in found.keys() & record:
            found[kind].append(record if kind == "cwnd" else record[kind])
        found |= {"summary": record["summary"]} if "summary" in record else {}
    if "summary" not in found:
        raise RunError(f"{sender.out.name}: the sender wrote no summary")
    if (late_s := found["summary"]["late_ns"] / 1e9) > LATE_S:
        raise VoidError(f"flow {sender.name} started {late_s:.2f} s late: this machine is busy")
    for row in () if sender.is_udp else found["summary"]["flows"]:
        expected = find_variant(sender.flow.variant).congestion_control
        if row["cc"] != expected:
            raise RunError(f"flow {sender.name}: wanted congestion control {expected}, got {row['cc']}")
        if row["error"]:
            raise RunError(f"flow {sender.name}: {row['error']}")
    for record in found["cwnd"]:
        record["t_s"] = record["t_ns"] / 1e9 - zero_s
    for record in (*found["transfer"], *found["unfinished"]):
        record["start_s"] = record["start_ns"] / 1e9 - zero_s
    return found


def _received(running: Running) -> dict[str, Points]:
    """(s, bytes so far) of each connection, by the sender's address and port."""
    series: dict[str, Points] = {}
    for sink in running.plan.sinks:
        before: dict[str, float] = {}
        for record in read_lines(sink.out):
            if "bytes" in record and "peer" in record:
                peer, count = record["peer"], float(record["bytes"])
                points = series.setdefault(peer, [])
                if points and count < points[-1][1] - before.get(peer, 0.0):
                    before[peer] = points[-1][1]  # a port that was used again: another connection
                points.append((record["t_ns"] / 1e9 - running.zero_s, before.get(peer, 0.0) + count))
    return series


def _events(folder: Path, zero_s: float) -> Iterator[dict[str, Any]]:
    """The controller's events of a run, from a second before its zero on, with `t_s`."""
    for event in read_lines(folder / "controller-events.jsonl"):
        t_s = event.pop("monotonic_ns", 0) / 1e9 - zero_s
        event.pop("time", None)
        if t_s >= -1.0:
            yield {"t_s": round(t_s, 3), **event}


# ---- flows -----------------------------------------------------------------------------------------------------------


def _flows(
    running: Running,
    sender: Sender,
    of_senders: Mapping[str, Record],
    received: Mapping[str, Points],
    watched: Watched,
) -> Iterator[FlowRecord]:
    """Each connection of a sender; of many short ones, or of datagrams, all of a flow together."""
    flow, written, names = sender.flow, of_senders[sender.name], sender.results()
    mss_bytes = tcp_of(running.scenario, flow).mss_bytes
    if sender.is_udp or flow.app.kind == "web" or flow.app.times > 1:
        for index, name in enumerate(names):
            # A port that was used again is named again.
            peers = dict.fromkeys(peer["local"] for peer in written["summary"]["peers"] if peer["flow"] == index)
            all_bytes = Samples.total([Samples.of(received[peer]) for peer in peers if peer in received])
            given = _of_transfers(running, index, written)
            variant = "udp" if sender.is_udp else flow.variant
            yield FlowRecord(name, flow, variant, all_bytes, all_bytes, mss_bytes, given=given)
        return
    counters = counters_of(flow, running.scenario.flows, running.counters)
    for index, (name, row) in enumerate(zip(names, written["summary"]["flows"], strict=True)):
        if row["local"] not in received and flow.app.kind != "bytes":  # which may not connect before the run is over
            raise RunError(f"flow {name}: the sink saw nothing of {row['local']}")
        rows = [record for record in written["cwnd"] if record["flow"] == index]
        cwnd, ssthresh = _sampled(rows, "cwnd"), _sampled(rows, "ssthresh")
        ssthresh = ssthresh.where(ssthresh.values < 1 << 30)
        totals = {
            "retransmits": _sampled(rows, "retrans"),
            "timeouts": _sampled(rows, "timeouts"),
            "segments_sent": _sampled(rows, "segments"),
            "window_reductions": _reductions(cwnd, ssthresh),
        }
        host, _, port = row["local"].rpartition(":")
        all_bytes = Samples.of(received.get(row["local"], []))
        yield FlowRecord(
            name,
            flow,
            flow.variant,
            all_bytes,
            all_bytes,
            mss_bytes,
            {total: samples for total, samples in totals.items() if samples.t_s.size or total == "window_reductions"},
            cwnd,
            ssthresh,
            _samples(watched.flows.get((host, int(port or 0), sender.sink.port), []), running.zero_s),
            _sampled(rows, "srtt_us", 1e3),
            {"counters": counters},
        )


def _program(running: Running, program: Program) -> FlowRecord:
    """A program's flow: what its connections' sender has seen acknowledged."""
    acked, flow = program.received(running.zero_s), program.flow
    return FlowRecord(program.name, flow, flow.variant, acked, acked, tcp_of(running.scenario, flow).mss_bytes)


def _sampled(rows: Sequence[Record], name: str, scale: float = 1.0) -> Samples:
    """What was sampled of a name, where it was."""
    return Samples.of([(row["t_s"], row[name] * scale) for row in rows if row.get(name) is not None])


def _reductions(cwnd: Samples, ssthresh: Samples) -> Samples:
    """How often ssthresh fell below the largest window since it last changed, as the samples show it."""
    points: Points = []
    count, before, largest, thresholds_at = 0, math.inf, 0.0, dict(ssthresh.points)
    for t_s, window in cwnd.points:
        if (threshold := thresholds_at.get(t_s, math.inf)) != before:
            count += threshold < largest
            before, largest = threshold, 0.0
        largest = max(largest, window)
        points.append((t_s, count))
    return Samples.of(points)


def _of_transfers(running: Running, index: int, written: Record) -> dict[str, Any]:
    """What the transfers of a flow say of it."""
    mine = [record for record in (*written["transfer"], *written["unfinished"]) if record["flow"] == index]
    inside = [record for record in mine if record["start_s"] >= running.scenario.warmup_s]
    timeouts = known_sum(record.get("timeouts") for record in inside)
    return {
        "retransmits": sum(record["retransmits"] for record in inside),
        "timeouts": None if timeouts is None else round(timeouts),
        "srtt_ms": median(record["srtt_us"] / 1e3 for record in mine) if mine else None,
    }


def _transfers(sender: Sender, written: Record, zero_s: float) -> Iterator[Transfer]:
    names, flow = sender.results(), sender.flow
    for kind in ("transfer", "unfinished"):
        for row in written[kind]:
            yield make_transfer(names[int(row["flow"])], flow, row, zero_s, complete=kind == "transfer")


# ---- ports -----------------------------------------------------------------------------------------------------------


def _port(
    key: PortKey,
    spec: fl_topology.PortSpec,
    watched: Watched,
    changes: Sequence[tuple[float, PortKey, int]],
    zero_s: float,
) -> PortRecord:
    if len(watched.tx_bytes[key]) < 2:
        raise RunError(f"nothing was sampled at port {key[1]} of {key[0]}: {'; '.join(watched.problems)}")
    sent = _samples(watched.tx_bytes[key], zero_s)
    rates = [
        (0.0, spec.rate_bps or 0),
        *((at_s, rate_bps) for at_s, which, rate_bps in sorted(changes) if which == key),
    ]
    # Of a function of time the switch alone knows what it draws, and when.
    varies = any(isinstance(rate_bps, Series) for _, rate_bps in rates)
    return PortRecord(
        key,
        [] if varies else rates,
        sent,
        _samples(watched.tx_packets[key], zero_s),
        _samples(watched.drops[key], zero_s),
        _samples(watched.waiting[key], zero_s),
        sent,
        spec.link_layer == "atm",
    )


def _check_utilisation(result: RunResult, mss_bytes: int, commands: Container[str]) -> None:
    """`commands`: flows of programs, which need not cross the bottleneck."""
    for port in result.ports:
        if port.utilisation is not None and port.utilisation > UTILISATION_MAX:
            where = f"port {port.port} of {port.switch}"
            raise VoidError(f"utilisation {port.utilisation:.3f} of {where} is above 1: the run is void")
    if len(result.ports) == 1 and result.ports[0].rate_bps:
        on_line_bps = (
            sum(each.goodput_bps for each in result.flows if each.flow not in commands)
            * (mss_bytes + FRAME_OVERHEAD_BYTES)
            / mss_bytes
        )
        if (share := on_line_bps / result.ports[0].rate_bps) > UTILISATION_MAX:
            raise VoidError(f"the flows' goodputs would fill {share:.3f} of the link: the run is void")
