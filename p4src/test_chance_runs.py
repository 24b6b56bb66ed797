# SPDX-License-Identifier: Apache-2.0
"""pie.p4 and red.p4 in virtual time beside models of RFC 8033 and of Floyd and Jacobson's paper, packet by packet.

What is a matter of chance is told to the model (which packets were dropped); what is not must be the same: the delay, the average, the
probability. Of the drops their number must be what the model's probabilities add up to.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from fractions import Fraction

import pytest
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from pie_oracle import Pie
from red_oracle import Red
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
"""A byte takes 1 us."""
REASON_AQM = 11
FRAME = Cbr(1, 1, 960, 0, 0).frame_bytes


class Port:
    """What waits for a line, in exact times. The frame on the line does not wait."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, int]] = deque()
        self.free_ns = Fraction(0)
        self.delay_us = 0
        "Of the packet that left last."
        self.empty_since_us = 0

    def run_until(self, now_ns: int) -> None:
        """Everything that leaves until then."""
        while self.waiting:
            starts = -(-self.free_ns.numerator // self.free_ns.denominator)
            if starts > now_ns:
                return
            came_us, length = self.waiting.popleft()
            self.delay_us = starts // 1_000 - came_us
            self.empty_since_us = starts // 1_000 if not self.waiting else self.empty_since_us
            self.free_ns += Fraction(length * 8 * NS_PER_S, RATE_BPS)

    def take(self, now_ns: int, length: int) -> None:
        """A packet that was accepted."""
        self.free_ns = max(self.free_ns, Fraction(now_ns))
        self.waiting.append((now_ns // 1_000, length))


def flows(seed: int, end_ns: int) -> list[Cbr]:
    """Two sources of changing rates, at times silent, together up to twice what the line takes."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in (1, 2):
        at = 1_000_000 + port
        while at < end_ns:
            length = numbers.randrange(50_000_000, 500_000_000)
            out.append(
                Cbr(port, numbers.randrange(1_000_000, 9_000_000), numbers.choice((300, 960, 1_472)), at, at + length)
            )
            at += length + numbers.randrange(1, 400_000_000)
    return out


def check(
    program: str, seed: int, end_ns: int, meet: Callable[[World, Port, int], float], chosen: Callable[[float], None]
) -> None:
    """Runs a program beside a model: `meet` says a packet's chance, and compares; `chosen` hears that it was dropped."""
    sent = flows(seed, end_ns)
    world, port = World(program, sent, sink_rate_bps=RATE_BPS, seed=seed), Port()
    contract = load_program(program)
    (entry,) = contract.entries(PortState(port=SINK_PORT, rate_bps=RATE_BPS), contract.Settings())
    world.write(+entry)
    expected = variance = 0.0
    drops = 0
    for now, length in sorted((at, flow.frame_bytes) for flow in sent for at in flow.times_ns()):
        port.run_until(now)
        world.run_until(now)
        chance = meet(world, port, now // 1_000)
        expected, variance = expected + chance, variance + chance * (1 - chance)
        before, drops = drops, world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0]
        if drops > before:
            assert chance > 0, now
            chosen(chance)
        else:
            assert chance < 1, now
            port.take(now, length)
    assert drops > 20
    assert abs(drops - expected) < 4 * variance**0.5, (drops, expected)


@pytest.mark.parametrize("seed", range(1, 5))
def test_pie_is_the_rfc_s(seed: int) -> None:
    model, last_us = Pie(), 0

    def meet(world: World, port: Port, now_us: int) -> float:
        nonlocal last_us, model
        step = round(model.t_update * 1e6)
        if not port.waiting and now_us >= last_us + 1_000_000:
            model, last_us = Pie(), now_us
        current = port.delay_us / 1e6 if port.waiting else 0.0
        for _ in range(4):
            if now_us >= last_us + step:
                model.update(current)
                last_us += step
        last_us = now_us if now_us >= last_us + step else last_us
        found = world.register("drop_probability", SINK_PORT) / 2**40
        assert abs(found - model.drop_prob) < 1e-6, now_us
        return model.chance(sum(length for _, length in port.waiting))

    check("pie", seed, 6 * NS_PER_S, meet, lambda _: None)


@pytest.mark.parametrize("seed", range(1, 5))
def test_red_is_the_paper_s(seed: int) -> None:
    model = Red()

    def meet(world: World, port: Port, now_us: int) -> float:
        chance = model.arrival(len(port.waiting), now_us - port.empty_since_us)
        found = world.register("average", SINK_PORT) / 2**16
        assert abs(found - model.avg) < 0.01 + model.avg * 0.005, now_us
        return chance

    check(
        "red",
        seed,
        6 * NS_PER_S,
        meet,
        lambda chance: model.record_choice(chance == 1 and model.avg >= 2 * model.max_th),
    )
