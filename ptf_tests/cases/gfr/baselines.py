# SPDX-License-Identifier: Apache-2.0
"""The schemes that the proposed one is compared with: each one's rule at its boundaries and against the oracle."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import gfr_oracle
from client import wait_until
from gfr_base import FAST_PORT, ONE_CELL, GfrTest, SentFrame
from gfr_oracle import Moment, Port, Verdict

PORT = Port(qmax=400, lbo=100, hbo=300)
SMALL = Port(qmax=14, lbo=6, hbo=11)
TWO_CELLS = ONE_CELL + 48


class StateTest(GfrTest):
    """One frame at port 2, made to believe in QT and Q_i."""

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("it cannot write registers")

    def check(self, clp: int, qt: int, qi: int, expected: Verdict, length: int = ONE_CELL) -> None:
        self.assertEqual(self.meets(SentFrame(1, clp, length), qt, qi), expected, f"CLP {clp}, QT {qt}, Q_i {qi}")

    def check_full(self, of_plain: Verdict, of_marked: Verdict) -> None:
        """QT + c may reach QMAX; `of_…`: what the scheme says of a frame that fits then."""
        for clp, verdict in ((0, of_plain), (1, of_marked)):
            self.check(clp, PORT.qmax - 2, 0, verdict, TWO_CELLS)
            self.check(clp, PORT.qmax - 1, 0, Verdict.QMAX, TWO_CELLS)
            self.check(clp, PORT.qmax, 0, Verdict.QMAX)


class DropTailState(StateTest):
    """drop_tail refuses what does not fit, whatever its mark and its VC."""

    def runTest(self) -> None:
        self.scheme("drop_tail", FAST_PORT, qmax=PORT.qmax)
        self.share(1, FAST_PORT)
        for clp in (0, 1):
            self.check(clp, 0, 0, Verdict.BETWEEN)
            self.check(clp, PORT.qmax - 1, PORT.qmax - 1, Verdict.BETWEEN)
        self.check_full(Verdict.BETWEEN, Verdict.BETWEEN)


class DoubleEpdState(StateTest):
    """double_epd: CLP 1 from one above LBO on, everything from one above HBO on."""

    def runTest(self) -> None:
        self.scheme("double_epd", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo)
        self.share(1, FAST_PORT)
        for qi in (0, 100):
            self.check(1, PORT.lbo - 1, qi, Verdict.BELOW_LBO)
            self.check(1, PORT.lbo, qi, Verdict.BELOW_LBO)
            self.check(1, PORT.lbo + 1, qi, Verdict.THRESHOLD)
            self.check(1, PORT.hbo, qi, Verdict.THRESHOLD)
            self.check(1, PORT.hbo + 1, qi, Verdict.HBO)
            self.check(0, PORT.lbo, qi, Verdict.CASE_4)
            self.check(0, PORT.lbo + 1, qi, Verdict.BETWEEN)
            self.check(0, PORT.hbo, qi, Verdict.BETWEEN)
            self.check(0, PORT.hbo + 1, qi, Verdict.HBO)
        self.check_full(Verdict.HBO, Verdict.HBO)


class PerVcThresholdState(StateTest):
    """pervc_threshold: CLP 1 above LBO with more than T_i cells, everything above HBO."""

    def runTest(self) -> None:
        self.scheme("pervc_threshold", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo)
        self.share(1, FAST_PORT, threshold=40)
        for qi, verdict in ((39, Verdict.BETWEEN), (40, Verdict.BETWEEN), (41, Verdict.THRESHOLD)):
            self.check(1, PORT.lbo, qi, Verdict.BELOW_LBO)
            self.check(1, PORT.lbo + 1, qi, verdict)
            self.check(1, PORT.hbo, qi, verdict)
            self.check(1, PORT.hbo + 1, qi, Verdict.HBO)
            self.check(0, PORT.lbo, qi, Verdict.CASE_4)
            self.check(0, PORT.hbo, qi, Verdict.BETWEEN)
            self.check(0, PORT.hbo + 1, qi, Verdict.HBO)
        self.check_full(Verdict.HBO, Verdict.HBO)


class WfbaState(StateTest):
    """wfba: the inequality against the oracle, at random and at its boundary, for shares and Z of all sizes."""

    def runTest(self) -> None:
        numbers = random.Random(5)
        seen: set[Verdict] = set()
        for _ in range(10):
            qmax = numbers.choice((400, 4000, 65535))
            port = Port(qmax, lbo=numbers.randrange(1, qmax - 1))
            share = Fraction(1, numbers.choice((1, 2, 5, 7, 300)))
            z = Fraction(numbers.randrange(1, 1024), 256)
            self.scheme("wfba", FAST_PORT, qmax=port.qmax, lbo=port.lbo, z=int(z * 256))
            self.share(1, FAST_PORT, share=share)
            for _ in range(12):
                moment = self.moment(numbers, port, share, z)
                if moment.qt > port.lbo:
                    left, right = gfr_oracle.wfba_sides(port, moment, share, z)
                    if left != right and abs(left / right - 1) < 1e-5:
                        continue  # nearer than inv_share is exact
                verdict = gfr_oracle.wfba(port, moment, share, z)
                seen.add(verdict)
                self.check(moment.clp, moment.qt, moment.qi, verdict)
        self.assertEqual(seen, {Verdict.CASE_4, Verdict.BELOW_LBO, Verdict.BETWEEN, Verdict.THRESHOLD})
        self.scheme("wfba", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, z=256)
        self.share(1, FAST_PORT, share=Fraction(1, 1))
        self.check(1, PORT.lbo, PORT.lbo, Verdict.BELOW_LBO)
        self.check_full(Verdict.BETWEEN, Verdict.BETWEEN)

    @staticmethod
    def moment(numbers: random.Random, port: Port, share: Fraction, z: Fraction) -> Moment:
        """QT at LBO, above it or next to QMAX; Q_i at, below and above what makes both sides equal, 0 or QT."""
        qt = numbers.choice((port.lbo, port.lbo + 1, numbers.randrange(port.lbo, port.qmax), port.qmax - 1))
        candidates = [0, qt]
        if qt > port.lbo:
            right = gfr_oracle.wfba_sides(port, Moment(qt, 0, 1, 1), share, z)[1]
            equal = math.floor(right * qt * share)
            candidates += [qi for qi in (equal - 1, equal, equal + 1) if 0 <= qi <= qt]
        return Moment(qt, numbers.choice(candidates), 1, numbers.choice((0, 1, 1)))


class DfbaState(StateTest):
    """dfba: accepts below L, refuses CLP 1 from L on, leaves a VC within its share alone, refuses all above H."""

    def runTest(self) -> None:
        self.scheme("dfba", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, z=0xFFFF)
        self.share(1, FAST_PORT, share=Fraction(1, 4))
        self.check(1, PORT.lbo - 1, 99, Verdict.BELOW_LBO)
        self.check(1, PORT.lbo, 0, Verdict.THRESHOLD)
        self.check(1, PORT.hbo, 0, Verdict.THRESHOLD)
        self.check(1, PORT.hbo + 1, 0, Verdict.HBO)
        self.check(0, PORT.lbo - 1, 99, Verdict.CASE_4)
        for qt in (PORT.lbo, 200, PORT.hbo):  # a Z of 256 makes every chance a certainty
            self.check(0, qt, qt // 4, Verdict.BETWEEN)
            self.check(0, qt, qt // 4 + 1, Verdict.CHANCE)
        self.check(0, PORT.hbo + 1, 0, Verdict.HBO)
        self.scheme("dfba", FAST_PORT, qmax=PORT.qmax, lbo=PORT.lbo, hbo=PORT.hbo, z=0)
        self.check(0, PORT.hbo, PORT.hbo, Verdict.BETWEEN)
        self.check_full(Verdict.HBO, Verdict.HBO)


class DfbaChance(StateTest):
    """dfba's probability, over 1500 frames each: within 5 standard deviations of the oracle's (one failure in 10^6 runs),
    and of what QT may have grown by meanwhile."""

    FRAMES = 1500
    SLACK_CELLS = 64

    def runTest(self) -> None:
        port = Port(qmax=65535, lbo=20_000, hbo=60_000)
        for share, z, alpha, qt, qi in (
            (Fraction(1, 2), Fraction(1), Fraction(1, 2), 40_000, 30_000),  # 1/2 * 1/2 + 1/2 * 1/2
            (Fraction(1, 5), Fraction(3, 4), Fraction(1), 30_000, 18_000),  # 3/4 * (12000 / 24000)
            (Fraction(1, 5), Fraction(1), Fraction(0), 28_000, 18_000),  # 8000 / 40000
            (Fraction(9, 10), Fraction(1), Fraction(1, 4), 50_000, 46_000),
        ):
            self.scheme(
                "dfba", FAST_PORT, qmax=port.qmax, lbo=port.lbo, hbo=port.hbo, z=int(z * 256), alpha=int(alpha * 256)
            )
            self.share(1, FAST_PORT, share=share)
            chance = gfr_oracle.dfba_chance(port, Moment(qt, qi, 1, 0), share, z, alpha)
            more = gfr_oracle.dfba_chance(
                port, Moment(qt + self.SLACK_CELLS, qi + self.SLACK_CELLS, 1, 0), share, z, alpha
            )
            deviation = math.sqrt(self.FRAMES * chance * (1 - chance))
            bound = 5 * deviation + self.FRAMES * float(abs(more - chance))
            refused = self.refused(qt, qi)
            self.assertLess(abs(refused - self.FRAMES * chance), bound, f"{refused} of {self.FRAMES}, P = {chance}")

    def refused(self, qt: int, qi: int) -> int:
        self.set_state(FAST_PORT, 1, qt, qi)
        before, arrived = self.verdicts(1), self.arrivals(FAST_PORT)
        one = SentFrame(1).frame_to(FAST_PORT)
        for first in range(0, self.FRAMES, 25):
            for _ in range(25):
                self.dataplane.send(0, 1, one)
            wanted = arrived + first + 25
            wait_until(lambda wanted=wanted: self.arrivals(FAST_PORT) == wanted, "25 frames handled")
        after = self.verdicts(1) - before
        self.assertEqual(set(after), {(1, 0, Verdict.CHANCE), (1, 0, Verdict.BETWEEN)})
        self.assertEqual(sum(after.values()), self.FRAMES)
        self.receive_count(FAST_PORT, timeout_s=0.05)
        return after[1, 0, Verdict.CHANCE]


# ---- the same on BMv2: queues filled by frames ---------------------------------------------------------------------


class FilledTest(GfrTest):
    """The slow port, filled with frames of one to three cells."""

    def mixed(self, count: int = 20, seed: int = 1) -> list[SentFrame]:
        """Frames of VCs 1 to 4 and of none, both marks."""
        numbers = random.Random(seed)
        sizes = (ONE_CELL, ONE_CELL, TWO_CELLS, ONE_CELL + 96)
        sent = [
            SentFrame(numbers.choice((0, 1, 1, 2, 3, 4)), numbers.randrange(2), numbers.choice(sizes))
            for _ in range(count)
        ]
        return [SentFrame(0, 1, one.length) if one.vc == 0 else one for one in sent]


class DropTailFilled(FilledTest):
    """drop_tail fills the buffer to its last cell."""

    def runTest(self) -> None:
        self.scheme("drop_tail", qmax=SMALL.qmax)
        for vc in range(1, 5):
            self.share(vc)
        self.expect(lambda moment, _: gfr_oracle.drop_tail(SMALL, moment), self.mixed())


class DoubleEpdFilled(FilledTest):
    """double_epd's verdicts are the oracle's."""

    def runTest(self) -> None:
        self.scheme("double_epd", qmax=SMALL.qmax, lbo=SMALL.lbo, hbo=SMALL.hbo)
        for vc in range(1, 5):
            self.share(vc)
        for seed in (1, 2):
            self.expect(lambda moment, _: gfr_oracle.double_epd(SMALL, moment), self.mixed(seed=seed))


class PerVcThresholdFilled(FilledTest):
    """pervc_threshold's verdicts are the oracle's; what is of no VC has the threshold 0."""

    def runTest(self) -> None:
        self.scheme("pervc_threshold", qmax=SMALL.qmax, lbo=SMALL.lbo, hbo=SMALL.hbo)
        thresholds = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
        for vc in range(1, 5):
            self.share(vc, threshold=thresholds[vc])
        for seed in (1, 2):
            self.expect(
                lambda moment, sent: gfr_oracle.pervc_threshold(SMALL, moment, thresholds[sent.vc]),
                self.mixed(seed=seed),
            )


class WfbaFilled(FilledTest):
    """wfba's verdicts are the oracle's; what is of no VC has next to no share."""

    def runTest(self) -> None:
        z = Fraction(1, 2)
        self.scheme("wfba", qmax=SMALL.qmax, lbo=SMALL.lbo, z=int(z * 256))
        shares = {0: Fraction(1, 65536), 1: Fraction(1, 2), 2: Fraction(1, 4), 3: Fraction(1, 8), 4: Fraction(1, 8)}
        for vc in range(1, 5):
            self.share(vc, share=shares[vc])
        for seed in (1, 2):
            self.expect(lambda moment, sent: gfr_oracle.wfba(SMALL, moment, shares[sent.vc], z), self.mixed(seed=seed))


class DfbaFilled(FilledTest):
    """dfba with a Z that makes every chance a certainty: the oracle's verdicts."""

    def runTest(self) -> None:
        self.scheme("dfba", qmax=SMALL.qmax, lbo=SMALL.lbo, hbo=SMALL.hbo, z=0xFFFF)
        shares = {0: Fraction(0), 1: Fraction(1, 2), 2: Fraction(1, 4), 3: Fraction(1, 8), 4: Fraction(1, 8)}
        for vc in range(1, 5):
            self.share(vc, share=shares[vc])

        def rule(moment: Moment, sent: SentFrame) -> Verdict:
            chance = Fraction(0)
            if SMALL.lbo <= moment.qt <= SMALL.hbo:
                chance = gfr_oracle.dfba_chance(SMALL, moment, shares[sent.vc], Fraction(0xFFFF, 256), Fraction(1, 2))
            self.assertIn(chance, (0, 1))
            return gfr_oracle.dfba(SMALL, moment, unlucky=chance == 1)

        for seed in (1, 2):
            self.expect(rule, self.mixed(seed=seed))


class SchemeChangesLive(FilledTest):
    """A scheme changed under load: what waits stays and is counted out, the next frame meets the new rule."""

    def runTest(self) -> None:
        self.scheme("drop_tail", qmax=40)
        self.share(1)
        self.hold_line(SentFrame(0, 1, 100))
        for fill in range(6):
            self.dataplane.send(0, 1, SentFrame(1, 0).frame_to(3, fill))
        self.count_sent(6)
        self.scheme("double_epd", qmax=40, lbo=4, hbo=5)
        for fill in range(2):
            self.dataplane.send(0, 1, SentFrame(1, 0).frame_to(3, 10 + fill))
        self.count_sent(2)
        self.assertEqual(self.verdicts(1), {(1, 0, Verdict.BETWEEN): 6, (1, 0, Verdict.HBO): 2})
        self.drain(1 + 6)
        self.assert_no_occupancy(1)
