# SPDX-License-Identifier: Apache-2.0
"""Flow entries and fallback slots: counted exactly, aged out, and honest about hash collisions."""

from __future__ import annotations

import queue
import time

import finsy as fy

from base import REASON_BAD_CHECKSUM, REASON_TTL, SLOW_PORT
from client import wait_until
from packets import built, changed, flow, flow6, frame
from qthresh_base import REASON_QTHRESH, QthreshTest, colliding_flows, fallback_slot


class FlowCountsArrivals(QthreshTest):
    """An entry's direct counter holds the packets and bytes that arrived, refused ones too."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2)
        self.add_flow(flow(), 1)
        self.add_flow(flow6(), 2)
        self.bursts((flow(), 8), (flow6(), 1))
        self.drain(1 + 2 + 1)
        wait_until(lambda: self.flow_arrivals(flow()) == (8, 800), "8 packets of 100 bytes counted")
        self.assertEqual(self.flow_arrivals(flow6()), (1, 100))


class CountersAreExact(QthreshTest):
    """Over sizes, classes and both IP versions: admitted + dropped = sent, packets and bytes, at managed and other ports."""

    def runTest(self) -> None:
        self.limit_port(port=2)
        self.insert("flow_class", {"dscp": "1/&0x3f"}, "set_class", priority=1, traffic_class=2)
        sizes = (60, 61, 100, 333, 1514)
        for size in sizes:
            self.send_and_receive(frame(flow(to_port=2), size))
            self.send_and_receive(frame(flow6(to_port=2), max(size, 78), dscp=1))
        self.assertEqual(self.admitted(port=2), (len(sizes), sum(sizes)))
        self.assertEqual(self.admitted(port=2, traffic_class=2), (len(sizes), sum(max(s, 78) for s in sizes)))
        for size in sizes:
            self.send_and_receive(frame(flow(to_port=1, from_port=2), size), to_port=1, from_port=2)
        self.assertEqual(self.counter("passed", 1), (len(sizes), sum(sizes)))
        self.assertEqual(self.all_drops(), {})


class CounterIsReset(QthreshTest):
    """A controller that gives a flow_id to another flow sets its drop counter back to 0."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(1)
        self.add_flow(flow(), 1)
        self.burst(flow(), 4)
        self.drain(2)
        self.assertEqual(self.counter("flow_drops", 1), (2, 200))
        self.switch.write(
            ~fy.P4CounterEntry("flow_drops", index=1, data=fy.P4CounterData(byte_count=0, packet_count=0))
        )
        self.assertEqual(self.counter("flow_drops", 1), (0, 0))


class FallbackHoldsTheThreshold(QthreshTest):
    """A flow without an entry is held to the threshold by its hashed slot, and collides with nothing."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(3)
        self.bursts((flow(), 8), (flow6(1), 2))
        self.drain(1 + 3 + 2)
        self.assertEqual(self.drops(REASON_QTHRESH), (4, 400))
        self.assertEqual(self.counter("flow_drops", fallback_slot(flow())), (4, 400))
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 0)
        self.assert_no_occupancy(fallback_slot(flow()), fallback_slot(flow6(1)))


class CollisionIsCounted(QthreshTest):
    """Two flows in one fallback slot share its threshold, and each packet that meets the other's is counted."""

    def runTest(self) -> None:
        first, second = colliding_flows()
        self.limit_port()
        self.set_qthresh(3)
        self.bursts((first, 1 + 2), (second, 4))
        self.drain(1 + 3)
        # One of the second's packets is admitted beside the first's two; it takes the slot over.
        self.assertEqual(self.counter("flow_drops", fallback_slot(first)), (3, 300))
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 1)
        self.burst(first, 1)
        self.drain(1)
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 1, "nothing waited: no collision")
        self.assert_no_occupancy(fallback_slot(first))


class EntriesEndCollisions(QthreshTest):
    """With an entry for one of two flows that collide, each has its own threshold."""

    def runTest(self) -> None:
        first, second = colliding_flows()
        self.limit_port()
        self.set_qthresh(3)
        self.add_flow(second, 4)
        self.bursts((first, 1 + 5), (second, 5))
        self.drain(1 + 3 + 3)
        self.assertEqual(self.counter("collisions", SLOW_PORT)[0], 0)
        self.assertEqual(self.counter("flow_drops", 4), (2, 200))


class FragmentsAreOneFlow(QthreshTest):
    """Fragments without a TCP header are the flow with ports 0."""

    def runTest(self) -> None:
        self.limit_port(port=2)
        self.add_flow(flow(to_port=2), 1)
        self.add_flow(flow(to_port=2).with_changes(src_port=0, dst_port=0), 2)
        for offset, more in ((0, 1), (64, 1), (128, 0)):
            packet = frame(flow(to_port=2), 200)
            packet["IP"].frag = offset
            packet["IP"].flags = more
            del packet["IP"].chksum
            self.send_and_receive(built(packet))
        self.assertEqual(self.flow_arrivals(flow(to_port=2))[0], 1)
        self.assertEqual(self.flow_arrivals(flow(to_port=2).with_changes(src_port=0, dst_port=0))[0], 2)


class PortsBehindOptions(QthreshTest):
    """A packet with IPv4 options is in the same lane as one without."""

    def runTest(self) -> None:
        self.limit_port(port=2)
        self.add_flow(flow(to_port=2), 1)
        self.send_and_receive(frame(flow(to_port=2)))
        self.send_and_receive(frame(flow(to_port=2), 140, ip_options=b"\x01" * 39 + b"\x00"))
        self.assertEqual(self.flow_arrivals(flow(to_port=2)), (2, 240))


class IdleTimeout(QthreshTest):
    """An entry that no packet hits for its idle timeout is reported once to the controller; a busy one is not."""

    def runTest(self) -> None:
        self.limit_port(port=2)
        idle, busy = flow(1, to_port=2), flow(2, to_port=2)
        self.add_flow(idle, 1, idle_timeout_s=1.5)
        self.add_flow(busy, 2, idle_timeout_s=1.5)
        notifications: list[fy.P4TableEntry] = []
        deadline = time.monotonic() + 8
        while not notifications:
            self.assertLess(time.monotonic(), deadline, "no idle timeout notification")
            self.send_and_receive(frame(busy))
            try:
                notifications += self.switch.idle_timeouts.get(timeout=0.2)
            except queue.Empty:
                continue
        self.assertEqual([entry["src_port"] for entry in notifications], [idle.src_port])


class BadPacketsCountNothing(QthreshTest):
    """A bad packet for a managed port touches no flow, no admission and no occupancy."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_qthresh(2)
        self.add_flow(flow(), 5)
        packet = frame(flow())
        self.expect_drop(changed(packet, "IP", True, chksum=packet["IP"].chksum ^ 1), REASON_BAD_CHECKSUM)
        self.expect_drop(changed(packet, "IP", ttl=1), REASON_TTL)
        self.assertEqual(self.flow_arrivals(flow()), (0, 0))
        self.assertEqual(self.admitted(), (0, 0))
        self.assert_no_occupancy(5)


class PacketOutOfManagedPort(QthreshTest):
    """A packet-out for a managed port is admitted like any packet, with the length of its frame."""

    def runTest(self) -> None:
        self.limit_port(port=2, packets=5, bytes=100)
        self.switch.send_packet_out(bytes(frame(flow(5), 100)), 2)
        self.receive(bytes(frame(flow(5), 100)), 2)
        self.assertEqual(self.admitted(port=2)[0], 1)
        self.assert_no_occupancy()
