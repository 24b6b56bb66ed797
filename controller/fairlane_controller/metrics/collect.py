# SPDX-License-Identifier: Apache-2.0
"""Snapshots and event counts as metric families. What is None has no series: an absent value is not 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fairlane_controller.live.model import PortRow, Snapshot
from fairlane_controller.metrics.names import METRICS, QUANTITIES

FLOWS_MAX = 50
"""Flows with series of their own, those that send most: labels are kept for ever by who stores them."""


@dataclass
class EventCounts:
    """What the event log has told so far."""

    events: Counter[str] = field(default_factory=Counter[str])
    writes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    "(switch, port) → writes."

    def take(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count them; what a dry run only would have written is no write."""
        for event in events:
            name = str(event.get("event"))
            self.events[name] += 1
            if event.get("dry_run"):
                continue
            place = str(event.get("switch", "")), str(event.get("port", ""))
            if name == "threshold":
                self.writes[place] += 1
            elif name == "tuned":
                written = event.get("written")
                self.writes[place] += written if isinstance(written, int) else 1


@dataclass(frozen=True)
class Picture:
    """One topology at a scrape; without a snapshot it could not be read."""

    topology: str
    snapshot: Snapshot | None
    counts: EventCounts


class PictureCollector(Collector):
    """What prometheus_client asks for the families of one scrape."""

    def __init__(self, pictures: Sequence[Picture], flows_max: int = FLOWS_MAX) -> None:
        self._pictures = pictures
        self._flows_max = flows_max

    def collect(self) -> Iterator[Metric]:
        """Every family that has a series."""
        families: dict[str, Any] = {}
        for metric in METRICS:
            make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            name = metric.name.removesuffix("_total")
            families[metric.name] = make(name, metric.help, labels=("topology", *metric.labels))
        for picture in self._pictures:
            for name, labels, value in samples(picture, self._flows_max):
                if value is not None:
                    families[name].add_metric((picture.topology, *map(str, labels)), float(value))
        yield from (family for family in families.values() if family.samples)


Sample = tuple[str, tuple[object, ...], "float | None"]


def samples(picture: Picture, flows_max: int = FLOWS_MAX) -> Iterator[Sample]:
    """(metric, labels after the topology, value); a value of None is left out by who asks."""
    for event, count in sorted(picture.counts.events.items()):
        yield "fairlane_loop_events_total", (event,), count
    for place, count in sorted(picture.counts.writes.items()):
        yield "fairlane_loop_writes_total", place, count
    snapshot = picture.snapshot
    if snapshot is None:
        return
    for row in snapshot.switches:
        yield "fairlane_up", (row.switch,), float(row.reachable and row.error is None)
        info = (row.switch, row.program or "", snapshot.target or "", row.grpc)
        yield "fairlane_switch_info", info, 1.0
        yield "fairlane_read_seconds", (row.switch,), None if row.read_ms is None else row.read_ms / 1e3
    for port in snapshot.ports:
        yield from _port(snapshot, port)
    for drop in snapshot.drops:
        place = (drop.switch, "" if drop.port is None else drop.port)
        yield "fairlane_drops_total", (*place, drop.reason, drop.by), drop.packets
    told = {(drop.switch, drop.port, drop.reason) for drop in snapshot.drops}
    for port in snapshot.managed_ports:  # from 0 on, so that the first drop is an increase
        for reason in ("qthresh", "port_full") if port.scheme is None else ():
            if (port.switch, port.port, reason) not in told:
                yield "fairlane_drops_total", (port.switch, port.port, reason, "program"), 0
    busiest = sorted(snapshot.flows, key=lambda flow: -(flow.goodput_bps or 0.0))[:flows_max]
    for flow in busiest:
        labels = (flow.switch, "" if flow.port is None else flow.port, flow.flow)
        yield "fairlane_flow_queue_packets", labels, flow.waiting_packets
        yield "fairlane_flow_threshold_packets", labels, flow.qthresh_packets
        yield "fairlane_flow_goodput_bits_per_second", labels, flow.goodput_bps
        yield "fairlane_flow_drops_per_second", labels, flow.drops_per_s
    for vc in snapshot.vcs:
        labels = (vc.switch, vc.port, vc.vc)
        yield "fairlane_vc_queue_cells", labels, vc.waiting_cells
        yield "fairlane_vc_mcr_bits_per_second", labels, vc.mcr_bps
        yield "fairlane_vc_share_bits_per_second", labels, vc.w_bps
        yield "fairlane_vc_rate_bits_per_second", labels, vc.rate_bps
        yield "fairlane_vc_goodput_bits_per_second", labels, vc.goodput_bps
        yield "fairlane_vc_active", labels, None if vc.active is None else float(vc.active)
        yield "fairlane_vc_refused_frames_total", labels, vc.refused_packets
    yield "fairlane_loop_up", (), float(snapshot.loop is not None)
    if snapshot.loop is not None:
        yield "fairlane_loop_dry_run", (), float(any(row.details.get("dry_run") for row in snapshot.loop))
    for row in snapshot.loop or ():
        yield "fairlane_loop_primary", (row.switch,), float(row.connected and row.error is None)
        yield "fairlane_loop_flows", (row.switch,), row.flows
        yield "fairlane_loop_flows_missed_total", (row.switch,), row.flows_missed


def _port(snapshot: Snapshot, port: PortRow) -> Iterator[Sample]:
    place = (port.switch, port.port)
    yield "fairlane_queue_packets", place, port.waiting_packets
    yield "fairlane_queue_bytes", place, port.waiting_bytes
    yield "fairlane_queue_cells", place, port.waiting_cells
    yield "fairlane_queue_capacity_packets", place, port.capacity_packets
    yield "fairlane_queue_capacity_cells", place, port.capacity_cells
    yield "fairlane_port_rate_bits_per_second", place, port.rate_bps
    yield "fairlane_port_utilisation_ratio", place, port.utilisation
    yield "fairlane_port_sent_packets_total", place, port.sent_packets
    yield "fairlane_port_sent_bytes_total", place, port.sent_bytes
    for policy in port.policies:
        if policy.scheme == "qthresh":
            labels = (*place, policy.traffic_class)
            yield "fairlane_threshold_packets", labels, policy.qthresh_packets
            yield "fairlane_threshold_manual", labels, None if policy.mode is None else float(policy.mode == "manual")
    if port.managed and port.scheme is None:
        flows = sum(1 for flow in snapshot.flows if flow.switch == port.switch and flow.port == port.port)
        yield "fairlane_flows", place, flows
    for quantity, name in QUANTITIES.items():
        got: Any = (port.measured or {}).get(quantity)
        if isinstance(got, dict) and got.get("value") is not None:  # pyright: ignore[reportUnknownMemberType]
            measured: dict[str, Any] = got  # pyright: ignore[reportUnknownVariableType]
            short = quantity.rsplit("_", 1)[0] if quantity != "n_c" else "n_c"
            yield name, place, measured["value"]
            yield "fairlane_measurement_age_seconds", (*place, short), measured.get("age_s")
            yield "fairlane_measurement_uncertainty", (*place, short), measured.get("uncertainty")
