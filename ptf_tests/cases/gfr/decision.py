# SPDX-License-Identifier: Apache-2.0
"""The proposed scheme's decision table: each case, each boundary, and all of them together against the oracle.

Tests on the embedded switch write QT, Q_i and r_i and look at one frame. Those that run on BMv2 too fill the queue with
frames of one cell behind a busy line; there w_i = 0 makes a VC fast and the largest w_i keeps it slow.
"""

from __future__ import annotations

import itertools

import gfr_oracle
from gfr_base import ALWAYS_FAST, FAST_PORT, NEVER_FAST, NO_VC, ONE_CELL, GfrTest, SentFrame
from gfr_oracle import Moment, Port, Verdict

PORT = Port(qmax=400, lbo=100, hbo=300)
N = 4
W = 1_000_000
TWO_CELLS = ONE_CELL + 48


class StateTest(GfrTest):
    """Port 2 with LBO 100, HBO 300, QMAX 400 cells and N = 4; VC 1 has w_i = 1 Mbit/s."""

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("it cannot write registers")
        self.scheme("proposed", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, n=N)
        self.share(1, FAST_PORT, w=W)

    def check(self, clp: int, qt: int, qi: int, fast: bool, expected: Verdict, length: int = ONE_CELL) -> None:
        rate = (W + 1) << 8 if fast else W << 8
        got = self.meets(SentFrame(1, clp, length), qt, qi, rate)
        self.assertEqual(got, expected, f"CLP {clp}, QT {qt}, Q_i {qi}, fast {fast}")


class MarkedBelowLbo(StateTest):
    """Case 1: QT < LBO, CLP 1 is refused only above its share and above its rate."""

    def runTest(self) -> None:
        for qt in (30, PORT.lbo - 1):
            self.check(1, qt, 26, True, Verdict.CASE_1)
            self.check(1, qt, 26, False, Verdict.BELOW_LBO)
            self.check(1, qt, 25, True, Verdict.BELOW_LBO)
            self.check(1, qt, 25, False, Verdict.BELOW_LBO)


class MarkedBelowHbo(StateTest):
    """Case 2: LBO <= QT < HBO, CLP 1 is refused above its share, whatever its rate."""

    def runTest(self) -> None:
        for qt, share in ((PORT.lbo, 25), (200, 50), (PORT.hbo - 1, 74)):
            self.check(1, qt, share + 1, True, Verdict.CASE_2)
            self.check(1, qt, share + 1, False, Verdict.CASE_2)
            self.check(1, qt, share, True, Verdict.BELOW_HBO)
            self.check(1, qt, share, False, Verdict.BELOW_HBO)


class MarkedAboveHbo(StateTest):
    """Case 3: QT >= HBO, CLP 1 is refused."""

    def runTest(self) -> None:
        for qt in (PORT.hbo, PORT.hbo + 50):
            self.check(1, qt, 0, False, Verdict.CASE_3)
            self.check(1, qt, 200, True, Verdict.CASE_3)


class PlainBelowLbo(StateTest):
    """Case 4: QT < LBO, CLP 0 is accepted, whatever its share and rate."""

    def runTest(self) -> None:
        for qt in (0, PORT.lbo - 1):
            self.check(0, qt, 0, False, Verdict.CASE_4)
            self.check(0, qt, qt, True, Verdict.CASE_4)


class PlainBelowHbo(StateTest):
    """Case 5: LBO <= QT < HBO, CLP 0 is refused only above its share and above its rate."""

    def runTest(self) -> None:
        for qt, share in ((PORT.lbo, 25), (200, 50), (PORT.hbo - 1, 74)):
            self.check(0, qt, share + 1, True, Verdict.CASE_5)
            self.check(0, qt, share + 1, False, Verdict.BELOW_HBO)
            self.check(0, qt, share, True, Verdict.BELOW_HBO)
            self.check(0, qt, share, False, Verdict.BELOW_HBO)


class PlainAboveHbo(StateTest):
    """Case 6: QT >= HBO, CLP 0 is refused."""

    def runTest(self) -> None:
        for qt in (PORT.hbo, PORT.hbo + 50):
            self.check(0, qt, 0, False, Verdict.CASE_6)
            self.check(0, qt, 200, True, Verdict.CASE_6)


class BufferFull(StateTest):
    """QT + c may reach QMAX and not pass it, before any other rule."""

    def runTest(self) -> None:
        self.scheme("proposed", FAST_PORT, qmax=PORT.qmax, lbo=PORT.qmax + 1, hbo=PORT.qmax + 2, n=N)
        for clp, accepted in ((0, Verdict.CASE_4), (1, Verdict.BELOW_LBO)):
            self.check(clp, PORT.qmax - 2, 0, False, accepted, TWO_CELLS)
            self.check(clp, PORT.qmax - 1, 0, False, Verdict.QMAX, TWO_CELLS)
            self.check(clp, PORT.qmax - 1, 0, False, accepted)
            self.check(clp, PORT.qmax, 0, False, Verdict.QMAX)
        self.scheme("proposed", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, n=N)
        self.check(1, PORT.qmax, 0, False, Verdict.QMAX)
        self.check(0, PORT.qmax - 1, 0, False, Verdict.CASE_6)


class RateAtItsShare(StateTest):
    """r_i may reach w_i: a VC is fast from one bit/s above it on."""

    def runTest(self) -> None:
        for rate, expected in (
            (W << 8, Verdict.BELOW_HBO),
            ((W << 8) + 255, Verdict.BELOW_HBO),
            ((W + 1) << 8, Verdict.CASE_5),
            (100_000_000_000 << 8, Verdict.CASE_5),
            (0, Verdict.BELOW_HBO),
        ):
            self.assertEqual(self.meets(SentFrame(1), 200, 51, rate), expected, f"r_i {rate}/256")
        self.share(1, FAST_PORT, w=NEVER_FAST)
        self.assertEqual(self.meets(SentFrame(1), 200, 51, NEVER_FAST << 8), Verdict.BELOW_HBO)
        self.share(1, FAST_PORT, w=ALWAYS_FAST)
        self.assertEqual(self.meets(SentFrame(1), 200, 51, 255), Verdict.BELOW_HBO)
        self.assertEqual(self.meets(SentFrame(1), 200, 51, 256), Verdict.CASE_5)


class ThresholdIsNotRounded(StateTest):
    """Th = min(max(QT, LBO), HBO)/N is compared as a fraction: with N = 3, 100/3 lies between 33 and 34."""

    def runTest(self) -> None:
        self.scheme("proposed", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, n=3)
        self.check(1, 100, 33, False, Verdict.BELOW_HBO)
        self.check(1, 100, 34, False, Verdict.CASE_2)
        self.check(1, 101, 34, False, Verdict.CASE_2)
        self.check(1, 102, 34, False, Verdict.BELOW_HBO)


class LargeBuffers(StateTest):
    """Nothing overflows with 65535 cells and 4096 VCs."""

    def runTest(self) -> None:
        self.scheme("proposed", FAST_PORT, qmax=65535, lbo=60000, hbo=65000, n=4096)
        self.check(1, 64000, 15, False, Verdict.BELOW_HBO)
        self.check(1, 64000, 16, False, Verdict.CASE_2)
        self.check(1, 64000, 64000, False, Verdict.CASE_2)
        self.scheme("proposed", FAST_PORT, qmax=65535, lbo=60000, hbo=65535, n=1)
        self.check(0, 65534, 65534, True, Verdict.BELOW_HBO)
        self.check(0, 65535, 65535, True, Verdict.QMAX)


class EveryCell(StateTest):
    """The whole table against the oracle, at and beside every boundary, for three N."""

    def runTest(self) -> None:
        levels = (0, PORT.lbo - 1, PORT.lbo, 199, PORT.hbo - 1, PORT.hbo, PORT.qmax - 1, PORT.qmax)
        for n in (1, 3, N):
            self.scheme("proposed", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, n=n)
            for qt, clp, fast in itertools.product(levels, (0, 1), (False, True)):
                share = min(max(qt, PORT.lbo), PORT.hbo) // n
                for qi in (share, share + 1):
                    moment = Moment(qt, qi, 1, clp)
                    self.check(clp, qt, qi, fast, gfr_oracle.proposed(PORT, moment, n, fast))


class OfNoVc(StateTest):
    """A frame of no VC is CLP 1 with w = 0, in a slot of its port, whatever mark it carries."""

    def runTest(self) -> None:
        marked = SentFrame(NO_VC, 1)
        self.assertEqual(self.meets(marked, 99, 26, 256), Verdict.CASE_1)
        self.assertEqual(self.meets(marked, 99, 26, 255), Verdict.BELOW_LBO)
        self.assertEqual(self.meets(marked, 100, 26, 0), Verdict.CASE_2)


# ---- the same on BMv2: queues filled by frames ---------------------------------------------------------------------

SMALL = Port(qmax=14, lbo=6, hbo=12)


class FilledTest(GfrTest):
    """The slow port with LBO 6, HBO 12, QMAX 14 cells and N = 2; VC 1 slow, VC 2 fast."""

    FAST_VCS = (2, 4)

    def setUp(self) -> None:
        super().setUp()
        self.scheme("proposed", qmax=SMALL.qmax, lbo=SMALL.lbo, hbo=SMALL.hbo, n=2)
        for vc in (1, 2, 3, 4):
            self.share(vc, w=ALWAYS_FAST if vc in self.FAST_VCS else NEVER_FAST)
        self._had_one: set[int] = set()

    def rule(self, moment: Moment, sent: SentFrame) -> Verdict:
        """A VC of FAST_VCS is fast once it had a frame accepted, in this test's time."""
        fast = sent.vc in self.FAST_VCS and sent.vc in self._had_one
        verdict = gfr_oracle.proposed(SMALL, moment, 2, fast)
        if verdict.accepted:
            self._had_one.add(sent.vc)
        return verdict

    def check(self, sent: list[SentFrame], *expected: Verdict) -> None:
        """The oracle's verdicts include these (so that the test does test them), and they are the switch's."""
        seen: list[Verdict] = []

        def rule(moment: Moment, one: SentFrame) -> Verdict:
            seen.append(self.rule(moment, one))
            return seen[-1]

        self.expect(rule, sent)
        for verdict in expected:
            self.assertIn(verdict, seen)


class FilledMarkedSlow(FilledTest):
    """CLP 1 of one slow VC: its share counts from LBO on, so case 2 comes at once."""

    def runTest(self) -> None:
        self.check([SentFrame(1, 1)] * 9, Verdict.BELOW_LBO, Verdict.CASE_2)


class FilledMarkedFast(FilledTest):
    """CLP 1 of one fast VC: case 1 when it has more than LBO/N = 3 cells, below LBO still."""

    def runTest(self) -> None:
        self.check([SentFrame(2, 1)] * 8, Verdict.BELOW_LBO, Verdict.CASE_1)


class FilledPlainSlow(FilledTest):
    """CLP 0 of one slow VC: all accepted until HBO, then case 6."""

    def runTest(self) -> None:
        self.check([SentFrame(1)] * 14, Verdict.CASE_4, Verdict.BELOW_HBO, Verdict.CASE_6)


class FilledPlainFast(FilledTest):
    """CLP 0 of one fast VC: accepted below LBO, case 5 from there on; another one still finds room."""

    def runTest(self) -> None:
        self.check([SentFrame(2)] * 8 + [SentFrame(4)] * 4, Verdict.CASE_4, Verdict.CASE_5, Verdict.BELOW_HBO)


class FilledMarkedAboveHbo(FilledTest):
    """Above HBO case 3 and case 6: nothing gets in."""

    def runTest(self) -> None:
        self.check(
            [SentFrame(1)] * 12 + [SentFrame(3, 1), SentFrame(3), SentFrame(4, 1), SentFrame(4)],
            Verdict.CASE_3,
            Verdict.CASE_6,
        )


class FilledToTheBrim(FilledTest):
    """A frame that does not fit into QMAX is refused, a shorter one gets in; bytes and drop reasons are counted."""

    def runTest(self) -> None:
        five_cells = ONE_CELL + 4 * 48
        self.check(
            [SentFrame(1)] * 11 + [SentFrame(1, 0, five_cells), SentFrame(3, 1, five_cells), SentFrame(3)], Verdict.QMAX
        )
        self.assertEqual(self.drops(12), (2, 2 * five_cells))
        self.assertEqual(self.counter("vc_verdicts", 3 << 5 | 1 << 4 | Verdict.QMAX), (1, five_cells))


class FilledMix(FilledTest):
    """Four VCs, both marks, sizes from one to three cells, in turn: every verdict is the oracle's."""

    def runTest(self) -> None:
        lengths = (ONE_CELL, TWO_CELLS, ONE_CELL + 96)
        sent = [SentFrame(1 + i % 4, (i // 3) % 2, lengths[(i * 5) % 3]) for i in range(24)]
        self.check(sent, Verdict.CASE_4, Verdict.BELOW_HBO)
