# SPDX-License-Identifier: GPL-2.0-or-later
"""QthreshTest: what the PTF tests of qthresh.p4 write and read beside LaneTest."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any, ClassVar

import finsy as fy

from base import REASON_PORT_FULL, SLOW_PORT, LaneTest
from packets import FiveTuple, flow

UNLIMITED = 0xFFFFFFFF
CLASSES = 8
FALLBACK_SLOTS = 1 << 14
FIRST_FALLBACK_SLOT = 1 << 16
NO_FLOW_SLOT = FIRST_FALLBACK_SLOT + FALLBACK_SLOTS
REASON_QTHRESH = 11


def fallback_slot(flow: FiveTuple) -> int:
    """The slot of a flow while the controller has given no key."""
    return FIRST_FALLBACK_SLOT + (flow.hash() + flow.vid) % FALLBACK_SLOTS


def colliding_flows(to_port: int = SLOW_PORT) -> tuple[FiveTuple, FiveTuple]:
    """Two flows that share a fallback slot, and no hash."""
    seen: dict[int, FiveTuple] = {}
    for number in range(20000):
        five_tuple = flow(number, to_port)
        other = seen.setdefault(fallback_slot(five_tuple), five_tuple)
        if other is not five_tuple and other.hash() != five_tuple.hash():
            return other, five_tuple
    raise AssertionError("no two of 20000 flows share a slot")


class QthreshTest(LaneTest):
    """Limits, thresholds and flows."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_QTHRESH, REASON_PORT_FULL)

    def limit_port(
        self, port: int = SLOW_PORT, packets: int = 50, bytes: int = UNLIMITED, report_period_us: int = 0, ecn: int = 0
    ) -> None:
        self.insert(
            "port_limit",
            {"egress_port": port},
            "set_port_limit",
            max_packets=packets,
            max_bytes=bytes,
            report_period_us=report_period_us,
            ecn=ecn,
        )

    def set_qthresh(self, qthresh: int, weight: int = 256, port: int = SLOW_PORT, traffic_class: int = 0) -> None:
        match = {"egress_port": port, "traffic_class": traffic_class}
        self.insert("policy", match, "set_qthresh", qthresh=qthresh, weight=weight)

    def add_flow(
        self, five_tuple: FiveTuple, flow_id: int, weight: int | None = None, idle_timeout_s: float = 0
    ) -> None:
        match, table = self.flow_match(five_tuple)
        action = (
            fy.Action("set_flow", flow_id=flow_id)
            if weight is None
            else fy.Action("set_flow_weighted", flow_id=flow_id, weight=weight)
        )
        entry = fy.P4TableEntry(
            table, match=fy.Match(**match), action=action, idle_timeout_ns=round(idle_timeout_s * 1e9)
        )
        self.switch.write(+entry)

    @staticmethod
    def flow_match(five_tuple: FiveTuple) -> tuple[dict[str, Any], str]:
        match = {
            "src": five_tuple.src,
            "dst": five_tuple.dst,
            "protocol": five_tuple.protocol,
            "src_port": five_tuple.src_port,
            "dst_port": five_tuple.dst_port,
            "vid": five_tuple.vid,
        }
        return match, "flow_v6" if five_tuple.is_ipv6 else "flow_v4"

    def admitted(self, port: int = SLOW_PORT, traffic_class: int = 0) -> tuple[int, int]:
        return self.counter("admitted", port << 3 | traffic_class)

    def arrival_cells(self, port: int) -> list[fy.P4CounterEntry]:
        admitted = [fy.P4CounterEntry("admitted", index=port << 3 | each) for each in range(CLASSES)]
        return [*super().arrival_cells(port), *admitted]

    def flow_arrivals(self, five_tuple: FiveTuple) -> tuple[int, int]:
        """(packets, bytes) of the direct counter of a flow's entry."""
        match, table = self.flow_match(five_tuple)
        entry = fy.P4DirectCounterEntry(table, table_entry=fy.P4TableEntry(table, match=fy.Match(**match)))
        (answer,) = self.switch.read(entry)
        return answer.packet_count, answer.byte_count

    def assert_no_occupancy(self, *slots: int) -> None:
        """The port and the slots hold nothing (registers: embedded switch only; BMv2 cannot read them)."""
        if not self.is_embedded:
            return
        self.assertEqual(self.register("port_occupancy", SLOW_PORT), 0)
        self.assertEqual(self.register("port_occupancy_bytes", SLOW_PORT), 0)
        for slot in slots:
            self.assertEqual(self.register("flow_occupancy", slot), 0, f"slot {slot}")
