# SPDX-License-Identifier: Apache-2.0
"""A switch of another program: what its counters `passed` and `drops` say of the run state's ports, where it has them."""

from __future__ import annotations

from dataclasses import replace

from fairlane_controller.live.batch import BatchReader, Counter
from fairlane_controller.live.model import PortRow
from fairlane_controller.live.rates import RateBook
from fairlane_controller.live.view import Place, Sample, drop_cells, drop_rows
from fairlane_controller.program.contract import Program
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_DROPS, COUNTER_PASSED


class PlainView:
    """A program that has no view of its own, or that nobody knows (None)."""

    def __init__(self, program: Program | None = None) -> None:
        self._reasons = reasons_of(program)

    async def read(self, client: SwitchClient, place: Place, rates: RateBook, batch: BatchReader) -> Sample:
        """One reading; raises FairlaneError."""
        there = {counter.alias for counter in client.switch.p4info.counters}
        ports = sorted(place.ports)
        cells: list[Counter] = []
        if COUNTER_DROPS in there:
            cells += drop_cells(ports, self._reasons)
        if COUNTER_PASSED in there:
            cells += [(COUNTER_PASSED, port) for port in ports]
        got = await batch.read(client, [], cells)
        rows: list[PortRow] = []
        for port in ports:
            row = place.row(port)
            if COUNTER_PASSED in there:
                octets = got.bytes(COUNTER_PASSED, port)
                per_s = rates.per_s(("sent_bytes", port), octets)
                tx_bps = None if per_s is None else 8 * per_s
                row = replace(
                    row,
                    tx_bps=tx_bps,
                    utilisation=tx_bps / row.rate_bps if tx_bps is not None and row.rate_bps else None,
                    sent_packets=got.packets(COUNTER_PASSED, port),
                    sent_bytes=octets,
                )
            rows.append(row)
        return Sample(tuple(rows), (), (), drop_rows(place.name, got, rates, self._reasons))
