# SPDX-License-Identifier: Apache-2.0
"""Measures over numbers and samples of a run: counters over time, where the steady state begins, what frames take on an ATM line, and the ceiling
of a transfer over a long line with bit errors (Lee and Kim 2000): what a sender without a fault of its own could have. Pure functions.

What is not known is None, in every table and file: never 0, never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np
from fairlane_controller.switch.shared import (
    AAL5_TRAILER_BYTES,
    CELL_LINE_BYTES,
    CELL_PAYLOAD_BYTES,
    ETHERNET_HEADER_BYTES,
)
from fairlane_hosts.simulator import TIMESTAMP_BYTES
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction
from numpy.typing import NDArray

from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, IPV6_BYTES, Flow, Scenario, TcpOptions, checked_topology, tcp_of


def finite_or_none(value: Any) -> Any:
    """The value; None for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_sum(values: Iterable[float | None]) -> float | None:
    """The sum; None when a part of it is not known."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def known_mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None when none is."""
    found = [value for value in values if value is not None]
    return fmean(found) if found else None


INSTANT_S = 1e-9
Values = NDArray[np.float64]
Points = Sequence[tuple[float, float]]
"""(s, value), in order of time."""


@dataclass(frozen=True)
class Samples:
    """One quantity over time; NaN where a sample does not know it."""

    t_s: Values
    values: Values

    @classmethod
    def of(cls, points: Points) -> Samples:
        """From (s, value)."""
        return cls(np.array([t_s for t_s, _ in points]), np.array([value for _, value in points], dtype=np.float64))

    @property
    def points(self) -> list[tuple[float, float]]:
        """(s, value) of the samples that know it."""
        known = ~np.isnan(self.values)
        return list(zip(self.t_s[known].tolist(), self.values[known].tolist(), strict=True))

    def where(self, known: NDArray[np.bool_]) -> Samples:
        """Only these samples know it."""
        return Samples(self.t_s, np.where(known, self.values, np.nan))

    def every(self, step: int) -> Samples:
        """Every so many-th sample."""
        return Samples(self.t_s[::step], self.values[::step])

    def rates(self, step_s: float | None = None) -> Samples:
        """Of bytes so far: bit/s between each sample and the one before it; with `step_s` in the middle of consecutive steps of so many seconds."""
        if step_s is None:
            return Samples(self.t_s[1:], 8.0 * np.diff(self.values) / np.diff(self.t_s))
        edges = np.arange(self.t_s[0], self.t_s[-1] + INSTANT_S, step_s) if self.t_s.size else np.empty(0)
        return Samples(edges[:-1] + step_s / 2, 8.0 * np.diff(self.at(edges)) / step_s)

    @classmethod
    def total(cls, several: Sequence[Samples]) -> Samples:
        """The sum of several counters, at every instant at which one of them was sampled."""
        t_s = np.unique(np.concatenate([each.t_s for each in several])) if several else np.empty(0)
        return cls(t_s, np.sum([each.at(t_s) for each in several], axis=0) if several else t_s)

    def at(self, t_s: Values) -> Values:
        """A counter at these instants, by linear interpolation; 0 without samples."""
        return np.interp(t_s, self.t_s, self.values) if self.t_s.size else np.zeros(len(t_s))

    def grown(self, start_s: float, end_s: float) -> float:
        """How much a counter grew between two instants."""
        start, end = self.at(np.array([start_s, end_s]))
        return float(end - start)

    def within(self, start_s: float, end_s: float) -> Values:
        """What is known in (start, end]."""
        inside = (self.t_s > start_s + INSTANT_S) & (self.t_s <= end_s + INSTANT_S)
        return self.values[inside & ~np.isnan(self.values)]

    def mean(self, start_s: float, end_s: float) -> float | None:
        """Mean of what is known in (start, end]; None when that is nothing."""
        found = self.within(start_s, end_s)
        return float(found.mean()) if found.size else None


NOTHING = Samples(np.empty(0), np.empty(0))


RECOVERED_SHARE = 0.9
RECOVERY_WINDOW_S = 1.0


def recovery_s(samples: Samples, spike_end_s: float, new_rate_bps: float, step_s: float = 0.1) -> float | None:
    """From a spike's end to the first window of `RECOVERY_WINDOW_S` in which 90 % of the new rate is reached; None when that never comes.

    `samples` are bytes so far; `new_rate_bps` is what the path then carries of these bytes. What the spike held
    back comes all at once at its end: those bytes (in the first 0.1 s) do not count.
    """
    last_s = samples.t_s[-1] - RECOVERY_WINDOW_S if samples.t_s.size else spike_end_s
    starts = np.arange(spike_end_s + step_s, last_s + 1e-9, step_s)
    grown = samples.at(starts + RECOVERY_WINDOW_S) - samples.at(starts)
    found = starts[8 * grown / RECOVERY_WINDOW_S >= RECOVERED_SHARE * new_rate_bps]
    return round(float(found[0]) - spike_end_s, 6) if found.size else None


def carried_bps(rate_bps: float, mss_bytes: int, frame_overhead_bytes: int = FRAME_OVERHEAD_BYTES) -> float:
    """Application bits per second that a link of `rate_bps` carries in full segments; frames as the switch counts them."""
    return rate_bps * mss_bytes / (mss_bytes + frame_overhead_bytes)


def on_line_bps(packets_per_s: float, mss_bytes: int, frame_overhead_bytes: int = FRAME_OVERHEAD_BYTES) -> float:
    """Bits per second that so many full segments take on a link."""
    return 8 * packets_per_s * (mss_bytes + frame_overhead_bytes)


def mean_between(steps: Points, start_s: float, end_s: float) -> float:
    """Time-weighted mean of a step function in a window; `steps` are (from when, value), the first holds before it too.

    Raises ValueError for an empty window or without steps.
    """
    if end_s <= start_s or not steps:
        raise ValueError(f"no mean of {len(steps)} steps from {start_s} s to {end_s} s")
    total = 0.0
    for index, (since_s, value) in enumerate(steps):
        begin = start_s if index == 0 else max(since_s, start_s)
        end = end_s if index + 1 == len(steps) else min(steps[index + 1][0], end_s)
        total += value * max(0.0, end - begin)
    return total / (end_s - start_s)


MSER_BATCH = 5


def mser5(values: Sequence[float]) -> int | None:
    """How many values at the beginning are not of the steady state: MSER-5 (White, Cobb, Spratt 2000).

    Batches of five; what is cut is what makes the standard error of the rest the smallest. None: that is more than half, so
    there is no steady state to be seen.
    """
    batches = [fmean(values[at : at + MSER_BATCH]) for at in range(0, len(values) - MSER_BATCH + 1, MSER_BATCH)]
    total = squares = 0.0
    best, cut = math.inf, 0
    for count, value in enumerate(reversed(batches), start=1):
        total += value
        squares += value * value
        error = max(squares - total * total / count, 0.0) / count**2
        if count > MSER_BATCH and error <= best:
            best, cut = error, len(batches) - count
    return None if cut > len(batches) / 2 else cut * MSER_BATCH


def atm_line_bytes(packets: float, frame_bytes: float) -> float:
    """Bytes on the line of so many frames of together `frame_bytes`, without the padding of their last cells: exact for
    frames that fill their cells (IP packets of 40, 1000, 7720 bytes), else up to a cell a frame too little."""
    payload = frame_bytes - packets * (ETHERNET_HEADER_BYTES - AAL5_TRAILER_BYTES)
    return payload / CELL_PAYLOAD_BYTES * CELL_LINE_BYTES


ACK_BYTES = 64
"""An ACK's frame, with options."""


@dataclass(frozen=True)
class Path:
    """A path with one slow line."""

    rate_bps: float
    """Of the slow line."""
    rtt_s: float
    """Of a full segment on an empty path, serialisation included."""
    delay_s: float
    """Of that, propagation."""
    ber: float
    """Of the slow line, towards the receiver."""
    errors_in: Literal["frame", "payload"] = "frame"
    """Where they fall."""

    def segment_error(self, mss_bytes: int, overhead_bytes: int) -> float:
        """Probability that a full segment is hit."""
        return segment_error(self.ber, mss_bytes + (overhead_bytes if self.errors_in == "frame" else 0))


def segment_error(ber: float, length_bytes: int) -> float:
    """Probability that at least one bit of L bytes is flipped: 1 - (1 - p)^(8*L)."""
    return -math.expm1(8 * length_bytes * math.log1p(-ber)) if ber < 1 else 1.0


def ceiling_bps(
    file_bytes: int, path: Path, mss_bytes: int, window_bytes: float, initial_window_packets: int, overhead_bytes: int
) -> float:
    """Throughput of a file whose sender never waits for anything but slow start, the window and the line; bit/s.

    Steady state: min(window / RTT (2), link rate * MSS / frame) * (1 - p_segment), for every errored segment is sent once more.
    Slow start: RTT*(log2 W_A - log2 W_I) (1), (5), in which W_A - W_I segments leave; a file that ends within it takes
    RTT*log2(n / W_I + 1).
    """
    good = 1 - path.segment_error(mss_bytes, overhead_bytes)
    line_bps = carried_bps(path.rate_bps, mss_bytes, overhead_bytes)
    unhurt_bps = min(8 * window_bytes / path.rtt_s, line_bps)
    segments = file_bytes / mss_bytes / max(good, 1e-9)
    full = max(unhurt_bps * path.rtt_s / (8 * mss_bytes), float(initial_window_packets))
    started = full - initial_window_packets
    if segments <= started:
        took_s = path.rtt_s * math.log2(segments / initial_window_packets + 1)
    else:
        took_s = (
            path.rtt_s * math.log2(full / initial_window_packets) + (segments - started) * 8 * mss_bytes / unhurt_bps
        )
    return 8 * file_bytes / took_s


def ceiling_of(scenario: Scenario) -> float | None:
    """The ceiling of a run with one file of one flow over one managed port that leads to a line with delay; else None.

    The window is the offered one, and no more than `window_packets` where the flow has such.
    """
    files = [flow for flow in scenario.flows if flow.app.kind == "bytes"]
    if len(scenario.flows) != 1 or len(files) != 1 or files[0].app.times > 1 or not scenario.ends_with_its_files:
        return None
    (flow,) = files
    path, tcp = path_of(checked_topology(scenario), scenario, flow), tcp_of(scenario, flow)
    if path is None:
        return None
    window_bytes, initial = offered_window_bytes(tcp, flow), tcp.initial_window_packets
    return ceiling_bps(flow.app.bytes, path, tcp.mss_bytes, window_bytes, initial, overhead_bytes(tcp))


def path_of(topology: fl_topology.Topology, scenario: Scenario, flow: Flow) -> Path | None:
    """A flow's way over its topology's one managed port; None where there are more or less, or where the way costs no time.

    All links between switches count, and those of its two hosts: topologies are chains.
    """
    ports = [(name, port) for name, own in topology.ports.items() for port, spec in own.items() if spec.bottleneck]
    if len(ports) != 1:
        return None
    tcp = tcp_of(scenario, flow)
    others = set(topology.hosts) - {flow.sender, flow.receiver}
    delay_s, frames_s, slow = 0.0, 0.0, Direction()
    for link in topology.links:
        if {link.a.node, link.b.node} & others:
            continue
        ends = ((link.a, link.a_to_b), (link.b, link.b_to_a))
        rates = [topology.ports[end.node][end.port].rate_bps if end.port else way.rate_bps for end, way in ends]
        delay_s += sum(way.delay_us for _, way in ends) / 1e6
        if rate_bps := min(filter(None, rates), default=0):
            frames_s += 8 * (tcp.mss_bytes + overhead_bytes(tcp) + ACK_BYTES) / rate_bps
        slow = next((way for end, way in ends if (end.node, end.port) == ports[0]), slow)
    rate_bps, rtt_s = float(topology.ports[ports[0][0]][ports[0][1]].rate_bps or 0), delay_s + frames_s
    return Path(rate_bps, rtt_s, delay_s, slow.ber, slow.errors_in) if rate_bps and rtt_s else None


def least_s(path: Path, tcp: TcpOptions, size_bytes: int) -> float:
    """The least time in which a transfer may be done: the propagation of handshake and round trip, and its frames on the bottleneck, once.

    pFabric (SIGCOMM 2013) divides completion times by such a time; its connections are open already.
    """
    frames = size_bytes * (1 + overhead_bytes(tcp) / tcp.mss_bytes)
    return 2 * path.delay_s + 8 * frames / path.rate_bps


def offered_window_bytes(tcp: TcpOptions, flow: Flow) -> float:
    """The largest window that a flow may have in flight; infinite where nothing bounds it."""
    windows = [float(tcp.receive_window_bytes or math.inf)]
    if flow.window_packets:
        windows.append(float(flow.window_packets * tcp.mss_bytes))
    return min(windows)


def overhead_bytes(tcp: TcpOptions) -> int:
    """What a full segment's frame has beside its data."""
    return header_bytes(tcp) + (TIMESTAMP_BYTES if tcp.timestamps else 0)


def header_bytes(tcp: TcpOptions) -> int:
    """A frame's headers without TCP's options."""
    return FRAME_OVERHEAD_BYTES + (IPV6_BYTES if tcp.ipv6 else 0)
