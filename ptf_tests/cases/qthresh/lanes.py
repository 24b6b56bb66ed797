# SPDX-License-Identifier: Apache-2.0
"""Lanes: a queue for each flow. The slow port serves the larger queue number first here, so that the order tells the queue."""

from __future__ import annotations

from typing import ClassVar

from base import REASON_PORT_FULL, SLOW_PORT
from packets import FiveTuple, flow
from qthresh_base import REASON_QTHRESH, QthreshTest, colliding_flows, fallback_slot

LANES, LANES_BY_HASH = 4, 2
SOURCE_PORT = slice(34, 36)
"""Of an IPv4 packet without options or tags."""


class LanesTest(QthreshTest):
    """The slow port is managed with lanes."""

    POLICY: ClassVar = {"egress_port": SLOW_PORT, "traffic_class": 0}

    def set_lanes(self, qthresh: int) -> None:
        values = {"qthresh": qthresh, "weight": 256, "spacing_us": 0, "lanes": LANES, "lanes_by_hash": LANES_BY_HASH}
        self.insert("policy", self.POLICY, "set_lanes", **values)

    def come_out(self) -> list[int]:
        """The source ports of all packets that leave the slow port, in order."""
        came: list[int] = []
        while isinstance(got := self.dataplane.poll(port_number=SLOW_PORT, timeout=1.0), self.dataplane.PollSuccess):
            came.append(int.from_bytes(got.packet[SOURCE_PORT], "big"))
        self.slow_port_is_idle()
        return came


class QueuePerFlow(LanesTest):
    """A flow with an entry waits in queue 1 + its slot, one without an entry behind those; without lanes all wait in one queue."""

    def runTest(self) -> None:
        self.needs_embedded("it has no more queues than priorities")
        self.limit_port()
        others = [flow(number) for number in range(20, 40)]
        unknown = next(one for one in others if fallback_slot(one) % LANES_BY_HASH == 0)
        queue_of: dict[FiveTuple, int] = {flow(0): 1, flow(1): 2, flow(2): 3, flow(3): 4, unknown: 1 + LANES}
        for number in range(4):
            self.add_flow(flow(number), number)
        sent = [flow(2), flow(0), unknown, flow(3), flow(1), flow(0), flow(2)]
        self.set_lanes(8)
        for waited in (sorted(sent, key=lambda one: -queue_of[one]), sent):
            self.bursts((flow(0), 1), *((one, 1) for one in sent))
            self.assertEqual(self.come_out(), [one.src_port for one in (flow(0), *waited)])
            self.assert_no_occupancy(0, 1, 2, 3, fallback_slot(unknown))
            self.modify(
                "policy", self.POLICY, "set_lanes", qthresh=8, weight=256, spacing_us=0, lanes=0, lanes_by_hash=0
            )


class ThresholdInLanes(LanesTest):
    """The threshold is that of the flow, as in one queue."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_lanes(3)
        self.add_flow(flow(1), 1)
        self.add_flow(flow(2), 2, weight=512)
        self.bursts((flow(1), 8), (flow(2), 8))
        self.drain(1 + 3 + 6)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_QTHRESH): 4 + 2})
        self.assert_no_occupancy(1, 2)


class FreePlaces(LanesTest):
    """Four packets of a flow may wait for each place that is still free, and one besides: the port's last place is for a flow of which nothing waits."""

    def runTest(self) -> None:
        self.limit_port(packets=4)
        self.set_lanes(8)
        self.add_flow(flow(1), 1)
        self.add_flow(flow(2), 2)
        self.bursts((flow(1), 1 + 5), (flow(2), 2))
        self.drain(1 + 3 + 1)
        self.assertEqual(self.all_drops(), {(SLOW_PORT, REASON_PORT_FULL): 2 + 1})
        self.assert_no_occupancy(1, 2)


class EntryWhileInLane(LanesTest):
    """A flow that gets its entry stays in its lane by hash until that is empty: none of its packets overtakes another.

    What is refused is counted at the entry.
    """

    def runTest(self) -> None:
        self.limit_port()
        self.set_lanes(4)
        self.burst(flow(), 1 + 2)
        self.add_flow(flow(), 3)
        self.burst(flow(), 2 + 4)
        self.assertEqual(self.counter("flow_drops", 3)[0], 4)
        if self.is_embedded:
            self.assertEqual(self.register("flow_occupancy", fallback_slot(flow())), 4)
            self.assertEqual(self.register("flow_occupancy", 3), 0)
        self.drain(1 + 2 + 2)
        self.burst(flow(), 1 + 2)
        if self.is_embedded:
            self.assertEqual(self.register("flow_occupancy", 3), 2)
        self.drain(1 + 2)
        self.assert_no_occupancy(3, fallback_slot(flow()))


class EntriesOfOneSlot(LanesTest):
    """Two flows with one fallback slot, both with an entry by now: one of them stays there until it is empty, the other goes to its lane at once."""

    def runTest(self) -> None:
        self.limit_port()
        self.set_lanes(8)
        first, last = colliding_flows()
        self.bursts((first, 1 + 2), (last, 2))
        self.add_flow(first, 1)
        self.add_flow(last, 2)
        self.bursts((first, 2), (last, 2))
        if self.is_embedded:
            waiting = [self.register("flow_occupancy", slot) for slot in (fallback_slot(first), 1, 2)]
            self.assertEqual(waiting, [2 + 2 + 2, 2, 0])
        self.drain(1 + 2 + 2 + 2 + 2)
        self.assert_no_occupancy(1, 2, fallback_slot(first))


class LanesChangeLive(LanesTest):
    """From one queue to lanes and back with packets waiting: none is lost, and none stays counted."""

    def runTest(self) -> None:
        lanes = {"spacing_us": 0, "lanes": LANES, "lanes_by_hash": LANES_BY_HASH}
        self.limit_port()
        self.set_qthresh(8)
        self.add_flow(flow(1), 1)
        self.add_flow(flow(2), 2)
        self.bursts((flow(1), 1 + 2), (flow(2), 2))
        self.modify("policy", self.POLICY, "set_lanes", qthresh=8, weight=256, **lanes)
        self.bursts((flow(1), 2), (flow(2), 2))
        self.modify("policy", self.POLICY, "set_qthresh", qthresh=8, weight=256)
        self.bursts((flow(1), 2), (flow(2), 2))
        self.drain(1 + 2 + 2 + 8)
        self.assertEqual(self.all_drops(), {})
        self.assert_no_occupancy(1, 2)
