# SPDX-License-Identifier: Apache-2.0
"""A switch that runs `gfr.p4`: QT of its ports; share, Q_i, r_i and verdicts of its VCs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from finsy import P4TableEntry

from fairlane_controller.live.batch import BatchReader, Counter, Reading, Register, action_args, table
from fairlane_controller.live.model import PortRow, VcRow
from fairlane_controller.live.rates import RateBook
from fairlane_controller.live.view import Place, Sample, drop_cells, drop_rows
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr import names as program
from fairlane_controller.programs.gfr.store import GFR_DOCUMENT, GfrState, GfrStore
from fairlane_controller.state.store import Stamp, Store
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_ADMITTED, COUNTER_PASSED, PACKET_REASONS


class GfrView:
    """What is asked: the cells of the ports and slots that were there the last time; new ones by a second request."""

    def __init__(self) -> None:
        self._managed: set[int] = set()
        self._slots: set[int] = set()
        self._in_force = GfrState()
        self._store: Store | None = None
        self._stamp: Stamp | None = None

    async def read(self, client: SwitchClient, place: Place, rates: RateBook, batch: BatchReader) -> Sample:
        """One reading; raises FairlaneError."""
        tables = [table(program.TABLE_PORT_SCHEME), table(program.TABLE_VC_SHARE, counted=True)]
        ports, managed, slots = set(place.ports), set(self._managed), set(self._slots)
        got = await batch.read(client, tables, _counters(ports | managed, slots), _registers(managed, slots))
        schemes = {int(entry["egress_port"]): entry for entry in got.entries[program.TABLE_PORT_SCHEME]}
        shares = [entry for entry in got.entries[program.TABLE_VC_SHARE] if _slot(entry) is not None]
        self._managed = set(schemes)
        self._slots = {_slot(entry) or 0 for entry in shares} | {program.NO_VC_SLOT + port for port in schemes}
        new_ports, new_slots = self._managed - managed, self._slots - slots
        if new_ports or new_slots:
            cells = _counters(new_ports - ports, new_slots), _registers(new_ports, new_slots)
            await batch.read(client, [], *cells, into=got)
        self._read_configuration(place.folder)
        has_registers = batch.has_registers
        vcs = [_vc(place.name, entry, self._in_force, got, rates, has_registers) for entry in shares]
        drops = drop_rows(place.name, got, rates, reasons_of(load_program("gfr")))
        numbers = sorted(set(place.ports) | self._managed)
        rows = [_port(place, n, schemes.get(n), vcs, got, rates, has_registers) for n in numbers]
        return Sample(tuple(rows), (), tuple(sorted(vcs, key=lambda vc: (vc.port, vc.slot or 0))), drops)

    def _read_configuration(self, folder: Path | None) -> None:
        """The names of the VCs and their MCR, when it has changed. Raises BAD_FILE."""
        if folder is None:
            return
        self._store = self._store or Store(folder)
        stamp = self._store.stamp(GFR_DOCUMENT)
        if stamp != self._stamp:
            self._in_force, self._stamp = GfrStore(folder).state, stamp


def _slot(entry: P4TableEntry) -> int | None:
    name, args = action_args(entry)
    return int(args["slot"]) if name == program.ACTION_SET_SHARE else None


def _counters(ports: set[int], slots: set[int]) -> list[Counter]:
    found: list[Counter] = drop_cells(sorted(ports), PACKET_REASONS)
    found += [(name, port) for name in (COUNTER_ADMITTED, COUNTER_PASSED) for port in sorted(ports)]
    return found + [
        (program.COUNTER_VERDICTS, program.verdict_index(slot, clp, verdict))
        for slot in sorted(slots)
        for clp in (0, 1)
        for verdict in program.Verdict
    ]


def _registers(managed: set[int], slots: set[int]) -> list[Register]:
    found = [(program.REGISTER_PORT_CELLS, port) for port in sorted(managed)]
    return found + [(n, slot) for slot in sorted(slots) for n in (program.REGISTER_VC_CELLS, program.REGISTER_VC_RATE)]


def _verdicts(slot: int, got: Reading) -> tuple[Mapping[str, Mapping[str, int]], int, int, int]:
    """Frames by verdict and CLP; accepted, refused frames; accepted bytes."""
    said: dict[str, dict[str, int]] = {}
    accepted = refused = accepted_bytes = 0
    for clp in (0, 1):
        for verdict in program.Verdict:
            index = program.verdict_index(slot, clp, verdict)
            frames = got.packets(program.COUNTER_VERDICTS, index)
            if not frames:
                continue
            said.setdefault(verdict.name.lower(), {})[f"clp{clp}"] = frames
            if verdict.accepted:
                accepted += frames
                accepted_bytes += got.bytes(program.COUNTER_VERDICTS, index)
            else:
                refused += frames
    return said, accepted, refused, accepted_bytes


def _vc(
    switch: str, entry: P4TableEntry, in_force: GfrState, got: Reading, rates: RateBook, has_registers: bool
) -> VcRow:
    _, args = action_args(entry)
    port, number, slot = int(entry["egress_port"]), int(entry["vc"]), int(args["slot"])
    name = next((vc for vc, given in in_force.allocation.vc_ids.items() if given == number), f"id {number}")
    configured = in_force.config.vc(name)
    said, accepted, refused, accepted_bytes = _verdicts(slot, got)
    arrived_packets, arrived_bytes = 0, 0
    if entry.counter_data is not None:
        arrived_packets, arrived_bytes = entry.counter_data.packet_count, entry.counter_data.byte_count
    arrived_per_s = rates.per_s(("vc", slot, "arrived"), arrived_bytes)
    accepted_per_s = rates.per_s(("vc", slot, "accepted"), accepted_bytes)
    return VcRow(
        switch,
        port,
        name,
        slot=slot,
        mcr_bps=float(configured.mcr) if configured is not None else None,
        w_bps=float(args["w"]),
        rate_bps=got.registers.get((program.REGISTER_VC_RATE, slot), 0) / program.RATE_ONE if has_registers else None,
        waiting_cells=got.registers.get((program.REGISTER_VC_CELLS, slot), 0) if has_registers else None,
        arrived_packets=arrived_packets,
        accepted_packets=accepted,
        refused_packets=refused,
        offered_bps=None if arrived_per_s is None else 8 * arrived_per_s,
        goodput_bps=None if accepted_per_s is None else 8 * accepted_per_s,
        drops_per_s=rates.per_s(("vc", slot, "refused"), refused),
        verdicts=said,
    )


def _port(
    place: Place,
    port: int,
    entry: P4TableEntry | None,
    vcs: list[VcRow],
    got: Reading,
    rates: RateBook,
    has_registers: bool,
) -> PortRow:
    packets, octets = (read(COUNTER_ADMITTED, port) + read(COUNTER_PASSED, port) for read in (got.packets, got.bytes))
    per_s = rates.per_s(("sent_bytes", port), octets)
    row = place.row(port)
    tx_bps = None if per_s is None else 8 * per_s
    plain = replace(
        row,
        tx_bps=tx_bps,
        utilisation=tx_bps / row.rate_bps if tx_bps is not None and row.rate_bps else None,
        sent_packets=packets,
        sent_bytes=octets,
    )
    if entry is None:
        return plain
    scheme, args = action_args(entry)
    mine = [vc for vc in vcs if vc.port == port]
    outside = _verdicts(program.NO_VC_SLOT + port, got)[2]
    dropped = sum(vc.refused_packets for vc in mine) + outside
    return replace(
        plain,
        managed=True,
        waiting_cells=got.registers.get((program.REGISTER_PORT_CELLS, port), 0) if has_registers else None,
        capacity_cells=args.get("qmax"),
        scheme=scheme,
        lbo_cells=args.get("lbo"),
        hbo_cells=args.get("hbo"),
        active_vcs=args.get("n"),
        dropped_packets=dropped,
        drops_per_s=rates.per_s(("refused", port), dropped),
    )
