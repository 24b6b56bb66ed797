# SPDX-License-Identifier: Apache-2.0
"""What `qthresh.p4` shows: thresholds of classes, flows, what waits, what was sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from fairlane import Column, FairlaneError, Kind, P4TableAction, P4TableEntry, Reading, Row, SwitchState
from fairlane.switch import ACTION_FORWARD, COUNTER_ADMITTED, COUNTER_PASSED, TABLE_ROUTE
from finsy import P4CounterData

from . import names
from .flows import PROTOCOLS, FlowKey, parse_flow
from .policies import Policy, PortLimit, Scheme, why_no_lanes
from .store import LoopStore, PolicyState

REGISTER_FLOW = "flow_occupancy"
REGISTER_PORT = "port_occupancy"
REGISTER_PORT_BYTES = "port_occupancy_bytes"
ROUTES_AGE_S = 5.0
"""Routes are read again after so long; what changes them is not this controller alone."""
WIDTHS = {4: 32, 6: 128}
"Bits of an address."

COLUMNS = (
    Column("qthresh_packets", "Qthresh", "packets", "threshold of the port's first class", metric=None),
    Column("scheme", "scheme", doc="of the port's first class"),
    Column("mode", "mode", doc="auto: the loop decides; manual: a person"),
    Column("traffic_class", "class", doc="the port's first class", value_type=int, wide=True),
    Column("weight", "weight", doc="of the port's first class", value_type=float, wide=True),
    Column("aqm_marked", "marked", "packets", "packets marked CE by queue management", counter="marked"),
    Column("collisions", "collisions", "packets", "packets whose flow shared a slot", names.COUNTER_COLLISIONS, wide=True),
)  # fmt: skip
MEASURED = (
    Column("bw_bps", "BW", "bit/s", "BW: drain rate while packets waited.", metric="fairlane_measured_bandwidth_bits_per_second", source="reports"),
    Column("t_res_s", "T_res", "s", "T_res: from a packet's departure to the return of its ACK.", metric="fairlane_measured_t_res_seconds"),
    Column("tau_s", "τ", "s", "Propagation delay of the link behind the port, by probes.", metric="fairlane_measured_tau_seconds", source="probes", wide=True),
    Column("t_ack_s", "T_ACK", "s", "T_ACK: what of T_res is not the link.", metric="fairlane_measured_t_ack_seconds", source="ACKs and probes", wide=True),
    Column("l_d_bytes", "L_D", "bytes", "L_D: mean frame in the queue.", metric="fairlane_measured_frame_bytes", source="reports"),
    Column("n_c", "N_C", doc="N_C: flows that were active.", metric="fairlane_measured_flows", source="reports", value_type=float),
)  # fmt: skip
MEASURING_NEEDS = "BW, L_D and N_C need packets that wait at the port, T_res ACKs that come back through the switch, τ a switch of ours at the other end"
SOURCES = {"acks": "ACKs", "probes": "probes and ACKs", "probes_alone": "probes"}
"""What `t_res_source` means to people."""
POLICY = Kind(
    "policy",
    "classes",
    (
        Column("scheme", "scheme"),
        Column("qthresh_packets", "Qthresh", "packets", "Qthresh in force; no series with drop-tail.", plot="control", metric="fairlane_threshold_packets"),
        Column("mode", "mode", doc="auto or manual"),
        Column("k", "k", doc="constant of eq. (9)", value_type=float, metric=None),
        Column("weight", "weight", value_type=float, metric=None),
        Column("effective_packets", "effective", "packets", "(Qthresh · weight) >> 8: a flow without a weight of its own", wide=True),
        Column("manual", "manual", doc="1 when a person set the threshold, 0 when the loop decides.", value_type=bool, wide=True, metric="fairlane_threshold_manual"),
        Column("traffic_class", "class", value_type=int, wide=True),
        Column("lanes", "lanes", doc="queues that flows have for themselves, with the scheme lanes", value_type=int, wide=True),
        Column("why_no_lanes", "why no lanes", doc="why a port with the scheme lanes has one queue", wide=True),
    ),
    plural="policies",
    brief=True,
    label="class",
)  # fmt: skip
FLOW = Kind(
    "flow",
    "flows (packets that wait, and may; frames' bits)",
    (
        Column("waiting_packets", "waiting", "packets", "Packets of the flow that wait; the busiest flows only.", plot="queue"),
        Column("qthresh_packets", "Qthresh", "packets", "What the flow may have waiting; the busiest flows only.", plot="control", metric="fairlane_flow_threshold_packets"),
        Column("weight", "weight", doc="in force: its own or tuned one, else its class's", value_type=float, metric=None),
        Column("offered_bps", "offered", "bit/s", "frames that arrived for the queue", metric=None),
        Column("goodput_bps", "goodput", "bit/s", "Frames admitted since the scrape before; the busiest flows only.", plot="goodput"),
        Column("dropped_packets", "dropped", "packets", total=True, metric=None),
        Column("drops_per_s", "drops/s", "/s", "Packets refused since the scrape before; the busiest flows only.", plot="drops"),
        Column("idle_s", "idle", "s", "since its last packet", metric=None),
        Column("slot", "slot", value_type=int, wide=True),
        Column("traffic_class", "class", doc="None where its port has several: the entry does not say", value_type=int, wide=True),
        Column("protocol", "protocol", wide=True),
        Column("src", "source", wide=True),
        Column("src_port", "source port", value_type=int, wide=True),
        Column("dst", "destination", wide=True),
        Column("dst_port", "destination port", value_type=int, wide=True),
        Column("vid", "VLAN", doc="outer tag; 0: none", value_type=int, wide=True),
        Column("packets", "packets", "packets", "arrived since the entry was made", total=True, wide=True),
        Column("bytes", "bytes", "bytes", total=True, wide=True),
        Column("dropped_bytes", "dropped bytes", "bytes", total=True, wide=True),
    ),
)  # fmt: skip
KINDS = (POLICY, FLOW)


async def read_rows(reading: Reading, switch: SwitchState | None) -> list[Row]:
    """Managed ports, their classes, and all flows."""
    table, found, flows, routes = await asyncio.gather(
        reading.table(names.TABLE_PORT_LIMIT),
        reading.table(names.TABLE_POLICY),
        _read_flow_entries(reading),
        _read_routes(reading, ROUTES_AGE_S),
    )
    limits = sorted(map(PortLimit.from_entry, table), key=lambda limit: limit.port)
    policies = sorted((p for p in map(Policy.from_entry, found) if p is not None), key=lambda policy: policy.key)
    ports, of_flows = await asyncio.gather(_read_ports(reading, limits), _read_flows(reading, policies, flows, routes))
    store = _store_of(reading)
    classes = [_class_row(reading.switch, policy, store, switch) for policy in policies]
    for row in classes:
        if row.port in ports:
            shown = {column.name: row.values.get(column.name) for column in COLUMNS if column.name in row.values}
            ports[row.port] = {**shown, **ports[row.port]}
    return [*(Row(port, values) for port, values in ports.items()), *classes, *of_flows]


def _store_of(reading: Reading) -> LoopStore | None:
    """Mode, weight and k of each class; None without a run state. Raises BAD_FILE."""
    if reading.folder is not None and "store" not in reading.memory:
        reading.memory["store"] = LoopStore(reading.folder)
    return reading.memory.get("store")


async def _read_ports(reading: Reading, limits: list[PortLimit]) -> dict[int | None, dict[str, Any]]:
    ports = [limit.port for limit in limits]
    admitted_at = {port: [names.admitted_index(port, one) for one in range(names.CLASSES)] for port in ports}
    passed, admitted, waiting, waiting_bytes = await asyncio.gather(
        reading.counters(COUNTER_PASSED, ports),
        reading.counters(COUNTER_ADMITTED, chain.from_iterable(admitted_at.values())),
        reading.registers(REGISTER_PORT, ports),
        reading.registers(REGISTER_PORT_BYTES, ports),
    )
    found: dict[int | None, dict[str, Any]] = {}
    for limit in limits:
        port = limit.port
        cells = [passed[port], *(admitted[index] for index in admitted_at[port])]
        packets = waiting[port] if waiting is not None else None
        octets = waiting_bytes[port] if waiting_bytes is not None else None
        # What was admitted and does not wait any more has left.
        found[port] = {
            "capacity_packets": limit.max_packets,
            "waiting_packets": packets,
            "waiting_bytes": octets,
            "sent_packets": sum(cell.packet_count for cell in cells) - (packets or 0),
            "sent_bytes": sum(cell.byte_count for cell in cells) - (octets or 0),
        }
    return found


def _class_row(name: str, policy: Policy, store: LoopStore | None, switch: SwitchState | None) -> Row:
    qthresh = policy.qthresh_packets if policy.is_limited else None
    settings = store.policy(name, policy.port, policy.traffic_class) if store is not None else PolicyState()
    shares_queue = policy.scheme is Scheme.LANES and not policy.lanes.own
    effective = None
    if qthresh is not None:
        with contextlib.suppress(FairlaneError):  # others may have written any weight
            effective = qthresh * names.encode_weight(policy.weight) >> 8
    mode = settings.mode.value if store is not None and qthresh is not None else None
    values = {
        "traffic_class": policy.traffic_class,
        "scheme": policy.scheme.value,
        "qthresh_packets": qthresh,
        "weight": settings.weight if qthresh is None else policy.weight,
        "effective_packets": effective,
        "mode": mode,
        "manual": None if mode is None else mode == "manual",
        "k": settings.k,
        "lanes": policy.lanes.own if policy.scheme is Scheme.LANES else None,
        "why_no_lanes": why_no_lanes(switch.port(policy.port) if switch else None) if shares_queue else None,
    }
    return Row(policy.port, values, "policy", str(policy.traffic_class))


class Routes:
    """Which port a flow leaves by: the longest prefix of the switch's own routes. Answers are remembered."""

    def __init__(self, entries: Iterable[P4TableEntry] = ()) -> None:
        self._routes = sorted(filter(None, map(_route, entries)), reverse=True)
        self.port = lru_cache(65_536)(self._port)

    def _port(self, version: int, dst: int) -> int | None:
        """The egress port towards an address; None where no route forwards it."""
        found = (one for one in self._routes if one[1] == version and dst >> WIDTHS[version] - one[0] == one[2])
        return next((port for _, _, _, port in found), None)


def _route(entry: P4TableEntry) -> tuple[int, int, int, int] | None:
    """Length of the prefix, IP version, prefix and port of an entry that forwards. finsy's prefixes are (value, length); a bare number is a whole address."""
    action, match = entry.action, dict(entry.match or {})
    if not isinstance(action, P4TableAction) or action.name != ACTION_FORWARD or len(match) != 1:
        return None
    version = 4 if entry.table_id == TABLE_ROUTE[4] else 6
    prefix: tuple[int, int] | int = next(iter(match.values()))
    value, bits = prefix if isinstance(prefix, tuple) else (prefix, WIDTHS[version])
    return bits, version, value >> WIDTHS[version] - bits, int(action.args["port"])


async def _read_routes(reading: Reading, max_age_s: float) -> Routes:
    """The routes, made anew when other entries were read."""
    entries = await asyncio.gather(*(reading.table(name, max_age_s=max_age_s) for name in TABLE_ROUTE.values()))
    before, routes = reading.memory.get("routes", ((), None))
    if routes is None or any(a is not b for a, b in zip(entries, before, strict=True)):
        routes = Routes(chain.from_iterable(entries))
        reading.memory["routes"] = entries, routes
    return routes


_FlowEntries = list[tuple[P4TableEntry, FlowKey, int]]
"""With their keys and slots."""


async def _read_flow_entries(reading: Reading) -> _FlowEntries:
    """By slot."""
    tables = await asyncio.gather(
        *(reading.table(name, counters=True, idle=True) for name in names.TABLE_FLOW.values())
    )
    return sorted(((entry, *parse_flow(entry)[:2]) for table in tables for entry in table), key=lambda flow: flow[2])


async def _read_flows(reading: Reading, policies: Iterable[Policy], flows: _FlowEntries, routes: Routes) -> list[Row]:
    slots = [slot for _, _, slot in flows if slot >= 0]
    if any(routes.port(key.version, key.dst) is None for _, key, _ in flows):
        routes = await _read_routes(reading, 0.0)  # they may have come since
    drops, waiting = await asyncio.gather(
        reading.counters(names.COUNTER_FLOW_DROPS, slots), reading.registers(REGISTER_FLOW, slots)
    )
    by_port: dict[int | None, list[Policy]] = {}
    for policy in policies:
        by_port.setdefault(policy.port, []).append(policy)
    rows: list[Row] = []
    for entry, key, slot in flows:
        port = routes.port(key.version, key.dst)
        src, dst = key.hosts
        at_port = by_port.get(port, []) if port is not None else []
        policy = at_port[0] if len(at_port) == 1 else None
        values: dict[str, Any] = {
            "traffic_class": policy.traffic_class if policy else None if at_port else 0,
            "slot": slot,
            "protocol": PROTOCOLS.get(key.protocol, str(key.protocol)),
            "src": src,
            "src_port": key.src_port,
            "dst": dst,
            "dst_port": key.dst_port,
            "vid": key.vid,
            "waiting_packets": waiting.get(slot) if waiting is not None else None,
            **_threshold_of(entry, policy),
            **_counts(reading, str(key), slot, entry, drops.get(slot) or P4CounterData()),
        }
        rows.append(Row(port, values, "flow", str(key)))
    return rows


def _counts(reading: Reading, flow: str, slot: int, entry: P4TableEntry, dropped: P4CounterData) -> Mapping[str, Any]:
    """Counters of a flow and their rates."""
    arrived, name = entry.counter_data or P4CounterData(), (flow, slot)
    arrived_per_s = reading.per_s((*name, "bytes"), arrived.byte_count)
    refused_per_s = reading.per_s((*name, "dropped_bytes"), dropped.byte_count)
    goodput_bps, idle_ns = None, entry.time_since_last_hit
    if arrived_per_s is not None and refused_per_s is not None:
        goodput_bps = 8 * max(0.0, arrived_per_s - refused_per_s)
    return {
        "packets": arrived.packet_count,
        "bytes": arrived.byte_count,
        "dropped_packets": dropped.packet_count,
        "dropped_bytes": dropped.byte_count,
        "offered_bps": None if arrived_per_s is None else 8 * arrived_per_s,
        "goodput_bps": goodput_bps,
        "drops_per_s": reading.per_s((*name, "dropped"), dropped.packet_count),
        "idle_s": None if idle_ns is None else idle_ns / 1e9,
    }


def _threshold_of(entry: P4TableEntry, policy: Policy | None) -> dict[str, float | None]:
    """A flow's threshold in packets and its weight, as the data plane multiplies them."""
    action = entry.action
    own = int(action.args.get("weight", 0) or 0) if isinstance(action, P4TableAction) else 0
    fixed = own or (names.encode_weight(policy.weight) if policy is not None else 0)
    qthresh = policy.qthresh_packets if policy is not None and policy.is_limited else None
    return {
        "qthresh_packets": qthresh * fixed >> 8 if fixed and qthresh is not None else None,
        "weight": names.decode_weight(fixed) if fixed else None,
    }
