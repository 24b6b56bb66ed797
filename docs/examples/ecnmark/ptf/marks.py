# SPDX-License-Identifier: GPL-2.0-or-later
"""The mark rule. The first frame into the idle port is on the wire at once, and does not wait."""

from __future__ import annotations

from aqm_base import ECT, AqmTest
from base import SLOW_PORT

NOT_ECT = 0


class MarksFromTheThreshold(AqmTest):
    """What finds three packets or more in the queue is marked, nothing is lost, and the IPv4 checksum stays right."""

    WAITING_REGISTER = ""

    def runTest(self) -> None:
        self.insert("ecnmark_threshold", {"egress_port": SLOW_PORT}, "set_threshold", packets=3)
        frames = self.burst_of(8, ecn=ECT)
        assert self.fills(frames) == list(range(8))
        self.check_marks(frames, [4, 5, 6, 7])
        assert self.counter("marked", SLOW_PORT)[0] == 4


class LeavesOtherPacketsAlone(AqmTest):
    """A packet whose sender knows no ECN is never marked, nor is any at a port without a threshold."""

    WAITING_REGISTER = ""

    def runTest(self) -> None:
        self.check_marks(self.burst_of(8, ecn=ECT), [])
        self.insert("ecnmark_threshold", {"egress_port": SLOW_PORT}, "set_threshold", packets=3)
        self.check_marks(self.burst_of(8, ecn=NOT_ECT), [])
        assert self.counter("marked", SLOW_PORT)[0] == 0
