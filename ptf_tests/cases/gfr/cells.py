# SPDX-License-Identifier: Apache-2.0
"""What the program counts is what the traffic manager holds: QT and each Q_i, cell by cell, at many moments of random runs."""

from __future__ import annotations

import random
import time
from typing import Any

import finsy as fy

from base import SLOW_PORT
from client import wait_until
from gfr_base import NO_VC, NO_VC_SLOT, ONE_CELL, VCS, GfrTest, SentFrame
from gfr_oracle import Verdict

NONE = NO_VC_SLOT + SLOW_PORT


class CellsTest(GfrTest):
    """All VCs have a share and a queue of their own at the slow port, which takes 20 kbit/s."""

    RATE_BPS = 20_000
    QMAX = 150

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("it has no way to read registers or queues")
        if "waiting" not in self.ask_port(SLOW_PORT):
            self.skipTest("this fairlane-switch does not tell what waits: build it anew")
        self.set_rate(self.RATE_BPS)
        for vc in VCS:
            self.share(vc, w=200_000 // 6)

    def tearDown(self) -> None:
        if self.is_embedded:
            self.set_rate(10_000_000)
        self.receive_count(SLOW_PORT, timeout_s=0.3)
        super().tearDown()

    def compare(self) -> int:
        """QT and every Q_i against the queues, at an instant at which neither changed; QT."""
        registers = [fy.P4RegisterEntry("port_cells", index=SLOW_PORT)]
        registers += [fy.P4RegisterEntry("vc_cells", index=slot) for slot in (*VCS, NONE)]
        deadline = time.monotonic() + 10.0
        while True:
            before = self.ask_port(SLOW_PORT)
            held = [entry.data for entry in self.switch.read(registers)]
            # No frame came or left between the two when what waits, and the counts, are the same.
            if self.ask_port(SLOW_PORT) == before:
                break
            assert time.monotonic() < deadline, "the port never stood still for three calls"
        self.assertEqual(held, self.queued(before), "QT, Q_1 … Q_6, no VC")
        return held[0]

    def queued(self, port: dict[str, Any]) -> list[int]:
        cells = {queue["queue"]: queue["cells"] for queue in port["queues_waiting"]}
        return [port["waiting"]["cells"], *(cells.pop(vc, 0) for vc in VCS), cells.pop(0, 0)]

    def run_at_random(self, numbers: random.Random, moments: int) -> int:
        """Frames of all VCs and none, sizes and marks, now more, now less than the line takes; the largest QT seen."""
        most = 0
        for _ in range(moments):
            self.set_rate(numbers.choice((self.RATE_BPS, self.RATE_BPS, self.RATE_BPS, 500_000)))
            for _ in range(numbers.choice((0, 1, 2, 5, 20))):
                vc = numbers.choice((NO_VC, *VCS))
                length = numbers.choice((ONE_CELL, 60, 102, 103, 200, numbers.randrange(54, 400)))
                clp = 1 if vc == NO_VC else numbers.randrange(2)
                one = SentFrame(vc, clp, length).frame_to(SLOW_PORT)
                if vc == NO_VC and numbers.randrange(2):
                    self.switch.send_packet_out(one, SLOW_PORT)
                else:
                    self.dataplane.send(0, 1, one)
            most = max(most, self.compare())
        return most

    def drain_all(self) -> None:
        self.set_rate(10_000_000)
        wait_until(lambda: self.ask_port(SLOW_PORT)["waiting"]["cells"] == 0, "an empty queue")
        self.compare()
        self.assert_no_occupancy(*VCS, NONE)


class ProposedCountsEveryCell(CellsTest):
    """Under the proposed scheme with a queue for each VC."""

    def runTest(self) -> None:
        self.scheme("proposed", qmax=self.QMAX, lbo=40, hbo=100, n=6, per_vc_queue=1)
        most = self.run_at_random(random.Random(1), 40)
        self.assertGreater(most, 40, "the run did not reach LBO")
        self.drain_all()
        seen = {verdict for _, _, verdict in self.verdicts(*VCS, NONE)}
        self.assertGreaterEqual(seen, {Verdict.CASE_4, Verdict.BELOW_LBO, Verdict.BELOW_HBO, Verdict.CASE_2})


class SchemesCountEveryCell(CellsTest):
    """Under one scheme after the other, changed live, with a queue for each VC."""

    def runTest(self) -> None:
        numbers = random.Random(2)
        limits = {"qmax": self.QMAX, "lbo": 40, "hbo": 100, "per_vc_queue": 1}
        for name in ("drop_tail", "double_epd", "proposed", "dfba", "wfba", "pervc_threshold", "proposed"):
            taken = {key: value for key, value in limits.items() if key not in ("lbo", "hbo")}
            if name != "drop_tail":
                taken["lbo"] = limits["lbo"]
                if name != "wfba":
                    taken["hbo"] = limits["hbo"]
            self.scheme(name, **taken)
            self.run_at_random(numbers, 6)
        self.drain_all()


class ManagedWhileQueued(CellsTest):
    """Frames that were queued before the port was managed are not counted, nor counted down."""

    def runTest(self) -> None:
        for fill in range(4):
            self.dataplane.send(0, 1, SentFrame(1, 0, 400).frame_to(SLOW_PORT, fill))
        wait_until(lambda: self.counter("passed", SLOW_PORT)[0] == 4, "4 frames passed")
        self.scheme("proposed", qmax=self.QMAX, lbo=40, hbo=100, n=6, per_vc_queue=1)
        for fill in range(4):
            self.dataplane.send(0, 1, SentFrame(2, 0, 400).frame_to(SLOW_PORT, fill))
        self.drain_all()
        self.run_at_random(random.Random(3), 5)
        self.drain_all()


class UnmanagedWhileQueued(CellsTest):
    """Frames that were counted in are counted out also when their port's scheme has gone meanwhile."""

    def runTest(self) -> None:
        self.scheme("proposed", qmax=self.QMAX, lbo=40, hbo=100, n=6, per_vc_queue=1)
        for fill in range(8):
            self.dataplane.send(0, 1, SentFrame(1 + fill % 2, 0, 400).frame_to(SLOW_PORT, fill))
        wait_until(lambda: self.counter("admitted", SLOW_PORT)[0] == 8, "8 frames admitted")
        self.switch.write(-fy.P4TableEntry("port_scheme", match=fy.Match(egress_port=SLOW_PORT)))
        self.drain_all()
