# SPDX-License-Identifier: Apache-2.0
"""afq.p4 in virtual time beside a model of the paper's algorithm (ptf_tests/afq_oracle.py), packet by packet."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from afq_oracle import Afq
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
REASON_AQM = 11


def flows(seed: int, end_ns: int) -> list[Cbr]:
    """Four sources that come and go, together up to three times what the line takes; at times none sends."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in (1, 2, 3, 4):
        at = 1_000_000 + port
        while at < end_ns:
            length = numbers.randrange(50_000_000, 400_000_000)
            rate_bps, payload_bytes = numbers.randrange(500_000, 6_000_000), numbers.choice((100, 700, 1_472))
            out.append(Cbr(port, rate_bps, payload_bytes, at, at + length))
            at += length + numbers.randrange(1, 500_000_000)
    return out


@pytest.mark.parametrize(
    ("seed", "queues", "bytes_per_round"), [(1, 8, 2048), (2, 4, 1024), (3, 32, 512), (4, 16, 4096)]
)
def test_afq_is_the_paper_s(seed: int, queues: int, bytes_per_round: int) -> None:
    """Each packet is refused or waits as in the model, and after each one that is served the round is the model's."""
    end_ns = 3 * NS_PER_S
    sent = flows(seed, end_ns)
    world = World("afq", sent, sink_rate_bps=RATE_BPS, sink={"scheduler": "calendar", "queues": queues}, seed=seed)
    contract = load_program("afq")
    settings = contract.Settings.model_validate({"bytes_per_round": bytes_per_round, "calendar_queues": queues})
    (entry,) = contract.entries(PortState(port=SINK_PORT), settings)
    world.write(+entry)
    model, free_ns, refused, served = Afq(bytes_per_round, queues), Fraction(0), 0, 0

    def serve_until(until_ns: int) -> None:
        nonlocal free_ns, served
        while any(model.queues) and (now_ns := -(-free_ns.numerator // free_ns.denominator)) <= until_ns:
            one = model.dequeue()
            assert one is not None
            world.run_until(now_ns)
            served += 1
            free_ns += Fraction(one[1] * 8 * NS_PER_S, RATE_BPS)
            assert world.counter("sent", SINK_PORT)[0] == served, now_ns
            assert world.register("current_round", SINK_PORT) == model.current_round, now_ns

    arrivals = sorted((at, index, flow) for index, flow in enumerate(sent) for at in flow.times_ns())
    for at, index, flow in arrivals:
        serve_until(at)
        free_ns = max(free_ns, Fraction(at)) if not any(model.queues) else free_ns
        refused += not model.enqueue(index, flow.frame_bytes)
        world.run_until(at)
        assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] == refused, at
        if free_ns <= at:  # the line is free: it is served at once
            serve_until(at)
    serve_until(end_ns)
    assert refused > 100
    assert served > 500
    assert model.current_round > 4 * queues


def test_afq_goes_on_when_the_bytes_of_a_round_change() -> None:
    """A source sends less than the line takes, with rounds of 2048 bytes, then 1024, then 2048 again."""
    source = Cbr(1, RATE_BPS * 3 // 5, 958, 0, 3 * NS_PER_S)
    world = World("afq", [source], sink_rate_bps=RATE_BPS, sink={"scheduler": "calendar", "queues": 8})
    for second, shift in enumerate((11, 10, 11)):
        write = world.modify if second else world.insert
        write("afq_port", {"egress_port": SINK_PORT}, "set_afq", round_shift=shift, queues_count=8)
        world.run_until((second + 1) * NS_PER_S)
    assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] == 0
