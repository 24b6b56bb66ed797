# SPDX-License-Identifier: GPL-2.0-or-later
"""Cebinae's filter, turns and tax, frame by frame; p4src/test_cebinae_runs.py follows them in virtual time.

A round lasts longer than a test: `end_round` moves its start instead. The slow port has 8 queues and strict priority here: queue 1 is served first.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import finsy as fy

from aqm_base import REASON_AQM, AqmTest
from base import SLOW_PORT
from cebinae_oracle import DROPPED, HEAD, NEXT, Filter, Judge
from packets import arp_request, flow

FRAME = 100
ROUND_US = 10**9
ONE = 1 << 24


class CebinaeTest(AqmTest):
    """A managed slow port."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)
    WAITING_REGISTER = ""

    def manage(self, capacity: int, saturated: int = 1) -> None:
        """`capacity` bytes fit into a round; tax 0.5, flows within 0.2 of the largest."""
        shares = {"tax_share": ONE // 2, "flow_share": round(0.8 * ONE), "taxed_max_bytes": capacity // 2}
        times = {"round_us": ROUND_US, "inverse_us": round(2**32 / ROUND_US), "rounds": 1, "queues": 2}
        values = {"capacity_bytes": capacity, "saturated_bytes": saturated, **shares, **times}
        self.insert("cebinae_port", {"egress_port": SLOW_PORT}, "set_cebinae", **values)
        self.model = Filter(Fraction(capacity), Fraction(ROUND_US, 10**6))
        self.judge = Judge(Fraction(capacity), 1, Fraction(1, 2), 1 - Fraction(saturated, capacity), Fraction(1, 5))

    def end_round(self) -> None:
        """The next packet makes the turn."""
        self.needs_embedded("BMv2's P4Runtime writes no registers")
        value = (self.register("round_start", SLOW_PORT) - ROUND_US) % 2**48
        self.switch.write([~fy.P4RegisterEntry("round_start", index=SLOW_PORT, data=value)])

    def verdicts(self, count: int, top: bool = False) -> list[str]:
        """The oracle's, of the next `count` frames of a group."""
        return [self.model.arrive(top, FRAME, Fraction(0)) for _ in range(count)]

    def waiting(self) -> list[int]:
        """Packets in each queue, of a burst."""
        return self.while_waiting("waiting_packets", SLOW_PORT << 1, SLOW_PORT << 1 | 1)

    def judged(self, saturated: int) -> None:
        """Flows 1, 2 and 3 send 6, 5 and 2 frames in a period, one each in the round after it, and the next frame makes the turn behind that."""
        self.manage(2_000, saturated)
        self._frames = []
        self.bursts((flow(1), 6), (flow(2), 5), (flow(3), 2))
        self.receive_all()
        self.end_round()
        self.bursts((flow(1), 1), (flow(2), 1), (flow(3), 1))
        self.receive_all()
        self.end_round()


class Allowances(CebinaeTest):
    """One round's allowance waits in the queue whose turn it is, one in the next, and the rest is dropped."""

    def runTest(self) -> None:
        self.manage(250)
        expected = self.verdicts(7)
        assert expected == [HEAD, HEAD, NEXT, NEXT, NEXT, DROPPED, DROPPED]
        frames = self.burst_of(7)
        assert self.drops(REASON_AQM)[0] == 2
        order = (
            [0, 2, 3, 4, 1] if self.is_embedded else [0, 1, 2, 3, 4]
        )  # the first one is on the line; BMv2 has one queue
        assert self.fills(frames) == order, self.fills(frames)


class Turn(CebinaeTest):
    """At the end of a round one allowance is taken out of the bucket, and the queues change."""

    def runTest(self) -> None:
        self.manage(250)
        self.verdicts(5)
        self.burst_of(5)
        self.end_round()
        self.model.turn(Fraction(0))
        expected = self.verdicts(5)
        assert expected == [NEXT, NEXT, DROPPED, DROPPED, DROPPED]
        self.burst(flow(), 5)
        assert self.register("head_queue", SLOW_PORT) == 1
        assert self.waiting() == [1, 0]  # the first is on the line
        assert self.drops(REASON_AQM)[0] == 3
        self.drain(2)


class Tax(CebinaeTest):
    """The flows near the largest share half of what they had in the period; the third flow has a bucket of its own."""

    def runTest(self) -> None:
        self.judged(saturated=1_300)
        top = self.judge.bottlenecked({1: 6 * FRAME, 2: 5 * FRAME, 3: 2 * FRAME})
        assert top == {1, 2}
        self.model.turn(Fraction(0))
        self.model.turn(self.judge.top_allowance(11 * FRAME))
        assert self.verdicts(4, top=True) + self.verdicts(3, top=True) == [NEXT] * 5 + [DROPPED] * 2
        assert self.verdicts(1) == [HEAD]
        self.bursts((flow(1), 4), (flow(2), 3), (flow(3), 1))
        assert self.register("allowed_bytes", SLOW_PORT) == 550
        assert self.counter("taxed", SLOW_PORT)[0] == 7
        assert self.drops(REASON_AQM)[0] == 2
        self.drain(6)


class NotSaturated(CebinaeTest):
    """A line that sent less than its share of the rate taxes nobody."""

    def runTest(self) -> None:
        self.judged(saturated=1_301)
        assert self.judge.bottlenecked({1: 6 * FRAME, 2: 5 * FRAME, 3: 2 * FRAME}) == set()
        self.bursts((flow(1), 7))
        assert self.register("allowed_bytes", SLOW_PORT) == 0
        assert self.counter("taxed", SLOW_PORT)[0] == 0
        self.drain(7)


class NotIp(CebinaeTest):
    """What is not IP is a flow by its Ethernet header, and not taxed in a port's first round: nobody is."""

    def runTest(self) -> None:
        self.manage(2_000)
        self.insert("l2", {"hdr.ethernet.ether_type": "0x0806/&0xffff"}, "l2_forward", priority=1, port=SLOW_PORT)
        self.send(arp_request(1, SLOW_PORT))
        self.receive(arp_request(1, SLOW_PORT), SLOW_PORT)
        assert self.counter("taxed", SLOW_PORT)[0] == 0
