# SPDX-License-Identifier: Apache-2.0
"""The drop rule. At the slow port the first frame of a burst is on the wire at once and is not counted: a burst of n
frames of a flow with Qthresh q lets 1 + q of them through."""

from __future__ import annotations

import random
import time

import finsy as fy

from base import REASON_PORT_FULL, SLOW_PORT
from packets import FiveTuple, flow, flow6, frame
from qthresh_base import NO_FLOW_SLOT, REASON_QTHRESH, QthreshTest, fallback_slot


class BelowThreshold(QthreshTest):
    """While fewer than Qthresh packets of a flow wait, none is refused."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(4)
        self.add_flow(flow(), 1)
        self.burst(flow(), 1 + 3)
        self.drain(1 + 3)
        self.assertEqual(self.all_drops(), {})
        self.assert_no_occupancy(1)


class AtThreshold(QthreshTest):
    """Exactly Qthresh packets may wait: none of them is refused."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(4)
        self.add_flow(flow(), 1)
        self.burst(flow(), 1 + 4)
        self.drain(1 + 4)
        self.assertEqual(self.all_drops(), {})
        self.assert_no_occupancy(1)


class AboveThreshold(QthreshTest):
    """What comes while Qthresh packets wait is refused, counted by reason and by slot, bytes too."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(4)
        self.add_flow(flow(), 1)
        self.burst(flow(), 12)
        self.drain(5)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_QTHRESH): 7})
        self.assertEqual(self.drops(REASON_QTHRESH), (7, 700))
        self.assertEqual(self.counter("flow_drops", 1), (7, 700))
        self.assertEqual(self.admitted(), (5, 500))
        self.assert_no_occupancy(1)


class ThresholdOne(QthreshTest):
    """The smallest threshold lets one packet wait behind the one on the wire."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(1)
        self.add_flow(flow(), 1)
        self.burst(flow(), 5)
        self.drain(2)
        self.assertEqual(self.drops(REASON_QTHRESH), (3, 300))


class ThresholdIpv6(QthreshTest):
    """The rule holds for IPv6 flows."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2)
        self.add_flow(flow6(), 1)
        self.burst(flow6(), 6)
        self.drain(3)
        self.assertEqual(self.drops(REASON_QTHRESH), (3, 300))
        self.assert_no_occupancy(1)


class RoomComesBack(QthreshTest):
    """A packet that leaves the queue makes room for exactly one."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2)
        self.add_flow(flow(), 1)
        for _ in range(2):
            self.burst(flow(), 6)
            self.drain(3)
        self.assertEqual(self.drops(REASON_QTHRESH), (6, 600))


class ClassWeight(QthreshTest):
    """A class's weight multiplies its threshold: 2 and 1/2 here."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(4, weight=512)
        self.add_flow(flow(), 1)
        self.burst(flow(), 12)
        self.drain(1 + 8)
        self.modify("policy", {"egress_port": SLOW_PORT, "traffic_class": 0}, "set_qthresh", qthresh=4, weight=128)
        self.burst(flow(), 12)
        self.drain(1 + 2)


class WeightRoundsDown(QthreshTest):
    """qthresh * weight / 256 is rounded down: 5 * 1.4 waits 6 (weight 358)."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(5, weight=358)
        self.add_flow(flow(), 1)
        self.burst(flow(), 12)
        self.drain(1 + 5 * 358 // 256)


class FlowWeight(QthreshTest):
    """A flow's own weight stands in for its class's."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2, weight=256)
        self.add_flow(flow(1), 1, weight=768)
        self.add_flow(flow(2), 2)
        self.bursts((flow(1), 8), (flow(2), 8))
        # flow 1: one on the wire and 6 waiting; flow 2: 2 waiting
        self.drain(1 + 6 + 2)
        self.assertEqual(self.counter("flow_drops", 1), (1, 100))
        self.assertEqual(self.counter("flow_drops", 2), (6, 600))


class ThresholdPerClass(QthreshTest):
    """Each (egress port, traffic class) has its own threshold; the class comes from the DSCP."""

    def runTest(self) -> None:
        self.limit_port()
        self.insert("flow_class", {"dscp": "46/&0x3f"}, "set_class", priority=1, traffic_class=5)
        self.set_qthresh(1)
        self.set_qthresh(3, traffic_class=5)
        self.add_flow(flow(1), 1)
        self.add_flow(flow(2), 2)
        self.bursts((flow(1), 5, {"dscp": 46}), (flow(2), 5))
        self.drain(1 + 3 + 1)
        self.assertEqual(self.admitted(traffic_class=5), (4, 400))
        self.assertEqual(self.admitted(traffic_class=0), (1, 100))


class ClassFromVlanPriority(QthreshTest):
    """The class may come from the VLAN tag's priority."""

    def runTest(self) -> None:
        self.limit_port()
        self.insert("flow_class", {"pcp": "3/&0x7"}, "set_class", priority=1, traffic_class=3)
        self.bursts((flow(1), 1, {"vlan": 9, "pcp": 3}), (flow(1), 1, {"vlan": 9, "pcp": 2}))
        self.drain(2)
        self.assertEqual(self.admitted(traffic_class=3), (1, 100))
        self.assertEqual(self.admitted(traffic_class=0), (1, 100))


class FlowsAreIndependent(QthreshTest):
    """A flow at its threshold costs the others nothing."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(3)
        for number in range(3):
            self.add_flow(flow(number), number)
        self.bursts((flow(0), 10), (flow(1), 3), (flow(2), 2))
        self.drain(1 + 3 + 3 + 2)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_QTHRESH): 6})
        self.assertEqual(self.counter("flow_drops", 0), (6, 600))
        self.assertEqual(self.counter("flow_drops", 1), (0, 0))
        self.assert_no_occupancy(0, 1, 2)


class FiveTupleTellsFlowsApart(QthreshTest):
    """A packet that differs in one field of the 5-tuple only is in another lane."""

    def runTest(self) -> None:
        first = flow()
        others = (
            first.with_changes(src="10.0.1.2"),
            first.with_changes(dst="10.0.3.2"),
            first.with_changes(src_port=1),
            first.with_changes(dst_port=1),
            first.with_changes(protocol=17),
        )
        self.limit_port()
        self.set_qthresh(1)
        for number, five_tuple in enumerate((first, *others)):
            self.add_flow(five_tuple, number)
        self.bursts((first, 4), *((five_tuple, 2) for five_tuple in others))
        self.drain(1 + 1 + len(others))
        self.assertEqual(self.drops(REASON_QTHRESH)[0], 2 + len(others))


class ThresholdChangesLive(QthreshTest):
    """A new threshold holds from the next packet on; what waits already stays."""

    def runTest(self) -> None:
        policy = {"egress_port": SLOW_PORT, "traffic_class": 0}
        self.limit_port()
        self.set_qthresh(4)
        self.add_flow(flow(), 1)
        self.burst(flow(), 1 + 4)
        self.modify("policy", policy, "set_qthresh", qthresh=1, weight=256)
        self.burst(flow(), 2)
        self.drain(5)
        self.assertEqual(self.drops(REASON_QTHRESH), (2, 200))
        self.burst(flow(), 4)
        self.drain(2)
        self.modify("policy", policy, "drop_tail")
        self.burst(flow(), 6)
        self.drain(6)
        self.assert_no_occupancy(1)


class DropTail(QthreshTest):
    """drop_tail knows no flow: the port's capacity alone refuses, before the queue itself has to."""

    def runTest(self) -> None:
        self.limit_port(packets=6)
        self.insert("policy", {"egress_port": SLOW_PORT, "traffic_class": 0}, "drop_tail")
        self.add_flow(flow(), 1)
        self.burst(flow(), 12)
        self.drain(1 + 6)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_PORT_FULL): 5})
        self.assertEqual(self.counter("flow_drops", 1), (5, 500))
        self.assert_no_occupancy(1)


class NoPolicy(QthreshTest):
    """A managed port without a policy refuses by capacity only."""

    def runTest(self) -> None:
        self.limit_port(packets=5)
        self.burst(flow(), 12)
        self.drain(1 + 5)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_PORT_FULL): 6})


class PortFullInBytes(QthreshTest):
    """A port's capacity may be in bytes: 3 frames of 100 fit into 350."""

    def runTest(self) -> None:
        self.limit_port(bytes=350)
        self.burst(flow(), 10)
        self.drain(1 + 3)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_PORT_FULL): 6})
        self.burst(flow(), 10)
        self.drain(1 + 3)
        self.assert_no_occupancy(fallback_slot(flow()))


class PortFullBeforeThreshold(QthreshTest):
    """Flows below their thresholds still cannot overflow the port."""

    def runTest(self) -> None:
        self.limit_port(packets=5)
        self.set_qthresh(3)
        for number in range(3):
            self.add_flow(flow(number), number)
        self.bursts(*((flow(number), 3) for number in range(3)))
        self.drain(1 + 5)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_PORT_FULL): 3})
        self.assert_no_occupancy(0, 1, 2)


class UnmanagedPort(QthreshTest):
    """Without a limit a port has no rule: everything passes and is counted, nothing is looked up."""

    def runTest(self) -> None:
        self.set_qthresh(1)
        self.add_flow(flow(), 1)
        self.burst(flow(), 6)
        self.drain(6)
        self.assertEqual(self.counter("passed", SLOW_PORT), (6, 600))
        self.assertEqual(self.admitted(), (0, 0))
        self.assertEqual(self.flow_arrivals(flow()), (0, 0))
        self.assert_no_occupancy(1)


class ManagedWhileQueued(QthreshTest):
    """Packets that were queued before the port was managed are not counted down."""

    def runTest(self) -> None:
        self.burst(flow(), 5)
        self.limit_port()
        self.set_qthresh(2)
        self.burst(flow(), 4)
        self.drain(5 + 2)
        self.burst(flow(), 6)
        self.drain(1 + 2)
        self.assert_no_occupancy(fallback_slot(flow()))


class EntryWhileQueued(QthreshTest):
    """A flow that gets its entry while packets wait moves to its slot and leaks nothing in either."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2)
        self.burst(flow(), 1 + 2)
        self.add_flow(flow(), 9)
        self.burst(flow(), 4)
        self.drain(1 + 2 + 2)
        self.assert_no_occupancy(9, fallback_slot(flow()))
        self.burst(flow(), 6)
        self.drain(1 + 2)


class EntryDeletedWhileQueued(QthreshTest):
    """A flow that loses its entry while packets wait falls back and leaks nothing."""

    def runTest(self) -> None:
        match, table = self.flow_match(flow())
        self.limit_port()
        self.set_qthresh(2)
        self.add_flow(flow(), 9)
        self.burst(flow(), 1 + 2)
        self.switch.write(-fy.P4TableEntry(table, match=fy.Match(**match)))
        self.burst(flow(), 4)
        self.drain(1 + 2 + 2)
        self.assert_no_occupancy(9, fallback_slot(flow()))


class WithoutFlow(QthreshTest):
    """Packet-outs fill a managed port like others, but have no threshold."""

    def runTest(self) -> None:
        self.limit_port(packets=4)
        self.set_qthresh(1)
        packet_out = bytes(frame(flow(77)))
        self.burst(flow(), 1)
        for _ in range(6):
            self.switch.send_packet_out(packet_out, SLOW_PORT)
        self.count_sent(6)
        self.assertEqual(self.drops(REASON_PORT_FULL)[0], 2)
        self.drain(1 + 4)
        self.assertEqual(self.counter("flow_drops", NO_FLOW_SLOT)[0], 2)
        self.assert_no_occupancy(NO_FLOW_SLOT)


class OccupancyReturnsToZero(QthreshTest):
    """After any traffic nothing is counted: random flows, sizes, classes, thresholds, overload and bad packets."""

    def runTest(self) -> None:
        numbers = random.Random(11)
        flows: list[FiveTuple] = [flow(n) for n in range(12)] + [flow6(n) for n in range(6)]
        self.limit_port(packets=8, bytes=1500)
        self.insert("flow_class", {"dscp": "8/&0x38"}, "set_class", priority=1, traffic_class=1)
        self.set_qthresh(3)
        self.set_qthresh(2, weight=300, traffic_class=1)
        for number in range(0, len(flows), 2):
            self.add_flow(flows[number], number)
        sent = 0
        for _ in range(120):
            five_tuple = numbers.choice(flows)
            packet = bytes(frame(five_tuple, numbers.choice((80, 100, 150, 400)), dscp=numbers.choice((0, 8, 9))))
            if numbers.random() < 0.1:
                packet = packet[: numbers.randrange(14, 60)]
            self.send(packet)
            sent += 1
            if sent % 40 == 0:
                time.sleep(0.3)  # traffic, not a wait for anything: some packets leave in between
        self.receive_count(SLOW_PORT, timeout_s=1.2)
        dropped = sum(self.all_drops().values())
        admitted = sum(self.admitted(traffic_class=c)[0] for c in range(8))
        self.assertEqual(admitted + dropped, sent)
        self.assertGreater(self.drops(REASON_QTHRESH)[0], 0)
        self.assertGreater(self.drops(REASON_PORT_FULL)[0], 0)
        self.assert_no_occupancy(*range(len(flows)), *(fallback_slot(f) for f in flows))
        # On any target: the port takes as much again as it did when it was fresh.
        before = self.drops(REASON_PORT_FULL)[0]
        self.slow_port_is_idle()
        self.bursts(*((flow(100 + number), 1) for number in range(9)))
        self.drain(9)
        self.assertEqual(self.drops(REASON_PORT_FULL)[0], before)


class Tap(QthreshTest):
    """Each new number of a tap refuses one packet: the next one that finds three waiting at the port."""

    def tap(self, number: int) -> None:
        match, table = self.flow_match(flow())
        action = fy.Action("set_flow_tapped", flow_id=1, weight=0, tap=number)
        self.switch.write(~fy.P4TableEntry(table, match=fy.Match(**match), action=action))

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(20)
        self.add_flow(flow(), 1)
        lost = 0
        for number, loses in ((7, 1), (7, 0), (8, 1)):
            self.tap(number)
            self.burst(flow(), 1 + 3)
            self.assertEqual(self.drops(REASON_QTHRESH)[0], lost, "no packet found three waiting")
            lost += loses
            self.burst(flow(), 3)
            self.drain(1 + 3 + 3 - loses)
            self.assertEqual(self.drops(REASON_QTHRESH)[0], lost)
            self.assert_no_occupancy(1)


class SpacedRefusals(QthreshTest):
    """A flow that has just lost a packet may have twice its threshold waiting, while half of the port is free; later it loses the next one."""

    def runTest(self) -> None:
        match = {"egress_port": SLOW_PORT, "traffic_class": 0}
        for slot, (spacing_us, port_packets, waiting) in enumerate(
            ((60_000_000, 50, 2 * 3), (60_000_000, 8, 4), (1, 50, 3))
        ):
            self.limit_port(packets=port_packets)
            self.insert("policy", match, "set_qthresh_spaced", qthresh=3, weight=256, spacing_us=spacing_us)
            self.add_flow(flow(slot), slot)
            self.burst(flow(slot), 12)
            self.drain(1 + waiting)
            self.assertEqual(self.counter("flow_drops", slot)[0], 12 - 1 - waiting)
            self.switch.write(-fy.P4TableEntry("policy", match=fy.Match(**match)))
            self.switch.write(-fy.P4TableEntry("port_limit", match=fy.Match(egress_port=SLOW_PORT)))
