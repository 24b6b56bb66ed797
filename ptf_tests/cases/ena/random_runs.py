# SPDX-License-Identifier: Apache-2.0
"""Random runs of a flow against the oracle: every answer and every mark, packet by packet."""

from __future__ import annotations

import random

from ena_base import MODULO, EnaTest, data, receiver_ack
from ena_oracle import Flow

STEPS = 250
SEGMENT = 100


class RandomRun(EnaTest):
    """Segments good and corrupted, new and repeated, and ACKs of any progress: as the oracle has it."""

    SEED = 1
    ERRORS = 0.3

    def runTest(self) -> None:
        numbers = random.Random(self.SEED)
        start = MODULO - 40 * SEGMENT  # passes 0 on the way
        flow = Flow(start, window_bytes=500 << 6)
        self.hears(receiver_ack(start, seq=4999, flags="SA", options=(("WScale", 6),), window=32000))
        base, window_packets = 0, (500 << 6) // SEGMENT
        answered = marked = 0
        for _ in range(STEPS):
            seq = (start + (base + numbers.randrange(-2, window_packets + 3)) * SEGMENT) % MODULO
            kind = numbers.random()
            if kind < self.ERRORS:
                if flow.corrupted(seq):
                    self.answers(data(seq, SEGMENT), flow.ack)
                    answered += 1
                else:
                    self.ignores(data(seq, 37))  # as a stray it fits in no gap here
            elif kind < 0.7:
                # What was corrupted before comes again as often as something new.
                seq = numbers.choice(flow.names) if flow.names and numbers.random() < 0.5 else seq
                flow.good(seq)
                self.passes(data(seq, SEGMENT))
            else:
                if numbers.random() < 0.5:
                    base += numbers.choice((0, 1, 1, 2, 5, 40))
                ack = (start + base * SEGMENT) % MODULO
                name = flow.record_ack(ack)
                if name is None:
                    self.passes(receiver_ack(ack))
                else:
                    self.marks(receiver_ack(ack), name)
                    marked += 1
        assert answered > STEPS // 20, answered
        assert marked > STEPS // 20, marked


class MoreErrors(RandomRun):
    """The same with the list of names full."""

    SEED = 2
    ERRORS = 0.6
