# SPDX-License-Identifier: GPL-2.0-or-later
"""RED's average and its two thresholds; p4src/test_chance_runs.py follows its chance packet by packet in virtual time."""

from __future__ import annotations

from typing import ClassVar

from aqm_base import ECT, REASON_AQM, AqmTest
from base import SLOW_PORT
from red_oracle import Red

PACKETS, ALL = 1 << 16, 0xFFFFFFFF


class RedTest(AqmTest):
    """A managed slow port; w_q is 1/2, and nothing is a matter of chance."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)

    def manage(self, min_th: int, max_th: int, max_p: int, ecn: int = 1) -> None:
        values = {
            "min_th": min_th * PACKETS,
            "max_th": max_th * PACKETS,
            "max_p": max_p,
            "weight": 1,
            "decay": 0,
            "ecn": ecn,
        }
        slope = ALL if max_p == ALL else 0
        self.insert("red_port", {"egress_port": SLOW_PORT}, "set_red", slope=slope, gentle_slope=ALL, **values)

    @staticmethod
    def averages(count: int, limit: float = 1e9) -> list[tuple[int, float]]:
        """(frame, average that it meets) of a burst: the first is on the line, a frame that meets the limit does not wait."""
        model, waiting, found = Red(w_q=0.5, min_th=1e9, max_th=2e9), 0, list[tuple[int, float]]()
        for name in range(count):
            model.arrival(waiting, 0)
            found.append((name, model.avg))
            waiting += name > 0 and model.avg < limit
        return found


class AboveMaxTh(RedTest):
    """Without gentle every packet that meets an average of max_th is dropped, on every target, also one that says ECT."""

    def runTest(self) -> None:
        for ecn in (0, ECT):
            self.setUp()
            self.manage(3, 3, ALL)
            expected = [name for name, avg in self.averages(12, 3) if avg < 3]
            assert self.fills(self.burst_of(12, ecn=ecn)) == expected
            assert self.drops(REASON_AQM)[0] == 12 - len(expected) > 0


class MarksBelowMaxTh(RedTest):
    """Packets that are chosen below max_th are marked where they say ECT."""

    def runTest(self) -> None:
        self.manage(2, 1_000, ALL)
        frames = self.burst_of(10, ecn=ECT)
        assert self.fills(frames) == list(range(10))
        # The slope is so steep that the probability is 1 from 1/256 packet above min_th on.
        self.check_marks(frames, [name for name, avg in self.averages(10) if avg >= 2 + 1 / 256])


class Average(RedTest):
    """The register `average` is the paper's avg."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2's P4Runtime reads no registers")
        self.manage(100, 200, 0)
        self.burst_of(9)
        assert abs(self.register("average", SLOW_PORT) / PACKETS - self.averages(9)[-1][1]) < 0.001


class NothingBelowMinTh(RedTest):
    """Below min_th nothing is dropped."""

    def runTest(self) -> None:
        self.manage(100, 200, ALL)
        assert self.fills(self.burst_of(12)) == list(range(12))
