# SPDX-License-Identifier: Apache-2.0
"""When a VC counts, the share that the GFR paper gives it, (3), and the goodput that it carries, also where VCs come and go. Pure functions;
times in seconds from the scenario's zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairlane_lab.scenario import Flow, Scenario, Vc, flows_of, tcp_of

from ..model import cells_of_packet, guaranteed_shares, ideal_goodput_bps


@dataclass(frozen=True)
class Span:
    """From when to when."""

    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """0 when it is empty."""
        return max(0.0, self.end_s - self.begin_s)

    def holds(self, begin_s: float, end_s: float) -> bool:
        """Whether that interval lies in it."""
        return self.begin_s <= begin_s + 1e-9 and end_s <= self.end_s + 1e-9


def active(scenario: Scenario, vc: Vc) -> Span:
    """From its first flow's start to its last one's end."""
    flows = flows_of(scenario, vc)
    ends = [scenario.duration_s if flow.stop_s is None else min(flow.stop_s, scenario.duration_s) for flow in flows]
    return Span(min((flow.start_s for flow in flows), default=0.0), max(ends, default=0.0))


def counted(scenario: Scenario, vc: Vc) -> Span:
    """The part of the measured window in which a VC counts: one that starts during it has a warm-up of its own, as long as the run's."""
    span = active(scenario, vc)
    warm = scenario.warmup_s
    begin_s = warm if span.begin_s < warm else span.begin_s + warm
    return Span(begin_s, max(begin_s, span.end_s))


TCP_HEADERS_BYTES = 40
"""IPv4 and TCP, without options."""
TIMESTAMPS_BYTES = 12
UDP_HEADERS_BYTES = 28


@dataclass(frozen=True)
class GfrPort:
    """A managed port."""

    capacity_bps: float
    """C_GFR: bits on the line."""
    vcs: frozenset[str]
    """Names of those that cross it."""


@dataclass(frozen=True)
class IdealShare:
    """Means over the time in which a VC counts."""

    w_bps: float
    """Bits on the line."""
    goodput_bps: float
    """Application bits that w carries."""
    guaranteed_bps: float
    """Application bits that the MCR carries."""


def ideal_shares(scenario: Scenario, ports: Sequence[GfrPort]) -> dict[str, IdealShare]:
    """Of every VC that ever counts, by name. At each moment a VC has the least of the w_i that the ports on its way give it,
    N and Σ MCR being those of the VCs that are active then. Raises OUT_OF_RANGE when Σ MCR is above a port's capacity."""
    spans = {vc.name: active(scenario, vc) for vc in scenario.vcs}
    found: dict[str, IdealShare] = {}
    for vc in scenario.vcs:
        span = counted(scenario, vc)
        if span.length_s <= 0:
            continue
        w_bps = 0.0
        for piece in _pieces(span, spans.values()):
            there = frozenset(name for name, other in spans.items() if other.holds(piece.begin_s, piece.end_s))
            w_bps += _share(scenario, vc, ports, there) * piece.length_s / span.length_s
        payload, cells = segment(scenario, vc)
        found[vc.name] = IdealShare(
            w_bps, ideal_goodput_bps(w_bps, payload, cells), ideal_goodput_bps(vc.mcr_bps, payload, cells)
        )
    return found


def segment(scenario: Scenario, vc: Vc) -> tuple[int, int]:
    """(application bytes, cells) of a full segment of the VC; of the longest where its flows differ. (1, 1) for a VC without flows."""
    return max((_segment(scenario, flow) for flow in flows_of(scenario, vc)), default=(1, 1))


def packet_bytes(scenario: Scenario, flow: Flow) -> int:
    """Length of a flow's full IP packets."""
    if flow.app.kind == "cbr_udp":
        return flow.app.payload_bytes + UDP_HEADERS_BYTES
    tcp = tcp_of(scenario, flow)
    return tcp.mss_bytes + TCP_HEADERS_BYTES + (TIMESTAMPS_BYTES if tcp.timestamps else 0)


def _segment(scenario: Scenario, flow: Flow) -> tuple[int, int]:
    udp = flow.app.kind == "cbr_udp"
    payload = flow.app.payload_bytes if udp else tcp_of(scenario, flow).mss_bytes
    return payload, cells_of_packet(packet_bytes(scenario, flow))


def _pieces(span: Span, others: Iterable[Span]) -> list[Span]:
    """`span` cut where any of the others begins or ends."""
    edges = {span.begin_s, span.end_s}
    for other in others:
        edges |= {at for at in (other.begin_s, other.end_s) if span.begin_s < at < span.end_s}
    ordered = sorted(edges)
    return [Span(begin, end) for begin, end in pairwise(ordered)]


def _share(scenario: Scenario, vc: Vc, ports: Sequence[GfrPort], there: frozenset[str]) -> float:
    """The least w_i on its way while the VCs of `there` are active; 0 when it crosses no managed port."""
    found: list[float] = []
    for port in ports:
        if vc.name in port.vcs:
            here = [each for each in scenario.vcs if each.name in port.vcs & there]
            w_bps = guaranteed_shares([each.mcr_bps for each in here], port.capacity_bps)
            found.append(dict(zip((each.name for each in here), w_bps, strict=True))[vc.name])
    return min(found, default=0.0)
