# SPDX-License-Identifier: GPL-2.0-or-later
"""AFD's decisions with an M_fair that a test has written; p4src/test_chance_runs.py follows it packet by packet in virtual time."""

from __future__ import annotations

from typing import ClassVar

import finsy as fy

from aqm_base import FRAME_BYTES, REASON_AQM, AqmTest
from base import SLOW_PORT
from packets import flow

ONE = 1 << 10
CEILING = 512 * 1514
OTHER = flow(1)


class AfdTest(AqmTest):
    """A managed slow port whose M_fair stays as it is: the next update is far away. Each packet comes into the shadow buffer."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)

    def setUp(self) -> None:
        super().setUp()
        gains = {"alpha": 1_741, "beta": 1_843, "target_bytes": 75_000}
        values = {"update_us": 10**9, "sample": 1, "ceiling_bytes": CEILING, **gains}
        self.insert("afd_port", {"egress_port": SLOW_PORT}, "set_afd", **values)

    def set_fair(self, size: int) -> None:
        """M_fair, bytes."""
        self.needs_embedded("BMv2's P4Runtime writes no registers")
        self.switch.write([~fy.P4RegisterEntry("fair_share", index=SLOW_PORT, data=size * ONE)])


class NoCongestion(AfdTest):
    """M_fair begins so high that nothing is dropped, on every target."""

    def runTest(self) -> None:
        assert self.fills(self.burst_of(20)) == list(range(20))


class FairFlow(AfdTest):
    """A flow that has no more than M_fair loses nothing; with nothing as its fair share it loses every packet."""

    def runTest(self) -> None:
        self.burst_of(1)
        self.set_fair(11 * FRAME_BYTES)
        assert self.fills(self.burst_of(10)) == list(range(10))
        self.set_fair(0)
        self.bursts((flow(), 5))
        assert self.drops(REASON_AQM)[0] == 5


class OnlyTheFastFlow(AfdTest):
    """A flow with four times M_fair loses about three of four packets, one below M_fair none."""

    def runTest(self) -> None:
        self.burst_of(1)
        self.set_fair(2 * FRAME_BYTES)
        self.burst_of(2, five_tuple=OTHER)
        assert self.drops(REASON_AQM)[0] == 0
        self.bursts((flow(), 40))
        # 1 - 2 / (i + 1) of the i-th packet: 33 of 40 on average, with a deviation of 2
        assert 24 < self.drops(REASON_AQM)[0] < 40
