# SPDX-License-Identifier: GPL-2.0-or-later
"""RankTest: what the PTF tests of sp_pifo.p4, aifo.p4 and packs.p4 start from: packets with ranks against an oracle.

The rank is IPv4's identification. The slow port's line is busy with the first packet while the others come; then they leave in the
order of the oracle, and each counter of each rank is the oracle's.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterable

import finsy as fy

from base import REASON_PORT_FULL, SERVICE_S, SLOW_PORT, SLOW_RATE_BPS, LaneTest
from packets import changed, flow, frame
from rank_oracle import Queue

REASON_RANK = 11
RANKS = 128
FAST_RATE_BPS = 400_000
_IDENTIFICATION = slice(18, 20)
"""Of a frame without VLAN."""


class RankTest(LaneTest):
    """Ranks at the slow port."""

    WAITING_REGISTER = "waiting_ranks"
    REFUSALS = (REASON_PORT_FULL, REASON_RANK)

    def setUp(self) -> None:
        super().setUp()
        self.set_rate(SLOW_RATE_BPS)
        self.on_the_wire: list[int] = []
        self.came: Counter[int] = Counter()
        self.lost: Counter[int] = Counter()
        self.inversions: Counter[int] = Counter()

    def set_rate(self, rate_bps: int) -> None:
        """Of the slow port, where it can be set."""
        if self.is_embedded:
            self.ask({"op": "set_port", "port": SLOW_PORT, "rate_bps": rate_bps})

    @staticmethod
    def ranked(rank: int, number: int = 0) -> bytes:
        """A frame of 100 bytes with this rank; the number tells it apart."""
        return changed(frame(flow(), 100, fill=number % 256), "IP", id=rank)

    def send_ranks(self, ranks: Iterable[int], oracle: Queue) -> None:
        """Packets of these ranks come while the line is busy; the first of all takes it."""
        starts = self._window_end is None
        frames: list[bytes] = []
        for number, rank in enumerate(ranks):
            self.came[rank] += 1
            frames.append(self.ranked(rank, number))
            if not oracle.arrive(rank):
                self.lost[rank] += 1
            elif starts and number == 0:
                oracle.leave()
                self.on_the_wire = [rank] if self.is_embedded else []  # BMv2 has sent it
        if starts:
            self._start_line(frames.pop(0))
        for one in frames:
            self.dataplane.send(0, 1, one)
        self.count_sent(len(frames))

    def check_order(self, oracle: Queue) -> None:
        """What waits leaves in the oracle's order, with its inversions."""
        expected = list(self.on_the_wire)
        while (rank := oracle.leave()) is not None:
            expected.append(rank)
            self.inversions[rank] += oracle.inverted(rank)
        self.set_rate(FAST_RATE_BPS)
        got: list[int] = []
        while len(got) <= len(expected):
            polled = self.dataplane.poll(port_number=SLOW_PORT, timeout=SERVICE_S * 3)
            if not isinstance(polled, self.dataplane.PollSuccess):
                break
            got.append(struct.unpack("!H", polled.packet[_IDENTIFICATION])[0])
        self.set_rate(SLOW_RATE_BPS)
        self.assertEqual(got, expected)
        self.slow_port_is_idle()

    def random_rounds(self, oracle: Queue, rounds: int, burst: int, seed: int) -> None:
        """Rounds of random ranks, each in the oracle's order; what the oracle keeps goes on from one to the next."""
        numbers = random.Random(seed)
        for _ in range(rounds):
            self.send_ranks([numbers.randrange(100) for _ in range(burst)], oracle)
            self.check_order(oracle)

    def check_counters(self) -> None:
        """Arrivals, drops and inversions of each rank are the oracle's."""
        for name, counted in (("arrivals", self.came), ("drops", self.lost), ("inversions", self.inversions)):
            cells = [fy.P4CounterEntry(f"rank_{name}", index=SLOW_PORT * RANKS + rank) for rank in range(RANKS)]
            found = {e.index % RANKS: e.packet_count for e in self.switch.read(cells) if e.packet_count}
            self.assertEqual(found, {rank: count for rank, count in counted.items() if count}, name)
        self.assertEqual(self.counter("refused", SLOW_PORT)[0], self.lost.total())
        self.assertEqual(self.counter("inverted", SLOW_PORT)[0], self.inversions.total())
