# SPDX-License-Identifier: Apache-2.0
"""A switch that runs `qthresh.p4`: policies, limits, flows, counters and what waits, by one request and rarely a second."""

from __future__ import annotations

import time
from dataclasses import replace

from finsy import P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.live.batch import BatchReader, Counter, Reading, Register, action_args, table
from fairlane_controller.live.model import DropRow, FlowRow, PolicyRow, PortRow
from fairlane_controller.live.rates import RateBook
from fairlane_controller.live.routes import Routes
from fairlane_controller.live.view import Place, Sample, drop_cells, drop_rows, queue_drops
from fairlane_controller.program.reasons import reasons_of
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.flow_keeper import flow_of
from fairlane_controller.programs.qthresh.flows import PROTOCOLS, FlowKey
from fairlane_controller.programs.qthresh.policies import Policy, PortLimit, Scheme
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import COUNTER_ADMITTED, COUNTER_PASSED, TABLE_ROUTE

_REASONS = reasons_of(load_program("qthresh"))
REGISTER_FLOW = "flow_occupancy"
REGISTER_PORT = "port_occupancy"
REGISTER_PORT_BYTES = "port_occupancy_bytes"
_FLOW_TABLES = tuple(program.TABLE_FLOW.values())
_ROUTE_TABLES = tuple(TABLE_ROUTE.values())
ROUTES_AGE_S = 5.0
"Routes are read again after so long; what changes them is not this controller alone."


class QthreshView:
    """What is asked: the cells of the ports and slots that were there the last time; new ones by a second request."""

    def __init__(self) -> None:
        self._managed: set[int] = set()
        self._slots: set[int] = set()
        self._routes: Routes | None = None
        self._routes_until_s = 0.0

    async def read(self, client: SwitchClient, place: Place, rates: RateBook, batch: BatchReader) -> Sample:
        """One reading; raises FairlaneError."""
        tables = [table(program.TABLE_PORT_LIMIT), table(program.TABLE_POLICY)]
        tables += [table(name, counted=True, idle=True) for name in _FLOW_TABLES]
        reads_routes = self._routes is None or time.monotonic() >= self._routes_until_s
        if reads_routes:
            tables += [table(name) for name in _ROUTE_TABLES]
        ports, managed, slots = set(place.ports), set(self._managed), set(self._slots)
        got = await batch.read(client, tables, _counters(ports | managed, managed, slots), _registers(managed, slots))
        limits = {limit.port: limit for limit in map(PortLimit.from_entry, got.entries[program.TABLE_PORT_LIMIT])}
        entries = [entry for name in _FLOW_TABLES for entry in got.entries[name]]
        flows = [(entry, *flow_of(entry)) for entry in entries]
        self._managed, self._slots = set(limits), {slot for _, _, slot in flows if slot >= 0}
        new_ports, new_slots = self._managed - managed, self._slots - slots
        if new_ports or new_slots:
            await batch.read(
                client,
                [],
                _counters(new_ports, new_ports, new_slots),
                _registers(new_ports, new_slots),
                into=got,
            )
        if reads_routes:
            self._routes = Routes(entry for name in _ROUTE_TABLES for entry in got.entries[name])
            self._routes_until_s = time.monotonic() + ROUTES_AGE_S
        policies = [p for p in map(Policy.from_entry, got.entries[program.TABLE_POLICY]) if p is not None]
        drops = drop_rows(place.name, got, rates, _REASONS)
        has_registers = batch.has_registers
        numbers = sorted(set(place.ports) | self._managed)
        rows = [_port(place, n, limits.get(n), policies, got, rates, drops, has_registers) for n in numbers]
        flow_rows = self._flow_rows(place, flows, policies, got, rates, has_registers)
        if any(row.port is None for row in flow_rows):
            self._routes = None  # routes may have come since: they are read again the next time
        return Sample(tuple(rows), tuple(sorted(flow_rows, key=lambda row: row.slot)), (), drops)

    def _flow_rows(
        self,
        place: Place,
        flows: list[tuple[P4TableEntry, FlowKey, int]],
        policies: list[Policy],
        got: Reading,
        rates: RateBook,
        has_registers: bool,
    ) -> list[FlowRow]:
        routes = self._routes or Routes()
        by_port: dict[int, list[Policy]] = {}
        for policy in policies:
            by_port.setdefault(policy.port, []).append(policy)
        rows: list[FlowRow] = []
        for entry, key, slot in flows:
            port = routes.port(key.dst)
            at_port = by_port.get(port, []) if port is not None else []
            policy = at_port[0] if len(at_port) == 1 else None
            threshold, weight = _in_force(entry, policy)
            counted = entry.counter_data
            packets, octets = (counted.packet_count, counted.byte_count) if counted else (0, 0)
            dropped = got.packets(program.COUNTER_FLOW_DROPS, slot)
            dropped_bytes = got.bytes(program.COUNTER_FLOW_DROPS, slot)
            id_ = (str(key), slot)
            arrived_per_s = rates.per_s((*id_, "bytes"), octets)
            refused_per_s = rates.per_s((*id_, "dropped_bytes"), dropped_bytes)
            goodput_bps = None
            if arrived_per_s is not None and refused_per_s is not None:
                goodput_bps = 8 * max(0.0, arrived_per_s - refused_per_s)
            idle_ns = entry.time_since_last_hit
            rows.append(
                FlowRow(
                    switch=place.name,
                    port=port,
                    traffic_class=policy.traffic_class if policy else (0 if not at_port else None),
                    flow=str(key),
                    slot=slot,
                    protocol=PROTOCOLS.get(key.protocol, str(key.protocol)),
                    src=str(key.src),
                    src_port=key.src_port,
                    dst=str(key.dst),
                    dst_port=key.dst_port,
                    vid=key.vid,
                    waiting_packets=got.registers.get((REGISTER_FLOW, slot), 0) if has_registers else None,
                    qthresh_packets=threshold,
                    weight=weight,
                    packets=packets,
                    bytes=octets,
                    dropped_packets=dropped,
                    dropped_bytes=dropped_bytes,
                    offered_bps=None if arrived_per_s is None else 8 * arrived_per_s,
                    goodput_bps=goodput_bps,
                    drops_per_s=rates.per_s((*id_, "dropped"), dropped),
                    idle_s=None if idle_ns is None else idle_ns / 1e9,
                )
            )
        return rows


def _counters(ports: set[int], managed: set[int], slots: set[int]) -> list[Counter]:
    found: list[Counter] = drop_cells(sorted(ports), (n for n, one in _REASONS.items() if not one.in_queue))
    found += drop_cells(sorted(managed), (n for n, one in _REASONS.items() if one.in_queue))
    found += [(COUNTER_PASSED, port) for port in sorted(ports)]
    found += [
        (COUNTER_ADMITTED, program.admitted_index(port, c)) for port in sorted(managed) for c in range(program.CLASSES)
    ]
    found += [(program.COUNTER_COLLISIONS, port) for port in sorted(managed)]
    return found + [(program.COUNTER_FLOW_DROPS, slot) for slot in sorted(slots)]


def _registers(managed: set[int], slots: set[int]) -> list[Register]:
    found = [(name, port) for port in sorted(managed) for name in (REGISTER_PORT, REGISTER_PORT_BYTES)]
    return found + [(REGISTER_FLOW, slot) for slot in sorted(slots)]


def _in_force(entry: P4TableEntry, policy: Policy | None) -> tuple[int | None, float | None]:
    """A flow's threshold in packets and its weight, as the data plane multiplies them."""
    _, args = action_args(entry)
    own = int(args.get("weight", 0) or 0)
    if own:
        fixed = own
    elif policy is not None:
        fixed = program.encode_weight(policy.weight)
    else:
        return None, None
    if policy is None or policy.scheme is not Scheme.QTHRESH or policy.qthresh_packets is None:
        return None, program.decode_weight(fixed)
    return policy.qthresh_packets * fixed >> 8, program.decode_weight(fixed)


def _port(
    place: Place,
    port: int,
    limit: PortLimit | None,
    policies: list[Policy],
    got: Reading,
    rates: RateBook,
    drops: tuple[DropRow, ...],
    has_registers: bool,
) -> PortRow:
    cells = [(COUNTER_PASSED, port)]
    if limit is not None:
        cells += [(COUNTER_ADMITTED, program.admitted_index(port, c)) for c in range(program.CLASSES)]
    packets, octets = (sum(read(*cell) for cell in cells) for read in (got.packets, got.bytes))
    waiting = waiting_bytes = None
    if limit is not None and has_registers:
        waiting = got.registers.get((REGISTER_PORT, port), 0)
        waiting_bytes = got.registers.get((REGISTER_PORT_BYTES, port), 0)
    # What was admitted and does not wait any more has left.
    per_s = rates.per_s(("sent_bytes", port), octets - (waiting_bytes or 0))
    tx_bps = None if per_s is None else 8 * per_s
    row = place.row(port)
    dropped, drops_per_s = queue_drops(place.name, port, drops, _REASONS)
    return replace(
        row,
        managed=limit is not None,
        tx_bps=tx_bps,
        utilisation=tx_bps / row.rate_bps if tx_bps is not None and row.rate_bps else None,
        waiting_packets=waiting,
        waiting_bytes=waiting_bytes,
        capacity_packets=limit.max_packets if limit else row.capacity_packets,
        drops_per_s=drops_per_s,
        dropped_packets=dropped,
        sent_packets=packets - (waiting or 0),
        sent_bytes=octets - (waiting_bytes or 0),
        collisions=got.packets(program.COUNTER_COLLISIONS, port) if limit else None,
        policies=tuple(_policy(place, p) for p in sorted(policies, key=lambda p: p.key) if p.port == port),
    )


def _policy(place: Place, policy: Policy) -> PolicyRow:
    qthresh, settings = policy.qthresh_packets, None
    in_force = policy.scheme is Scheme.QTHRESH and qthresh is not None
    if place.loop_state is not None:
        settings = place.loop_state.policy(place.name, policy.port, policy.traffic_class)
    effective = None
    if in_force and qthresh is not None:
        try:
            effective = qthresh * program.encode_weight(policy.weight) >> 8
        except FairlaneError:
            effective = None
    weight = settings.weight if settings is not None and not in_force else policy.weight
    return PolicyRow(
        policy.traffic_class,
        policy.scheme.value,
        qthresh,
        weight,
        effective,
        settings.mode.value if settings is not None and in_force else None,
        settings.k if settings is not None else None,
    )
