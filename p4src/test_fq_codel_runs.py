# SPDX-License-Identifier: Apache-2.0
"""fq_codel.p4 under the scheduler `fq` in virtual time beside RFC 8290's words: what waits in each queue, what was sent, and what was dropped by CoDel
and from the fattest queue are the same."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from codel_oracle import Codel, Waiting
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from fq_codel_oracle import FqCodel
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
"""A byte takes 1 us."""
END_NS = 2 * NS_PER_S
STEP_NS = 7_000_000
"""State is compared so often."""
QUEUES = 16
FIRST_QUEUE = SINK_PORT << 10
REASON_AQM = 11


def flows(seed: int) -> list[Cbr]:
    """Five sources that come and go: from a few packets now and then to three times what the line takes, of all sizes."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in range(1, 6):
        at = 1_000_000 + port
        while at < END_NS:
            length = numbers.randrange(50_000_000, 700_000_000)
            rate = numbers.choice((20_000, 300_000, numbers.randrange(500_000, 9_000_000)))
            out.append(Cbr(port, rate, numbers.choice((60, 300, 960, 1_472)), at, at + length))
            at += length + numbers.randrange(1, 300_000_000)
    return out


def world_of(sent: list[Cbr], rate_bps: int, seed: int, limit: int = 10_000, **settings: object) -> World:
    """The port is managed with these settings."""
    sink = {"scheduler": "fq", "queues": QUEUES, "queue_packets": limit}
    world = World("fq_codel", sent, sink_rate_bps=rate_bps, sink=sink, seed=seed)
    program = load_program("fq_codel")
    chosen = program.Settings.model_validate({"ecn": False, **settings})
    (entry,) = program.entries(PortState(port=SINK_PORT, queues=QUEUES), chosen)
    world.write(+entry)
    return world


def queues_of(sent: list[Cbr], seed: int) -> Mapping[int, int]:
    """The queue of each flow: one packet of each, on a line that takes none but the first."""
    step_ns = 1_000_000
    single = [replace(one, start_ns=(at := step_ns * (i + 2)), stop_ns=at + 1) for i, one in enumerate(sent)]
    first = replace(sent[0], start_ns=step_ns, stop_ns=step_ns + 1)
    world = world_of([*single, first], 1, seed)
    world.run_until(step_ns)
    found: dict[int, int] = {}
    before = [0] * QUEUES
    for number, one in enumerate(single):
        world.run_until(one.start_ns)
        now = [world.register("waiting_packets", FIRST_QUEUE | queue) for queue in range(QUEUES)]
        found[number] = next(queue for queue in range(QUEUES) if now[queue] > before[queue])
        before = now
    return found


class Line:
    """The model on a line: what comes at exact times, what leaves as soon as the line is free."""

    def __init__(self, model: FqCodel, sent: list[Cbr], queues: Mapping[int, int]) -> None:
        self.model, self.queues = model, queues
        arrivals = ((at, number, one.frame_bytes) for number, one in enumerate(sent) for at in one.times_ns())
        self.arrivals = sorted(arrivals, reverse=True)
        self.free_ns = Fraction(0)
        self.busy = False
        self.sent = self.overflowed = 0

    def run_until(self, end_ns: int) -> None:
        """Everything before `end_ns`: what comes at the instant at which the line is free comes later."""
        while True:
            at = self.arrivals[-1][0] if self.arrivals else 1 << 62
            starts = -(-self.free_ns.numerator // self.free_ns.denominator)  # whole ns, as the device has them
            if self.busy and starts <= at:
                if starts >= end_ns:
                    return
                self.serve(starts)
                continue
            if at >= end_ns:
                return
            _, flow, length = self.arrivals.pop()
            dropped = self.model.enqueue(self.queues[flow], Waiting(at // 1_000, length))
            self.overflowed += dropped is not None
            if not self.busy:
                self.free_ns = max(self.free_ns, Fraction(at))
                self.serve(at)

    def serve(self, at_ns: int) -> None:
        """The line is free."""
        packet = self.model.dequeue(at_ns // 1_000)
        self.busy = packet is not None
        if packet is not None:
            self.free_ns += Fraction(packet.length * 8 * NS_PER_S, RATE_BPS)
            self.sent += 1


@pytest.mark.parametrize(("seed", "quantum", "limit"), [(1, 1514, 60), (2, 300, 200), (3, 3000, 40), (4, 1514, 10_000)])
def test_it_is_the_rfc_s(seed: int, quantum: int, limit: int) -> None:
    sent = flows(seed)
    world = world_of(sent, RATE_BPS, seed, limit, quantum=f"{quantum}B")
    codels = [Codel(5_000, 100_000, 1_514) for _ in range(QUEUES)]
    line = Line(FqCodel(codels, quantum, limit), sent, queues_of(sent, seed))
    for end_ns in range(STEP_NS, END_NS, STEP_NS):
        world.run_until(end_ns - 1)
        line.run_until(end_ns)
        for name, expected in (
            ("waiting_packets", [len(one.queue) for one in codels]),
            ("waiting_bytes", [one.waiting_bytes for one in codels]),
            ("drop_count", [one.count for one in codels]),
        ):
            found = [world.register(name, FIRST_QUEUE | queue) for queue in range(QUEUES)]
            assert found == expected, (name, end_ns)
        assert world.sink()["drops"].get("port_full", 0) == line.overflowed, end_ns
        dropped = sum(len(one.dropped) for one in codels)
        assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] == dropped, end_ns
        assert world.counter("sent", SINK_PORT)[0] == line.sent, end_ns
    assert line.sent > 500
    assert (line.overflowed > 50) == (limit < 10_000)
    assert sum(len(one.dropped) for one in codels) > 10 or limit < 60  # where that is reached first
