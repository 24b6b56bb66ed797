# SPDX-License-Identifier: Apache-2.0
"""pie.p4, dualpi2.p4, red.p4, fred.p4 and afd.p4 in virtual time beside models of RFC 8033, RFC 9332 and the papers, packet by packet.

What is a matter of chance is told to the model (which packets were dropped); what is not must be the same: the delay, the average, the
probability. Of the drops their number must be what the model's probabilities add up to.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from afd_oracle import Afd
from dualpi2_oracle import DualPi2
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from pie_oracle import Pie
from red_oracle import Fred, Red
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
"""A byte takes 1 us."""
REASON_AQM, REASON_OVERLOAD = 11, 13
FRAME = Cbr(1, 1, 960, 0, 0).frame_bytes


class Port:
    """What waits for a line, in exact times. The frame on the line does not wait. `left` hears how many packets still wait as one leaves."""

    def __init__(self, left: Callable[[int], None]) -> None:
        self.left = left
        self.waiting: deque[tuple[int, int, int]] = deque()
        self.free_ns = Fraction(0)
        self.delay_us = 0
        "Of the packet that left last."
        self.empty_since_us = 0
        self.arriving: tuple[int, int] = (0, 0)
        "The flow and the length of the packet that comes."

    def run_until(self, now_ns: int) -> None:
        """Everything that leaves until then."""
        while self.waiting:
            starts = -(-self.free_ns.numerator // self.free_ns.denominator)
            if starts > now_ns:
                return
            came_us, length, _ = self.waiting.popleft()
            self.delay_us = starts // 1_000 - came_us
            self.empty_since_us = starts // 1_000 if not self.waiting else self.empty_since_us
            self.free_ns += Fraction(length * 8 * NS_PER_S, RATE_BPS)
            self.left(len(self.waiting))

    def take(self, now_ns: int, length: int, source: int) -> None:
        """A packet that was accepted."""
        self.free_ns = max(self.free_ns, Fraction(now_ns))
        self.waiting.append((now_ns // 1_000, length, source))

    def waiting_bytes(self) -> int:
        """Of all packets."""
        return sum(length for _, length, _ in self.waiting)


def flows(seed: int, end_ns: int, sources: int = 2) -> list[Cbr]:
    """Two sources of changing rates, at times silent, together up to twice what the line takes; or more of them."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in range(1, sources + 1):
        at = 1_000_000 + port
        while at < end_ns:
            length = numbers.randrange(50_000_000, 500_000_000)
            out.append(
                Cbr(port, numbers.randrange(1_000_000, 9_000_000), numbers.choice((300, 960, 1_472)), at, at + length)
            )
            at += length + numbers.randrange(1, 400_000_000)
    return out


def check(
    program: str,
    seed: int,
    end_ns: int,
    meet: Callable[[World, Port, int], float],
    chosen: Callable[[float], None],
    taken: Callable[[int], None] = lambda _: None,
    left: Callable[[int], None] = lambda _: None,
    sources: int = 2,
    **settings: Any,
) -> None:
    """Runs a program beside a model: `meet` says a packet's chance, and compares; `chosen` hears that it was dropped, `taken` that
    it was not, with the packets that wait before it; `left` hears of those that leave, as Port's does."""
    sent = flows(seed, end_ns, sources)
    world, port = World(program, sent, sink_rate_bps=RATE_BPS, seed=seed), Port(left)
    contract = load_program(program)
    (entry,) = contract.entries(PortState(port=SINK_PORT, rate_bps=RATE_BPS), contract.Settings(**settings))
    world.write(+entry)
    expected = variance = 0.0
    drops = 0
    arrivals = sorted((at, one.frame_bytes, number) for number, one in enumerate(sent) for at in one.times_ns())
    for now, length, source in arrivals:
        port.run_until(now)
        port.arriving = (source, length)
        world.run_until(now)
        chance = meet(world, port, now // 1_000)
        expected, variance = expected + chance, variance + chance * (1 - chance)
        before, drops = drops, world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0]
        if drops > before:
            assert chance > 0, now
            chosen(chance)
        else:
            assert chance < 1, now
            taken(len(port.waiting))
            port.take(now, length, source)
    assert drops > 20
    assert abs(drops - expected) <= 4 * variance**0.5, (drops, expected)


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
        return model.chance(port.waiting_bytes())

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


def test_the_average_of_a_longer_queue_than_it_holds_is_the_most_that_it_holds() -> None:
    """The average has 16 bits of whole packets, and 70,000 packets wait."""
    world = World("red", [Cbr(1, 1_400_000_000, 50, 0, 20_000_000)], sink_rate_bps=1_000)
    far = {"min_th": 0xFFFFFFFF, "max_th": 0xFFFFFFFF, "max_p": 0, "slope": 0, "gentle_slope": 0}
    world.insert("red_port", {"egress_port": SINK_PORT}, "set_red", weight=1, decay=0, ecn=0, **far)
    world.run_until(20_000_000)
    assert world.register("waiting_packets", SINK_PORT) == 69_999
    assert world.register("average", SINK_PORT) >> 16 >= 0xFFFE


@pytest.mark.parametrize("seed", range(1, 5))
def test_fred_is_the_paper_s(seed: int) -> None:
    model, found, count = Fred(min_th=5, max_th=9, max_p=0.1, min_q=2), 0.0, 0

    def meet(world: World, port: Port, now_us: int) -> float:
        nonlocal found, count
        waiting = Counter(source for _, _, source in port.waiting)
        assert world.register("active_flows", SINK_PORT) <= len(waiting) + 1, now_us  # this one may have come in
        found, count = world.register("average", SINK_PORT) / 2**16, world.register("since_drop", SINK_PORT) - 1
        return model.decide(port.arriving[0], waiting, now_us - port.empty_since_us)

    def sample(waiting: int) -> None:
        model.sample(waiting)
        model.avg = math.ceil(model.avg * 2**16) / 2**16  # a threshold met to the bit is met by both

    def compare() -> None:
        assert abs(found - model.avg) < 0.01 + model.avg * 0.005
        assert count == model.count
        model.avg = found  # its comparisons are with this one

    def chosen(_: float) -> None:
        if model.drawn:
            model.record_choice(False)
        compare()

    def taken(waiting: int) -> None:
        if waiting:  # else it has left at once
            sample(waiting)
            compare()

    check("fred", seed, 6 * NS_PER_S, meet, chosen, taken, sample, seed + 3, min_th=5, max_th=9, max_p=0.1, min_q=2)


class ShadowBuffer:
    """Which packet goes when one comes into afd.p4's shadow buffer: the one by which `flow_bytes` is less than it would be."""

    CELLS = 1024
    """flow_bytes of a port."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}
        "`flow_bytes` of each flow, after the arrival before."
        self.cells: dict[int, int] = {}
        "Index of each flow in `flow_bytes`."

    def gone(self, world: World, flow: int, length: int) -> tuple[int, int]:
        """The flow and the length of the packet whose place this one took, which is in now; (0, 0): of none."""
        if flow not in self.cells:
            cells = range(SINK_PORT * self.CELLS, (SINK_PORT + 1) * self.CELLS)
            used = {cell for cell in cells if world.register("flow_bytes", cell)}
            (self.cells[flow],) = used - {*self.cells.values()}
        before, self.bytes = self.bytes, {one: world.register("flow_bytes", cell) for one, cell in self.cells.items()}
        less = {one: before.get(one, 0) + (length if one == flow else 0) - now for one, now in self.bytes.items()}
        return next(((one, size) for one, size in less.items() if size), (0, 0))


@pytest.mark.parametrize("seed", range(1, 5))
def test_afd_is_the_paper_s(seed: int) -> None:
    model, shadow, last_us, arrivals = Afd(q_target=20_000, alpha=1.5, beta=2, ceiling=512 * 1514), ShadowBuffer(), 0, 0

    def meet(world: World, port: Port, now_us: int) -> float:
        nonlocal last_us, arrivals
        model.arrive(*port.arriving, shadow.gone(world, *port.arriving))
        arrivals += 1
        if arrivals == model.b:
            # Drawn at random, a place is still empty with the chance 1/e: 188 of 512, with a deviation of 8.
            assert 150 < model.shadow[0, 0] < 230
        if last_us == 0:
            last_us = now_us
        elif now_us - last_us >= 6_250:
            model.update(port.waiting_bytes())
            last_us = now_us
        assert world.register("fair_share", SINK_PORT) == model.m_fair * 1024, now_us
        return model.chance(port.arriving[0])

    check("afd", seed, 6 * NS_PER_S, meet, lambda _: None, queue_target=20_000, sample=1, alpha=1.5, beta=2)
    assert model.shadow[0, 0] < 5


@dataclass(frozen=True)
class Counts:
    """What dualpi2.p4 has counted at the port: drops of both queues, and marks."""

    dropped: int = 0
    overload: int = 0
    marked: int = 0

    @classmethod
    def of(cls, world: World) -> Counts:
        """As they are now."""
        cells = (
            ("drops", SINK_PORT << 4 | REASON_AQM),
            ("drops", SINK_PORT << 4 | REASON_OVERLOAD),
            ("marked", SINK_PORT),
        )
        return cls(*(world.counter(name, index)[0] for name, index in cells))


class TwoQueues:
    """The queues of a line that serves L4S packets first. The frame on the line does not wait."""

    def __init__(self) -> None:
        self.waiting: dict[bool, deque[tuple[int, int]]] = {True: deque(), False: deque()}
        self.waited_us = 0
        "The packet that was served last."
        self.delay_us = {True: 0, False: 0}
        "Of each queue's packet that was served last; 0: nothing waits behind it."
        self.free_ns = Fraction(0)

    def next_ns(self) -> int | None:
        """When the next packet is served; None: nothing waits."""
        return -(-self.free_ns.numerator // self.free_ns.denominator) if any(self.waiting.values()) else None

    def take(self, now_ns: int, length: int, l4s: bool) -> None:
        """A packet came."""
        if not any(self.waiting.values()):
            self.free_ns = max(self.free_ns, Fraction(now_ns))
        self.waiting[l4s].append((now_ns // 1_000, length))

    def serve(self, now_us: int) -> tuple[bool, int]:
        """Take the next packet out: (whether it is an L4S packet, its length)."""
        l4s = bool(self.waiting[True])
        came_us, length = self.waiting[l4s].popleft()
        self.waited_us = now_us - came_us
        self.delay_us[l4s] = self.waited_us if self.waiting[l4s] else 0
        return l4s, length

    def curq_us(self, l4s: bool) -> int:
        """max(cq.time(), lq.time()) as a packet of this queue is served."""
        return max(self.waited_us, self.delay_us[not l4s])


@pytest.mark.parametrize("seed", range(1, 7))
def test_dualpi2_is_the_rfc_s(seed: int) -> None:
    """recur() leaves nothing to chance: what was chosen of a queue is never a packet away from what the likelihoods add up to."""
    end_ns, l4s_times = 6 * NS_PER_S, 1 + seed % 3  # up to three times what the line takes: overload
    sent = [
        replace(flow, ect1=flow.port == 1, rate_bps=flow.rate_bps * (l4s_times if flow.port == 1 else 1))
        for flow in flows(seed, end_ns)
    ]
    contract = load_program("dualpi2")
    world, port, model, last_us = World("dualpi2", sent, sink_rate_bps=RATE_BPS, seed=seed), TwoQueues(), DualPi2(), 0
    (entry,) = contract.entries(PortState(port=SINK_PORT, rate_bps=RATE_BPS), contract.Settings())
    world.write(+entry)
    step_us = round(model.t_update * 1e6)
    totals = {True: [0.0, 0], False: [0.0, 0]}  # of each queue: likelihoods, packets chosen
    seen = Counts()
    overloads = natives = 0

    def serve_until(until_ns: int) -> None:
        nonlocal last_us, seen, overloads, natives
        while (now_ns := port.next_ns()) is not None and now_ns <= until_ns:
            world.run_until(now_ns)
            now = Counts.of(world)
            dropped = {True: now.overload - seen.overload, False: now.dropped - seen.dropped}
            marked, seen = now.marked - seen.marked, now
            while any(port.waiting.values()):
                l4s, length = port.serve(now_ns // 1_000)
                while now_ns // 1_000 >= last_us + step_us:
                    model.update(port.curq_us(l4s) / 1e6)
                    last_us += step_us
                likelihood = model.likelihood(l4s, port.waited_us / 1e6, len(port.waiting[l4s]))
                overloads += l4s and model.overload
                natives += likelihood > model.k * model.p
                drops = dropped[l4s] > 0
                chosen = drops or (l4s and not model.overload and marked == 1)
                totals[l4s][0] += likelihood
                totals[l4s][1] += chosen
                assert -0.01 < totals[l4s][0] - totals[l4s][1] < 1.01, (now_ns, l4s, totals)
                assert not (l4s and drops and not model.overload), now_ns
                if not drops:
                    assert not (l4s and model.overload and marked == 0), now_ns
                    assert marked == 0 or l4s, now_ns
                    port.free_ns += Fraction(length * 8 * NS_PER_S, RATE_BPS)
                    break
                dropped[l4s] -= 1
            assert dropped == {True: 0, False: 0}, now_ns
            found = world.register("base_probability", SINK_PORT) / 2**40
            assert abs(found - model.p) < 1e-5, now_ns  # alpha is rounded to 2^-40 a us, 2e-6 of it

    for at, length, l4s in sorted((at, flow.frame_bytes, flow.ect1) for flow in sent for at in flow.times_ns()):
        serve_until(at)
        port.take(at, length, l4s)
    serve_until(end_ns)
    assert totals[True][1] > 20
    assert totals[False][1] > 5
    assert natives > 20
    assert overloads > 20 or l4s_times == 1


@pytest.mark.parametrize(("rate_bps", "settings"), [(2_000, {}), (1_000_000, {"target": "40us"})])
def test_dualpi2_holds_a_queue_whose_packets_are_more_than_256_updates_apart(
    rate_bps: int, settings: dict[str, str]
) -> None:
    """600 packets come while the line takes 400: most of the others are dropped."""
    source = Cbr(1, rate_bps * 3 // 2, 1_472, 0, 600 * 1_472 * 8 * NS_PER_S // (rate_bps * 3 // 2))
    world, contract = World("dualpi2", [source], sink_rate_bps=rate_bps), load_program("dualpi2")
    (entry,) = contract.entries(
        PortState(port=SINK_PORT, rate_bps=rate_bps), contract.Settings.model_validate(settings)
    )
    world.write(+entry)
    world.run_until(source.stop_ns)
    assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] > 150
