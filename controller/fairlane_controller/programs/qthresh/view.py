# SPDX-License-Identifier: Apache-2.0
"""What `qthresh.p4` shows: thresholds of classes, flows, what waits, what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import chain
from typing import Any

from fairlane import AqmProgram, Column, Kind, Reading, Row
from fairlane.measure import BW, TAU
from fairlane.switch import COUNTER_ADMITTED, COUNTER_PASSED
from finsy import P4CounterData, P4TableEntry

from . import names
from .flows import parse_flow
from .names import action_of, encode_weight
from .policies import InForce, LoopStore, Policy
from .settings import PolicySettings

COLUMNS = (
    AqmProgram.marks,
    Column("collisions", "collisions", "packets", "packets whose flow shared a slot", "collisions", wide=True),
)  # fmt: skip
MEASURED = (
    BW,
    Column("t_res_s", "T_res", "s", "T_res: from a packet's departure to the return of its ACK.", metric="fairlane_measured_t_res_seconds"),
    TAU,
    Column("t_ack_s", "T_ACK", "s", "T_ACK: what of T_res is not the link.", metric="fairlane_measured_t_ack_seconds", source="ACKs and probes", wide=True),
    Column("l_d_bytes", "L_D", "bytes", "L_D: mean frame in the queue.", metric="fairlane_measured_frame_bytes", source="reports"),
    Column("n_c", "N_C", doc="N_C: flows that were active.", metric="fairlane_measured_flows", source="reports", value_type=float),
)  # fmt: skip
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
        Column("traffic_class", "class", value_type=int, wide=True),
        Column("lanes", "lanes", doc="queues that flows have for themselves, with the scheme lanes", value_type=int, wide=True),
    ),
    plural="policies",
    brief=True,
    label="class",
)  # fmt: skip
FLOW = Kind(
    "flow",
    "flows (waiting, Qthresh: packets; goodput: bits of frames)",
    (
        Column("waiting_packets", "waiting", "packets", "Packets of the flow that wait; the busiest flows only.", plot="queue"),
        Column("qthresh_packets", "Qthresh", "packets", "What the flow may have waiting; the busiest flows only.", plot="control", metric="fairlane_flow_threshold_packets"),
        Column("weight", "weight", doc="in force: its own or tuned one, else its class's", value_type=float, metric=None),
        Column("goodput_bps", "goodput", "bit/s", "Frames admitted since the scrape before; the busiest flows only.", plot="goodput"),
        Column("dropped_packets", "dropped", "packets", total=True, metric=None),
        Column("drops_per_s", "drops/s", "/s", "Packets refused since the scrape before; the busiest flows only.", plot="drops"),
        Column("slot", "slot", value_type=int, wide=True),
        Column("traffic_class", "class", value_type=int, wide=True),
        Column("src", "source", wide=True),
        Column("src_port", "source port", value_type=int, wide=True),
        Column("dst", "destination", wide=True),
        Column("dst_port", "destination port", value_type=int, wide=True),
        Column("packets", "packets", "packets", "arrived since the entry was made", total=True, wide=True),
    ),
)  # fmt: skip
KINDS = (POLICY, FLOW)


async def read_rows(reading: Reading) -> list[Row]:
    """Managed ports, their classes, and all flows."""
    tables = await asyncio.gather(
        reading.table(names.TABLE_PORT_LIMIT),
        reading.table(names.TABLE_POLICY),
        *(reading.table(name, counters=True) for name in names.TABLE_FLOW.values()),
    )
    found = InForce.of(chain(*tables[:2]))
    ports, flows = await asyncio.gather(_read_ports(reading, found), _read_flows(reading, found, chain(*tables[2:])))
    store = reading.memory.get("store")
    if store is None and reading.folder is not None:
        store = reading.memory["store"] = LoopStore(reading.folder)
    classes = [_class_row(reading.switch, policy, store) for _, policy in sorted(found.policies.items())]
    return [*ports, *classes, *flows]


async def _read_ports(reading: Reading, found: InForce) -> list[Row]:
    ports = sorted(found.limits)
    cells = {port: [names.admitted_index(port, one) for one in range(names.CLASSES)] for port in ports}
    passed, admitted, waiting, waiting_bytes = await asyncio.gather(
        reading.counters(COUNTER_PASSED, ports),
        reading.counters(COUNTER_ADMITTED, chain.from_iterable(cells.values())),
        reading.registers(names.REGISTER_PORT, ports),
        reading.registers(names.REGISTER_PORT_BYTES, ports),
    )
    rows, settings = list[Row](), found.ports
    for port in ports:
        counters = [passed[port], *(admitted[index] for index in cells[port])]
        packets, size = (None if one is None else one[port] for one in (waiting, waiting_bytes))
        values = {
            "capacity_packets": settings[port].limit_packets,
            "waiting_packets": packets,
            "waiting_bytes": size,
            # What was admitted and does not wait any more has left.
            "sent_packets": sum(one.packet_count for one in counters) - (packets or 0),
            "sent_bytes": sum(one.byte_count for one in counters) - (size or 0),
        }
        rows.append(Row(port, values))
    return rows


def _class_row(name: str, policy: Policy, store: LoopStore | None) -> Row:
    settings = store.policy(name, *policy.key) if store is not None else PolicySettings()
    values = {
        **policy.values,
        "mode": settings.mode if store is not None and policy.is_limited else None,
        "k": settings.k,
    }
    return Row(policy.port, values, "policy", str(policy.traffic_class))


async def _read_flows(reading: Reading, found: InForce, entries: Iterable[P4TableEntry]) -> list[Row]:
    flows = sorted(((*parse_flow(entry), entry) for entry in entries), key=lambda one: one[1])
    slots = [slot for _, slot, _, _ in flows if slot >= 0]
    drops, waiting = await asyncio.gather(
        reading.counters(names.COUNTER_FLOW_DROPS, slots), reading.registers(names.REGISTER_FLOW, slots)
    )
    rows: list[Row] = []
    for key, slot, flow, entry in flows:
        name, (port, traffic_class) = str(key), flow.place or (None, None)
        policy = found.policy(*flow.place) if flow.place else None
        weight = action_of(entry)[1].get("weight") or (encode_weight(policy.weight) if policy is not None else 0)
        arrived, dropped = entry.counter_data or P4CounterData(), drops.get(slot) or P4CounterData()
        offered, refused, drops_per_s = (
            reading.per_s((name, slot, place), value)
            for place, value in enumerate((arrived.byte_count, dropped.byte_count, dropped.packet_count))
        )
        src, dst = key.hosts
        values: dict[str, Any] = {
            "packets": arrived.packet_count,
            "dropped_packets": dropped.packet_count,
            "goodput_bps": None if offered is None or refused is None else 8 * max(0.0, offered - refused),
            "drops_per_s": drops_per_s,
            "src": src,
            "src_port": key.src_port,
            "dst": dst,
            "dst_port": key.dst_port,
            "traffic_class": traffic_class,
            "slot": slot,
            "waiting_packets": waiting.get(slot) if waiting is not None else None,
            "weight": weight / names.WEIGHT_ONE if weight else None,
        }
        if policy is not None and policy.is_limited:
            values["qthresh_packets"] = policy.qthresh_packets * weight >> 8  # as the data plane multiplies it
        rows.append(Row(port, values, "flow", name))
    return rows
