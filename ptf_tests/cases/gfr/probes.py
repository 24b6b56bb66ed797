# SPDX-License-Identifier: GPL-2.0-or-later
"""gfr.p4: probes take room and nothing else; and the report from which C_GFR is measured."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import time

from base import SERVICE_S, SLOW_PORT, TooSlow
from client import wait_until
from gfr_base import NO_VC, NO_VC_SLOT, GfrTest, SentFrame
from packets import flow
from probe_base import REFUSED, SENT, Probe, ProbeTest

NONE = NO_VC_SLOT + SLOW_PORT
PROBE_CELLS = 2


class GfrInTheQueue(GfrTest, ProbeTest):
    """A probe takes two cells of QT while it waits, is of no VC and in no verdicts, and is refused only where QMAX is reached."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not read registers")
        self.scheme("proposed", qmax=8, lbo=1, hbo=2)
        self.hold_line(SentFrame(NO_VC, 1, 100))
        before = self.verdicts(NONE)
        for nonce in (1, 2, 3, 4, 5):
            self.switch.send_packet_out(Probe(nonce=nonce).emit(), SLOW_PORT)
        wait_until(lambda: sum(self.probes(SLOW_PORT)) == 5, "the probes looked at")
        self.assertEqual((self.probes(SLOW_PORT)[SENT], self.probes(SLOW_PORT)[REFUSED]), (4, 1))
        self.assertEqual(self.while_waiting("port_cells", SLOW_PORT), [4 * PROBE_CELLS])
        self.set_rate(1_000_000)
        self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=3.0))
        departed = [self.take(SLOW_PORT).departed_us for _ in range(4)]
        self.assertEqual(departed, sorted(departed))
        self.assertEqual((self.verdicts(NONE), self.all_drops()), (before, {}))
        self.assert_no_occupancy(NONE)
        self.slow_port_is_idle()


class DrainRate(GfrTest):
    """A report tells how long the line worked while frames waited, and how many bytes and cells it sent in that time."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2's line sends at once")
        self.scheme("drop_tail", qmax=100)
        self.enable_digest("gfr_report_t")
        self.bursts(*[(flow(fill), 1) for fill in range(4)])
        self.next_digest("gfr_report_t")  # of the first frame: nothing waited yet
        self.drain(4)
        time.sleep(0.2)
        self.bursts((flow(9), 1))
        report = self.next_digest("gfr_report_t")
        # The first frame found nothing waiting behind it, and the last none: two whole services.
        self.assertEqual((report["egress_port"], report["busy_bytes"], report["busy_cells"]), (SLOW_PORT, 200, 4))
        if not -3000 < report["busy_us"] - 2e6 * SERVICE_S < 3000:
            raise TooSlow  # a dequeue was late
        self.assertEqual(report["waiting_cells"], 2)
        self.drain(1)
