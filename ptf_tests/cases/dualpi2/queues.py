# SPDX-License-Identifier: GPL-2.0-or-later
"""DualPI2's queues, marks and drops with a base probability that a test has written; p4src/test_chance_runs.py follows it in virtual time.

The slow port has 8 queues and strict priority here: the L4S queue is served first.
"""

from __future__ import annotations

from typing import Any, ClassVar

import finsy as fy
from scapy.layers.inet import IP

from aqm_base import CE, ECT, ECT1, REASON_AQM, AqmTest
from base import SLOW_PORT
from dualpi2_oracle import DualPi2
from packets import flow, flow6

REASON_OVERLOAD = 13
FAR_US = 10**9
"""No update, and no native mark, within a test."""


class DualPi2Test(AqmTest):
    """A managed slow port whose base probability stays as it is: the next update is far away."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM, REASON_OVERLOAD)
    WAITING_REGISTER = ""

    def manage(self, min_th_us: int = FAR_US) -> None:
        values = {"target_us": 15_000, "update_us": FAR_US, "alpha": 0, "beta": 0, "k": 2, "ramp": 1 << 40}
        values |= {"min_th_us": min_th_us, "max_th_us": min_th_us + 1, "l4s_queue": 1, "l4s_weight": 15}
        self.insert("dualpi2_port", {"egress_port": SLOW_PORT}, "set_dualpi2", **values)

    def waiting(self) -> list[int]:
        """Packets in the Classic queue and in the L4S queue, of a burst."""
        return self.while_waiting("waiting_packets", SLOW_PORT << 1, SLOW_PORT << 1 | 1)

    def decided(self, count: int, ecn: int, base_probability: float) -> tuple[list[int], list[int]]:
        """(frames that came out, of these the marked ones) of a burst, beside what the oracle would choose."""
        self.needs_embedded("BMv2's P4Runtime writes no registers")
        self.manage()
        value = round(base_probability * 2**40)
        self.switch.write([~fy.P4RegisterEntry("base_probability", index=SLOW_PORT, data=value)])
        frames = self.burst_of(count, ecn=ecn)
        return self.fills(frames), [bytes(one)[-1] for one in frames if one[IP].tos & 3 == CE]

    @staticmethod
    def chosen(count: int, l4s: bool, base_probability: float) -> list[int]:
        """Which frames of a burst the RFC's recur() chooses."""
        model = DualPi2(p=base_probability, min_th=FAR_US)
        return [number for number in range(count) if model.recur(l4s, model.likelihood(l4s, 0.0, 0))]


class QueueOfTheEcnField(DualPi2Test):
    """ECT(1) and CE wait in the L4S queue, not-ECT and ECT(0) in the Classic one, in IPv6 too; L4S is served first."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2 does not say what waits in a queue")
        self.manage()
        self._frames: list[Any] = []
        orders = [(flow(number), 1, {"ecn": ecn}) for number, ecn in enumerate((0, 0, ECT1, ECT, CE), start=1)]
        self.bursts(*orders, (flow6(6), 1, {"ecn": ECT1}), (flow6(7), 1, {"ecn": ECT}))
        assert self.waiting() == [3, 3]
        ports = [one["TCP"].sport - 40000 for one in self.receive_all()]
        assert ports == [1, 3, 5, 6, 2, 4, 7], ports


class NativeMarks(DualPi2Test):
    """L4S packets that waited longer than maxTh are marked, but not while no more than one packet waits behind them."""

    def runTest(self) -> None:
        self.manage(min_th_us=1_000)
        frames = self.burst_of(6, ecn=ECT1)
        assert self.fills(frames) == list(range(6))
        self.check_marks(frames, [2, 3])  # recur() chooses from the second on, and behind the fourth waits one


class ClassicDropsSquared(DualPi2Test):
    """Of the Classic queue p'^2 are dropped where they say not-ECT."""

    def runTest(self) -> None:
        out, marked = self.decided(20, 0, 0.45)
        chosen = self.chosen(20, False, 0.45)
        assert len(chosen) == 4
        assert (out, marked) == ([n for n in range(20) if n not in chosen], [])
        assert self.drops(REASON_AQM)[0] == 4


class ClassicMarksSquared(DualPi2Test):
    """Of the Classic queue p'^2 are marked where they say ECT(0)."""

    def runTest(self) -> None:
        chosen = self.chosen(14, False, 0.45)
        assert self.decided(14, ECT, 0.45) == (list(range(14)), chosen)
        assert len(chosen) == 2


class CoupledMarks(DualPi2Test):
    """Of the L4S queue k p' are marked."""

    def runTest(self) -> None:
        chosen = self.chosen(10, True, 0.21)
        assert self.decided(10, ECT1, 0.21) == (list(range(10)), chosen)
        assert len(chosen) == 4
        assert self.counter("l_marked", SLOW_PORT)[0] == 4


class OverloadOfL4s(DualPi2Test):
    """With k p' at 1 the L4S queue drops p'^2, and marks all that remains."""

    def runTest(self) -> None:
        out, marked = self.decided(12, ECT1, 0.6)
        chosen = self.chosen(12, True, 0.6)
        assert len(chosen) == 4
        assert out == marked == [n for n in range(12) if n not in chosen]
        assert self.drops(REASON_OVERLOAD)[0] == 4


class OverloadOfClassic(DualPi2Test):
    """With k p' at 1 the Classic queue drops what it would have marked."""

    def runTest(self) -> None:
        out, marked = self.decided(12, ECT, 0.6)
        chosen = self.chosen(12, False, 0.6)
        assert (out, marked) == ([n for n in range(12) if n not in chosen], [])
        assert self.drops(REASON_AQM)[0] == len(chosen) == 4
