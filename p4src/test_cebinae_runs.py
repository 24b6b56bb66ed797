# SPDX-License-Identifier: Apache-2.0
"""cebinae.p4 in virtual time beside a model of the paper's filter and judgement, packet by packet: who is taxed, what is allowed, what is dropped."""

from __future__ import annotations

import random
from collections import Counter, deque
from fractions import Fraction

import pytest
from cebinae_oracle import DROPPED, HEAD, NEXT, Filter, Judge
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
"""A byte takes 1 us."""
ROUND_US = 50_000
MARGIN = Fraction(1, 5)
"""delta_p and delta_f."""
SOURCES = 5
REASON_FILTER = 11


class Line:
    """Two queues of which the one named last goes first. What left is counted as its service starts."""

    def __init__(self) -> None:
        self.waiting: tuple[deque[tuple[int, int]], ...] = (deque(), deque())
        self.head = 0
        self.free_ns = Fraction(0)
        self.sent: Counter[int] = Counter()
        "Bytes of each flow in this period."

    def run_until(self, now_ns: int) -> None:
        """All that leaves until then."""
        while any(self.waiting) and (starts := -(-self.free_ns.numerator // self.free_ns.denominator)) <= now_ns:
            queue = self.waiting[self.head] or self.waiting[1 - self.head]
            flow, length = queue.popleft()
            self.sent[flow] += length
            self.free_ns = Fraction(starts) + Fraction(length * 8 * NS_PER_S, RATE_BPS)

    def take(self, now_ns: int, queue: int, flow: int, length: int) -> None:
        """A packet that was accepted."""
        if not any(self.waiting):
            self.free_ns = max(self.free_ns, Fraction(now_ns))
        self.waiting[queue].append((flow, length))


class Model:
    """The port: turns that the first packet after them makes, and the sum of the bottlenecked flows' bytes, made a round later."""

    def __init__(self, rounds: int) -> None:
        self.judge = Judge(Fraction(RATE_BPS * ROUND_US, 8_000_000), rounds, Fraction(1, 100), MARGIN, MARGIN)
        self.line = Line()
        self.start_us: int | None = None
        self.filter = self.new_filter()
        self.round = 0
        self.last: dict[int, int] = {}
        self.candidates: set[int] = set()
        self.noted: set[int] = set()
        self.taxed: set[int] = set()
        self.allowance = Fraction(0)
        self.saturated = 0

    def new_filter(self) -> Filter:
        """As after a silence."""
        return Filter(self.judge.capacity, Fraction(ROUND_US, 1_000_000))

    def end_period(self) -> None:
        """The flows are judged."""
        self.last = dict(self.line.sent)
        self.candidates = self.judge.bottlenecked(self.last)
        self.saturated += bool(self.candidates)
        self.line.sent.clear()
        self.noted, self.round = set(), 0

    def arrive(self, now_ns: int, flow: int, length: int, allowed_bytes: int) -> str:
        """Where the packet goes. `allowed_bytes` is the program's, which must be ours as a whole number: differences do not add up then."""
        self.line.run_until(now_ns)
        now_us = now_ns // 1_000
        if self.start_us is None or now_us >= self.start_us + 2 * ROUND_US:
            before = self.saturated
            self.end_period()
            self.candidates, self.taxed, self.allowance, self.saturated = set(), set(), Fraction(0), before
            self.start_us, self.filter = now_us, self.new_filter()
        elif now_us >= self.start_us + ROUND_US:
            if self.round == 0:
                self.taxed = self.noted
                self.allowance = self.judge.top_allowance(sum(self.last[one] for one in self.noted))
                assert abs(allowed_bytes - self.allowance) < 2, now_ns
                self.allowance = Fraction(allowed_bytes)
            self.start_us += ROUND_US
            self.filter.turn(self.allowance)
            self.line.head = 1 - self.line.head
            self.round += 1
            if self.round == self.judge.rounds:
                self.end_period()
        if self.round == 0 and flow in self.candidates:
            self.noted = self.noted | {flow}
        return self.filter.arrive(flow in self.taxed, length, Fraction(now_us - self.start_us, 1_000_000))

    def take(self, now_ns: int, flow: int, length: int, verdict: str) -> None:
        """The packet goes there."""
        if verdict != DROPPED:
            self.line.take(now_ns, self.line.head if verdict == HEAD else 1 - self.line.head, flow, length)


def flows(seed: int, end_ns: int) -> list[Cbr]:
    """Sources of rates that change, at times silent; all together often more than the line takes."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in range(1, SOURCES + 1):
        at = 1_000_000 + 7 * port
        while at < end_ns:
            length = numbers.randrange(100_000_000, 900_000_000)
            rate = numbers.randrange(500_000, 3_000_000)
            out.append(Cbr(port, rate, numbers.choice((300, 960, 1_472)), at, at + length))
            at += length + numbers.choice((3, numbers.randrange(1, 400_000_000)))
    return out


@pytest.mark.parametrize(("seed", "rounds"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 1)])
def test_the_port_is_the_model_s(seed: int, rounds: int) -> None:
    end_ns = 4 * NS_PER_S
    sent = flows(seed, end_ns)
    world = World("cebinae", sent, sink_rate_bps=RATE_BPS, sink={"scheduler": "calendar", "queues": 2}, seed=seed)
    contract = load_program("cebinae")
    margins = dict.fromkeys(("saturation_margin", "flow_margin"), float(MARGIN))
    settings = contract.Settings.model_validate({"round": f"{ROUND_US}us", "period_rounds": rounds, **margins})
    (entry,) = contract.entries(PortState(port=SINK_PORT, rate_bps=RATE_BPS, queues=2), settings)
    world.write(+entry)
    model = Model(rounds)
    seen: Counter[str] = Counter()
    taxed = 0
    # A 5-tuple is a source's flow object: netsim gives each its own ports.
    arrivals = sorted((at, number, one.frame_bytes) for number, one in enumerate(sent) for at in one.times_ns())
    for now, flow, length in arrivals:
        world.run_until(now)
        allowed_bytes = world.register("allowed_bytes", SINK_PORT)
        verdict = model.arrive(now, flow, length, allowed_bytes)
        assert allowed_bytes == model.allowance, now
        dropped = world.counter("drops", SINK_PORT << 4 | REASON_FILTER)[0] > seen[DROPPED]
        if dropped != (verdict == DROPPED):
            assert model.filter.slack < 2, now  # the program's bytes are whole
            verdict = DROPPED if dropped else NEXT
        model.take(now, flow, length, verdict)
        seen[verdict] += 1
        taxed += flow in model.taxed
        assert world.counter("taxed", SINK_PORT)[0] == taxed, now
        assert world.counter("saturated", SINK_PORT)[0] == model.saturated, now
    assert min(seen.values()) > 20, seen
    assert taxed > 100
    assert model.saturated > 5
