# SPDX-License-Identifier: Apache-2.0
"""What P4Runtime cannot say of a port: its shaper's rate now, its queue's capacity, what the queue and the line dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlane_controller.live.model import DropRow, PortRow
from fairlane_controller.live.view import Sample
from fairlane_controller.program.rates import RateBook

if TYPE_CHECKING:  # with it comes all of gNMI
    from fairlane_controller.gnmi.ports import PortInfo

_NOT_SENT = "transmit_failed"
"""It had left the queue."""
_LINK = ("port_down", _NOT_SENT)
"""Drops of the link."""


def with_queues(switch: str, sample: Sample, ports: Iterable[PortInfo], rates: RateBook) -> Sample:
    """The sample with what the traffic manager adds: its counters are of the line itself, so they replace the program's estimate."""
    rows = {row.port: row for row in sample.ports}
    drops = list(sample.drops)
    for queues in ports:
        row = rows.get(queues.port)
        if row is None:
            continue
        rows[queues.port] = _joined(row, queues, rates)
        for reason, packets in (*queues.drops.items(), (_NOT_SENT, queues.send_errors or 0)):
            by = "link" if reason in _LINK else "queue"
            per_s = rates.per_s((by, queues.port, reason), packets)
            if packets:
                in_queue = reason != _NOT_SENT
                drops.append(DropRow(switch, queues.port, reason, packets, per_s, by, in_queue=in_queue))
    return replace(sample, ports=tuple(rows[port] for port in sorted(rows)), drops=tuple(drops))


def _joined(row: PortRow, queues: PortInfo, rates: RateBook) -> PortRow:
    per_s = rates.per_s(("line_bytes", queues.port), queues.sent_bytes)
    tx_bps = row.tx_bps if queues.sent_bytes is None else None if per_s is None else 8 * per_s
    rate_bps = row.rate_bps if queues.rate_bps is None else queues.rate_bps or None
    managed = row.managed
    dropped = (row.dropped_packets or 0) + sum(queues.drops.values())
    return replace(
        row,
        interface=queues.interface or row.interface,
        rate_bps=rate_bps,
        tx_bps=tx_bps,
        utilisation=tx_bps / rate_bps if tx_bps is not None and rate_bps else None,
        waiting_packets=row.waiting_packets if managed and row.waiting_packets is not None else queues.waiting_packets,
        waiting_bytes=row.waiting_bytes if managed and row.waiting_bytes is not None else queues.waiting_bytes,
        capacity_packets=row.capacity_packets if managed else queues.queue_packets or row.capacity_packets,
        drops_per_s=rates.per_s(("dropped_packets", queues.port), dropped),
        dropped_packets=dropped,
        sent_packets=row.sent_packets if queues.sent_packets is None else queues.sent_packets,
        sent_bytes=row.sent_bytes if queues.sent_bytes is None else queues.sent_bytes,
    )
