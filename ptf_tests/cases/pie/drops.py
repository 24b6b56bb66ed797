# SPDX-License-Identifier: GPL-2.0-or-later
"""PIE's decisions with a probability that a test has written; p4src/test_chance_runs.py follows it packet by packet in virtual time."""

from __future__ import annotations

from typing import ClassVar

import finsy as fy

from aqm_base import ECT, REASON_AQM, AqmTest
from base import SLOW_PORT
from packets import flow

ONE = 1 << 40
LONG_QUEUE = 26
"""Frames, so that more than 2 * MEAN_PKTSIZE wait."""


class PieTest(AqmTest):
    """A managed slow port whose probability stays as it is: the next update is far away."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)

    def manage(self, burst_us: int = 0, ecn: int = 1) -> None:
        values = {"target_us": 15_000, "update_us": 10**9, "burst_us": burst_us, "ecn": ecn}
        self.insert("pie_port", {"egress_port": SLOW_PORT}, "set_pie", **values)

    def chosen_of(self, count: int, probability: float, old_us: int = 100_000, ecn: int = 0) -> int:
        """How many of a burst behind a long queue are dropped."""
        self.needs_embedded("BMv2's P4Runtime writes no registers")
        self._frames = []
        self.bursts((flow(), LONG_QUEUE, {"ecn": ecn}))
        values = {"drop_probability": round(probability * ONE), "qdelay_old": old_us}
        self.switch.write([~fy.P4RegisterEntry(name, index=SLOW_PORT, data=value) for name, value in values.items()])
        self.bursts((flow(), count, {"ecn": ecn}))
        dropped = self.drops(REASON_AQM)[0]
        assert len(self.receive_all()) == LONG_QUEUE + count - dropped
        return dropped


class Burst(PieTest):
    """A burst after a quiet time meets no drop, on every target."""

    def runTest(self) -> None:
        self.manage(burst_us=150_000)
        assert self.fills(self.burst_of(8)) == list(range(8))


class CertainDrop(PieTest):
    """With a probability of 1 every packet is dropped, also one that says ECT."""

    def runTest(self) -> None:
        self.manage()
        assert self.chosen_of(6, 1.0, ecn=ECT) == 6
        assert self.counter("marked", SLOW_PORT)[0] == 0


class MarksUpToTenPercent(PieTest):
    """What is chosen while the probability is at most 10 % is marked where it says ECT."""

    def runTest(self) -> None:
        self.manage()
        assert self.chosen_of(30, 0.099, ecn=ECT) == 0
        assert self.counter("marked", SLOW_PORT)[0] == sum(one["IP"].tos & 3 == 3 for one in self._frames) > 0


class BurstAllowance(PieTest):
    """While there is burst allowance no packet is dropped."""

    def runTest(self) -> None:
        self.manage(burst_us=150_000)
        assert self.chosen_of(6, 1.0) == 0


class WorkConserving(PieTest):
    """Below 20 % no packet is dropped where the delay was below half the target before."""

    def runTest(self) -> None:
        self.manage()
        assert self.chosen_of(10, 0.19, old_us=7_400) == 0
