# SPDX-License-Identifier: GPL-2.0-or-later
"""The drop rule. The first frame into the idle port is on the wire at once, and does not wait."""

from __future__ import annotations

from base import SLOW_PORT, LaneTest
from packets import flow

REASON_OVER_LIMIT = 14


class OverTheLimit(LaneTest):
    """As many packets wait as the limit says, the next are refused and counted."""

    WAITING_REGISTER = "waiting"
    REFUSALS = (REASON_OVER_LIMIT,)

    def runTest(self) -> None:
        self.insert("droptail_limit", {"egress_port": SLOW_PORT}, "set_limit", packets=4)
        self.burst(flow(), 8)
        assert self.drops(REASON_OVER_LIMIT)[0] == 3
        assert self.counter("refused", SLOW_PORT)[0] == 3
        self.drain(5)
