# SPDX-License-Identifier: Apache-2.0
"""Every metric by its stable name: type, labels besides `topology`, unit and meaning. docs/metrics.md shows this table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairlane_controller.program.contract import Program
from fairlane_controller.program.rows import Column


@dataclass(frozen=True)
class Metric:
    """One metric."""

    name: str
    "As Prometheus stores it; a counter's ends in `_total`."
    labels: tuple[str, ...]
    "After `topology`, which all have."
    help: str

    @property
    def kind(self) -> str:
        """counter or gauge."""
        return "counter" if self.name.endswith("_total") else "gauge"


_PORT = ("switch", "port")

CORE_METRICS: tuple[Metric, ...] = (
    Metric("fairlane_up", ("switch",), "1 when the switch answers a read, else 0."),
    Metric("fairlane_switch_info", ("switch", "program", "target", "grpc"), "Always 1; what runs where."),
    Metric("fairlane_read_seconds", ("switch",), "How long the last reading of the switch took."),
    Metric("fairlane_queue_packets", _PORT, "Packets that wait at the port."),
    Metric("fairlane_queue_bytes", _PORT, "Bytes that wait at the port."),
    Metric("fairlane_queue_capacity_packets", _PORT, "Packets that may wait at the port."),
    Metric("fairlane_port_rate_bits_per_second", _PORT, "Rate of the port's shaper; no series when unlimited."),
    Metric("fairlane_port_utilisation_ratio", _PORT, "What was sent since the scrape before, of the rate (or of the measured BW)."),
    Metric("fairlane_port_sent_packets_total", _PORT, "Packets sent."),
    Metric("fairlane_port_sent_bytes_total", _PORT, "Bytes of frames sent."),
    Metric("fairlane_drops_total", (*_PORT, "reason", "by"), "Packets dropped, by reason and by whom: program, queue, link."),
    Metric("fairlane_measurement_age_seconds", (*_PORT, "quantity"), "Since the newest observation of the quantity."),
    Metric("fairlane_measurement_uncertainty", (*_PORT, "quantity"), "95 % half-width, in the quantity's unit."),
    Metric("fairlane_loop_up", (), "1 when a control loop runs for the topology."),
    Metric("fairlane_loop_primary", ("switch",), "1 when the loop is connected to the switch as its primary."),
    Metric("fairlane_loop_dry_run", (), "1 when the loop writes nothing."),
    Metric("fairlane_loop_flows", ("switch",), "Flow entries that the loop keeps."),
    Metric("fairlane_loop_flows_missed_total", ("switch",), "New flows that found no free slot."),
    Metric("fairlane_loop_writes_total", _PORT, "Thresholds and weights that the loop has written, by its event log."),
    Metric("fairlane_loop_events_total", ("event",), "Lines of the loop's event log: decisions, changes, faults."),
)  # fmt: skip


def metrics_of(programs: Iterable[Program]) -> tuple[Metric, ...]:
    """The core's and those of the programs' columns and kinds."""
    found = {metric.name: metric for metric in CORE_METRICS}
    for program in programs:
        for column in (*program.columns, *program.measured):
            _add(found, column, "port", _PORT)
        for kind in program.kinds:
            labels = (*_PORT, kind.label or kind.name)
            if not kind.brief:
                number = Metric(f"fairlane_{kind.many}", _PORT, f"Rows of the kind {kind.name} at the port.")
                found.setdefault(number.name, number)
            for column in kind.columns:
                _add(found, column, kind.name, labels)
    return tuple(found.values())


def _add(found: dict[str, Metric], column: Column, kind: str, labels: tuple[str, ...]) -> None:
    name = column.metric_name(kind)
    if name is not None:
        text = column.doc or column.title
        found.setdefault(
            name,
            Metric(
                name, labels, (text[:1] if text[1:2] == "_" else text[:1].upper()) + text[1:].removesuffix(".") + "."
            ),
        )
