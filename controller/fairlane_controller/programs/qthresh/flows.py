# SPDX-License-Identifier: Apache-2.0
"""Flows of `qthresh.p4`: their keys, what their entries say beside the slot, and the entries of a switch."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairlane import LearnedTable, Session
from fairlane.switch import SwitchClient
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from . import names as program
from .law import FlowCount

HASH_KEY_WORDS, HASH_KEY_BITS = 11, 64
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}
RESTING_SLOTS = 256
"""So many slots rest after their flows have gone, so that a packet still queued from one does not count against the next. Further ones are
given again before new ones: few flows have small slots, and so lanes of their own (`policies.Lanes`)."""

_METADATA = re.compile(rb"(?:(\d{1,3})/([0-7]))?( ?tuned(\d*))?")
"""Of our entries: `PORT/CLASS` of the flow; behind it ` tuned` where the weight in the switch is the law's, with the flow's own weight in
1/256, if it has one."""


@dataclass(frozen=True)
class Flow:
    """What a flow's entry says beside its key and slot."""

    place: tuple[int, int] | None = None
    "(egress port, class), where it is known."
    weight: float | None = None
    "Its own; None: its class's."
    tuned: int | None = None
    "The weight in 1/256 that the law gave it."
    tap: int = 0
    "With a new number (1 to `names.TAPS`) the flow loses one packet; it has its own or its class's weight then."

    @property
    def metadata(self) -> bytes:
        """Of the entry."""
        place = "" if self.place is None else "{}/{}".format(*self.place)
        own = "" if self.weight is None else program.encode_weight(self.weight)
        return (place + (f" tuned{own}" if self.tuned else "")).encode()


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

    @staticmethod
    def from_digest(digest: Mapping[str, Any]) -> FlowKey:
        """From a `new_flow_t`."""
        return FlowKey.from_fields(int(digest["ip_version"]), digest)

    @property
    def hosts(self) -> tuple[str, str]:
        """Addresses of the source and the destination."""
        address = ipaddress.IPv6Address if self.version == 6 else ipaddress.IPv4Address
        return str(address(self.src)), str(address(self.dst))

    def entry(self, slot: int, flow: Flow = Flow()) -> P4TableEntry:
        """The entry that gives the flow its slot, and a weight instead of its class's where it has one. Raises OUT_OF_RANGE for a weight outside 1/256..255."""
        weight = flow.tuned or (0 if flow.weight is None else program.encode_weight(flow.weight))
        if flow.tap:
            action = P4TableAction(program.ACTION_SET_FLOW_TAPPED, flow_id=slot, weight=weight, tap=flow.tap)
        elif weight:
            action = P4TableAction(program.ACTION_SET_FLOW_WEIGHTED, flow_id=slot, weight=weight)
        else:
            action = P4TableAction(program.ACTION_SET_FLOW, flow_id=slot)
        match = P4TableMatch(zip(self._fields[1:], self[1:], strict=True))
        return P4TableEntry(program.TABLE_FLOW[self.version], match=match, action=action, metadata=flow.metadata)

    def __str__(self) -> str:
        protocol = PROTOCOLS.get(self.protocol, str(self.protocol))
        left, right = (f"[{host}]" if self.version == 6 else host for host in self.hosts)
        vlan = f" vlan {self.vid}" if self.vid else ""
        return f"{protocol} {left}:{self.src_port} > {right}:{self.dst_port}{vlan}"


def parse_flow(entry: P4TableEntry) -> tuple[FlowKey, int, Flow]:
    """Key, slot and the rest out of a flow's entry; the slot is -1 where it has no action."""
    key = FlowKey.from_fields(6 if entry.table_id == program.TABLE_FLOW[6] else 4, entry.match or {})
    given: Mapping[str, Any] = entry.action.args if isinstance(entry.action, P4TableAction) else {}
    slot, weight, tap = (
        int(given.get(name, default)) for name, default in (("flow_id", -1), ("weight", 0), ("tap", 0))
    )
    said = _METADATA.fullmatch(entry.metadata)
    port, traffic_class, tuned, own = said.groups(b"") if said else [b""] * 4
    fixed = int(own or 0) if tuned else weight
    flow = Flow(
        (int(port), int(traffic_class)) if port else None,
        program.decode_weight(fixed) if fixed else None,
        (weight or None) if tuned else None,
        tap,
    )
    return key, slot, flow


FlowWeight = Callable[[FlowKey], "float | None"]
"""The weight that a flow should have; None: its class's."""


class Flows(LearnedTable[FlowKey, Flow]):
    """The flow entries of one switch."""

    missed_text = "share the fallback slots by hash, without an entry of their own"

    def __init__(
        self, session: Session, idle_timeout_s: float, weight_of_new: FlowWeight | None = None, **options: Any
    ) -> None:
        super().__init__(
            session,
            program.DIGEST_NEW_FLOW,
            [*program.TABLE_FLOW.values()],
            program.FLOW_SLOTS,
            counter=program.COUNTER_FLOW_DROPS,
            resting=RESTING_SLOTS,
            idle_timeout_s=idle_timeout_s,
            **options,
        )
        self.weight_of_new = weight_of_new
        "What gives a new flow its own weight."
        self._taps = 0
        "The newest number of a tap."

    def learn(self, values: Mapping[str, Any]) -> tuple[FlowKey, Flow]:
        key = FlowKey.from_digest(values)
        weight = self.weight_of_new(key) if self.weight_of_new else None
        return key, Flow((int(values["egress_port"]), int(values["traffic_class"])), weight)

    def entry(self, key: FlowKey, slot: int, value: Flow) -> P4TableEntry:
        return key.entry(slot, value)

    def parse(self, entry: P4TableEntry) -> tuple[FlowKey, int, Flow]:
        return parse_flow(entry)

    async def untune(self, client: SwitchClient, flows: Iterable[FlowKey]) -> int:
        """Give these flows their own or their class's weight back; as `change`."""
        return await self.change(client, {flow: replace(self.values[flow], tuned=None) for flow in flows})

    def next_tap(self) -> int:
        """Another number than that of the last tap."""
        self._taps = self._taps % program.TAPS + 1
        return self._taps

    def tuned(self, flows: Iterable[FlowKey], qthresh_packets: int) -> dict[FlowKey, int]:
        """The thresholds in packets of those flows that are tuned, beside the class's `qthresh_packets`."""
        return {key: qthresh_packets * tuned >> 8 for key in flows if (tuned := self.values[key].tuned)}

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
    if program.TABLE_HASH_KEY not in client.table_names():
        return
    current = await client.read_default(program.TABLE_HASH_KEY)
    if current is not None and any(current.args.values()):
        return
    key = {f"key_{word}": secrets.randbits(HASH_KEY_BITS) for word in range(HASH_KEY_WORDS)}
    action = P4TableAction(program.ACTION_SET_HASH_KEY, **key)
    await client.write([~P4TableEntry(program.TABLE_HASH_KEY, is_default_action=True, action=action)])
