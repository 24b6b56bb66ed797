# SPDX-License-Identifier: Apache-2.0
"""Flows of `qthresh.p4`: their keys, what their entries say beside the slot, and the entries of a switch."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fairlane import LearnedTable
from fairlane.switch import SwitchClient
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from .law import FlowCount
from .names import COUNTER_FLOW_DROPS, FLOW_SLOTS, TABLE_FLOW, TAPS, WEIGHT_ONE, action_of, encode_weight

PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}
RESTING_SLOTS = 256
"""So many slots rest after their flows have gone, so that a packet still queued from one does not count against the next. Further ones are
given again before new ones: few flows have small slots, and so lanes of their own (`policies.Lanes`)."""

_METADATA = re.compile(rb"(?:(\d{1,3})/([0-7]))?( ?tuned(\d*))?")
"""Of our entries: `PORT/CLASS` of the flow; behind it ` tuned` where the weight in the switch is the law's, with the flow's own weight in
1/256, if it has one."""


@dataclass(frozen=True)
class Flow:
    """What a flow's entry contains beside its key and slot."""

    place: tuple[int, int] | None = None
    "(egress port, class), where it is known."
    weight: float | None = None
    "Its own; None: its class's."
    tuned: int | None = None
    "The weight in 1/256 that the law gave it."
    tap: int = 0
    "With a new number (1 to `names.TAPS`) the flow loses one packet; it has its own or its class's weight then."


class FlowKey(NamedTuple):
    """A flow's 5-tuple and VLAN, as the tables `flow_v4` and `flow_v6` have them."""

    version: int
    "Of IP."
    src: int
    dst: int
    protocol: int
    src_port: int
    dst_port: int
    vid: int = 0
    "Of the outer VLAN tag; 0: untagged."

    @staticmethod
    def from_fields(version: int, fields: Mapping[str, Any]) -> FlowKey:
        """By the fields of a match or a digest; an IPv4 address is in the low 32 bits."""
        return FlowKey(version, *(int(fields.get(name) or 0) for name in FlowKey._fields[1:]))

    @property
    def hosts(self) -> tuple[str, str]:
        """Addresses of the source and the destination."""
        address = ipaddress.IPv6Address if self.version == 6 else ipaddress.IPv4Address
        return str(address(self.src)), str(address(self.dst))

    def entry(self, slot: int, flow: Flow = Flow()) -> P4TableEntry:
        """The entry that gives the flow its slot, and a weight instead of its class's where it has one."""
        own = 0 if flow.weight is None else encode_weight(flow.weight)
        name, args = "set_flow", {"flow_id": slot}
        if flow.tap or flow.tuned or own:
            name, args = "set_flow_weighted", {**args, "weight": flow.tuned or own}
        if flow.tap:
            name, args = "set_flow_tapped", {**args, "tap": flow.tap}
        place = "" if flow.place is None else "{}/{}".format(*flow.place)
        metadata = place + (f" tuned{own or ''}" if flow.tuned else "")
        match = P4TableMatch(zip(self._fields[1:], self[1:], strict=True))
        action = P4TableAction(name, **args)
        return P4TableEntry(TABLE_FLOW[self.version], match=match, action=action, metadata=metadata.encode())

    def __str__(self) -> str:
        left, right = (f"[{host}]" if self.version == 6 else host for host in self.hosts)
        protocol = PROTOCOLS.get(self.protocol, str(self.protocol))
        vlan = f" vlan {self.vid}" if self.vid else ""
        return f"{protocol} {left}:{self.src_port} > {right}:{self.dst_port}{vlan}"


def parse_flow(entry: P4TableEntry) -> tuple[FlowKey, int, Flow]:
    """Key, slot and the rest out of a flow's entry; the slot is -1 where it has no action."""
    key = FlowKey.from_fields(6 if entry.table_id == TABLE_FLOW[6] else 4, entry.match or {})
    args = action_of(entry)[1]
    weight = args.get("weight", 0)
    found = _METADATA.fullmatch(entry.metadata)
    port, number, tuned, own = found.groups(b"") if found else [b""] * 4
    place = (int(port), int(number)) if port else None
    fixed = int(own or 0) if tuned else weight
    flow = Flow(place, fixed / WEIGHT_ONE or None, weight or None if tuned else None, args.get("tap", 0))
    return key, args.get("flow_id", -1), flow


FlowWeight = Callable[[FlowKey], "float | None"]
"""The weight that a flow should have; None: its class's."""


@dataclass(eq=False)
class Flows(LearnedTable[FlowKey, Flow]):
    """The flow entries of one switch."""

    missed_text = "share the fallback slots by hash, without an entry of their own"

    digest: str = "new_flow_t"
    tables: Sequence[str] = tuple(TABLE_FLOW.values())
    slots: int = FLOW_SLOTS
    counter: str = COUNTER_FLOW_DROPS
    resting: int = RESTING_SLOTS
    weight_of_new: FlowWeight = field(default=lambda _: None)
    "What gives a new flow its own weight."
    tap: int = 0
    "The newest number of a tap."

    def learn(self, values: Mapping[str, Any]) -> tuple[FlowKey, Flow]:
        """The flow of a `new_flow_t`."""
        key = FlowKey.from_fields(int(values["ip_version"]), values)
        return key, Flow((int(values["egress_port"]), int(values["traffic_class"])), self.weight_of_new(key))

    def entry(self, key: FlowKey, slot: int, value: Flow) -> P4TableEntry:
        """As `FlowKey.entry`."""
        return key.entry(slot, value)

    def parse(self, entry: P4TableEntry) -> tuple[FlowKey, int, Flow]:
        """As `parse_flow`."""
        return parse_flow(entry)

    async def take_over(self, client: SwitchClient) -> int:
        """As `LearnedTable.take_over`; taps go on from the entries' numbers, since a flow loses no packet for a number that it has had."""
        flows = await super().take_over(client)
        self.tap = max([self.tap, *(one.tap for one in self.values.values())])
        return flows

    async def untune(self, client: SwitchClient, flows: Iterable[FlowKey]) -> int:
        """Give these flows their own or their class's weight back; as `change`."""
        values = {flow: self.values[flow] for flow in flows}
        return await self.change(client, {flow: replace(one, tuned=None) for flow, one in values.items() if one.tuned})

    def next_tap(self) -> int:
        """Another number than that of the last tap."""
        self.tap = self.tap % TAPS + 1
        return self.tap

    async def read_flow_counts(self, client: SwitchClient) -> dict[FlowKey, FlowCount]:
        """Counters of every flow so far."""
        return {
            key: FlowCount(came.packet_count, came.byte_count, dropped.packet_count, dropped.byte_count)
            for key, (came, dropped) in (await self.read_counts(client)).items()
        }


async def give_hash_key(client: SwitchClient) -> None:
    """Give the switch a key of the fallback slots' hash where it has none: random, so that an attacker cannot aim flows at one slot.

    One that is there stays, since another one moves flows to other slots. A program without such a table needs none.
    """
    if "hash_key" not in client.table_names():
        return
    found = await client.read_entities([P4TableEntry("hash_key", is_default_action=True)])
    if not any(entry.action and any(entry.action.args.values()) for entry in found):
        words = {f"key_{word}": secrets.randbits(64) for word in range(11)}
        entry = P4TableEntry("hash_key", is_default_action=True, action=P4TableAction("set_hash_key", **words))
        await client.write([~entry])
