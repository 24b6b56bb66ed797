# SPDX-License-Identifier: Apache-2.0
"""The ceiling of a transfer over a long line with bit errors (Lee and Kim 2000): what a sender without a fault of its own could have. Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fairlane_hosts.simulator import TIMESTAMP_BYTES
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction

from fairlane_lab.measures import carried_bps
from fairlane_lab.scenario import FRAME_OVERHEAD_BYTES, Flow, Scenario, TcpOptions, tcp_of

ACK_BYTES = 64
"""An ACK's frame, with options."""


@dataclass(frozen=True)
class Path:
    """A path with one slow line."""

    rate_bps: float
    """Of the slow line."""
    rtt_s: float
    """Of a full segment on an empty path, serialisation included."""
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
    path, tcp = path_of(fl_topology.check(dict(scenario.topology)), scenario, flow), tcp_of(scenario, flow)
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
    rtt_s, slow = 0.0, Direction()
    for link in topology.links:
        if {link.a.node, link.b.node} & others:
            continue
        ends = ((link.a, link.a_to_b), (link.b, link.b_to_a))
        rates = [topology.ports[end.node][end.port].rate_bps if end.port else way.rate_bps for end, way in ends]
        rtt_s += sum(way.delay_us for _, way in ends) / 1e6
        if rate_bps := min(filter(None, rates), default=0):
            rtt_s += 8 * (tcp.mss_bytes + overhead_bytes(tcp) + ACK_BYTES) / rate_bps
        slow = next((way for end, way in ends if (end.node, end.port) == ports[0]), slow)
    rate_bps = float(topology.ports[ports[0][0]][ports[0][1]].rate_bps or 0)
    return Path(rate_bps, rtt_s, slow.ber, slow.errors_in) if rate_bps and rtt_s else None


def least_s(path: Path, tcp: TcpOptions, size_bytes: int) -> float:
    """The least time in which a transfer may be done: the handshake, a round trip, and its frames on the bottleneck.

    pFabric (SIGCOMM 2013) divides completion times by such a time; its connections are open already.
    """
    frames = size_bytes * (1 + overhead_bytes(tcp) / tcp.mss_bytes)
    return 2 * path.rtt_s + 8 * frames / path.rate_bps


def offered_window_bytes(tcp: TcpOptions, flow: Flow) -> float:
    """The largest window that a flow may have in flight; infinite where nothing bounds it."""
    windows = [float(tcp.receive_window_bytes or math.inf)]
    if flow.window_packets:
        windows.append(float(flow.window_packets * tcp.mss_bytes))
    return min(windows)


def overhead_bytes(tcp: TcpOptions) -> int:
    """What a full segment's frame has beside its data."""
    return FRAME_OVERHEAD_BYTES + (TIMESTAMP_BYTES if tcp.timestamps else 0)
