# SPDX-License-Identifier: Apache-2.0
"""Which flow has which slot: allocation, ageing, adoption after a restart. Pure: other modules write to the switch."""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.programs.qthresh import names as program

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
KEYS_KEPT = 4096
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6"}


@dataclass(frozen=True)
class FlowKey:
    """A flow's 5-tuple and VLAN, as the tables `flow_v4` and `flow_v6` have them."""

    src: Address
    dst: Address
    protocol: int
    src_port: int
    dst_port: int
    vid: int = 0
    "Of the outer VLAN tag; 0: untagged."

    @cached_property
    def _hash(self) -> int:
        return hash((self.src, self.dst, self.protocol, self.src_port, self.dst_port, self.vid))

    def __hash__(self) -> int:
        return self._hash

    @property
    def table(self) -> str:
        """The table that the flow's entry belongs to."""
        return program.TABLE_FLOW[self.src.version]

    @property
    def match(self) -> P4TableMatch:
        """The match of the flow's entry."""
        return P4TableMatch(
            src=int(self.src),
            dst=int(self.dst),
            protocol=self.protocol,
            src_port=self.src_port,
            dst_port=self.dst_port,
            vid=self.vid,
        )

    @staticmethod
    def from_match(table: str, match: P4TableMatch) -> FlowKey:
        """The inverse of `table` and `match`."""
        numbers = (int(match[name]) for name in ("src", "dst", "protocol", "src_port", "dst_port"))
        return _key(table == program.TABLE_FLOW[6], *numbers, int(match.get("vid") or 0))

    @staticmethod
    def from_digest(digest: dict[str, Any]) -> FlowKey:
        """From a `new_flow_t`; IPv4 addresses are in the low 32 bits."""
        numbers = (int(digest[name]) for name in ("src", "dst", "protocol", "src_port", "dst_port"))
        return _key(int(digest["ip_version"]) == 6, *numbers, int(digest.get("vid", 0)))

    def entry(
        self, flow_id: int | None = None, idle_timeout_s: float = 0.0, weight: float | None = None, tap: int = 0
    ) -> P4TableEntry:
        """The entry that gives the flow its slot, and its own weight instead of its class's where one is given.

        With a new number `tap` (1 to `names.TAPS`) the flow loses one packet. Without `flow_id` the key alone, for deletes.
        Raises OUT_OF_RANGE for a weight outside 1/256..255.
        """
        fixed = 0 if weight is None else program.encode_weight(weight)
        if flow_id is None:
            action = None
        elif tap:
            action = P4TableAction(program.ACTION_SET_FLOW_TAPPED, flow_id=flow_id, weight=fixed, tap=tap)
        elif fixed:
            action = P4TableAction(program.ACTION_SET_FLOW_WEIGHTED, flow_id=flow_id, weight=fixed)
        else:
            action = P4TableAction(program.ACTION_SET_FLOW, flow_id=flow_id)
        return P4TableEntry(self.table, match=self.match, action=action, idle_timeout_ns=int(idle_timeout_s * 1e9))

    def __str__(self) -> str:
        protocol = PROTOCOLS.get(self.protocol, str(self.protocol))
        left = f"[{self.src}]" if self.src.version == 6 else str(self.src)
        right = f"[{self.dst}]" if self.dst.version == 6 else str(self.dst)
        vlan = f" vlan {self.vid}" if self.vid else ""
        return f"{protocol} {left}:{self.src_port} > {right}:{self.dst_port}{vlan}"


@lru_cache(maxsize=KEYS_KEPT)
def _key(is_v6: bool, src: int, dst: int, protocol: int, src_port: int, dst_port: int, vid: int) -> FlowKey:
    """The same object for the same numbers: the law reads every flow's counters each second."""
    address = ipaddress.IPv6Address if is_v6 else ipaddress.IPv4Address
    return FlowKey(address(src), address(dst), protocol, src_port, dst_port, vid)


RESTING_SLOTS = 256
"""So many slots rest after their flows have gone, so that a packet still queued from one does not count against the next. Further ones are
given again before new ones: few flows have small slots, and so lanes of their own (`policies.Lanes`)."""


@dataclass
class FlowTable:
    """Slots 0..capacity-1 given to flows, each to one only; memory grows with the flows that exist, and no further."""

    capacity: int = program.FLOW_SLOTS
    missed: int = 0
    "New flows that got no slot because all are taken; they stay in their hashed fallback slot."
    _slots: dict[FlowKey, int] = field(default_factory=lambda: dict[FlowKey, int]())
    _freed: deque[int] = field(default_factory=lambda: deque[int]())
    _next: int = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: FlowKey) -> bool:
        return key in self._slots

    def slot(self, key: FlowKey) -> int | None:
        """The flow's slot, or None."""
        return self._slots.get(key)

    def items(self) -> Iterable[tuple[FlowKey, int]]:
        """Every flow and its slot."""
        return self._slots.items()

    def allocate(self, key: FlowKey) -> int | None:
        """A free slot for a new flow; None when the flow has one already, or (counted in `missed`) none is free.

        The slot that was freed longest ago comes first among the used ones.
        """
        if key in self._slots:
            return None
        if len(self._freed) > RESTING_SLOTS or (self._freed and self._next == self.capacity):
            slot = self._freed.popleft()
        elif self._next < self.capacity:
            slot = self._next
            self._next += 1
        else:
            self.missed += 1
            return None
        self._slots[key] = slot
        return slot

    def release(self, key: FlowKey) -> int | None:
        """The flow is gone; its slot may be given again. None for a flow that is not known."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._freed.append(slot)
        return slot

    def adopt(self, entries: Iterable[tuple[FlowKey, int]]) -> list[FlowKey]:
        """Take over what a switch holds already; returns flows whose slot another flow has too (to be deleted)."""
        self._slots.clear()
        taken: set[int] = set()
        doubled: list[FlowKey] = []
        for key, slot in entries:
            if slot in taken or slot >= self.capacity:
                doubled.append(key)
                continue
            taken.add(slot)
            self._slots[key] = slot
        self._next = max(taken) + 1 if taken else 0
        self._freed = deque(i for i in range(self._next) if i not in taken)
        return doubled
