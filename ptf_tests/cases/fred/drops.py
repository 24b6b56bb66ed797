# SPDX-License-Identifier: GPL-2.0-or-later
"""FRED's limits of a flow that no chance decides; p4src/test_chance_runs.py follows it packet by packet in virtual time."""

from __future__ import annotations

from typing import ClassVar

from aqm_base import REASON_AQM, AqmTest
from base import SLOW_PORT
from packets import flow

PACKETS = 1 << 16


class FredTest(AqmTest):
    """A managed slow port."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)

    def manage(self, min_th: int, max_th: int, weight: int) -> None:
        values = {"min_th": min_th * PACKETS, "max_th": max_th * PACKETS, "weight": weight, "slope": 0, "decay": 0}
        self.insert("fred_port", {"egress_port": SLOW_PORT}, "set_fred", min_q=2, **values)


class PacketsOfAFlow(FredTest):
    """A flow may have min_th packets waiting, and another one as many, on every target."""

    def runTest(self) -> None:
        self.manage(3, 1_000, 16)
        self._frames = []
        self.bursts((flow(), 9), (flow(1), 5))
        assert self.fills(self.receive_all()) == [0, 1, 2, 3, 0, 1, 2]
        assert self.drops(REASON_AQM)[0] == 5 + 2


class ManyFlows(FredTest):
    """With a long average queue a flow may have two packets waiting."""

    def runTest(self) -> None:
        # The average is half of what it was and half of the queue: 4.03 when the seventh packet comes.
        self.manage(3, 4, 1)
        self._frames = []
        self.bursts(*((flow(number), 1) for number in range(7)), (flow(9), 4))
        assert self.fills(self.receive_all()) == [0] * 7 + [0, 1]
        assert self.drops(REASON_AQM)[0] == 2


class Strikes(FredTest):
    """A flow that went over its limit twice is held to its share as long as it has packets waiting; then it begins anew."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2's P4Runtime reads no registers")
        self.manage(3, 1_000, 16)
        self.burst_of(7)
        assert self.drops(REASON_AQM)[0] == 3
        assert self.register("active_flows", SLOW_PORT) == 0
        assert self.fills(self.burst_of(4)) == [0, 1, 2, 3]
        assert self.drops(REASON_AQM)[0] == 3
