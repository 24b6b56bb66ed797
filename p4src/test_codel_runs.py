# SPDX-License-Identifier: Apache-2.0
"""codel.p4 in virtual time beside RFC 8289's pseudo-code, packet by packet: the same drops at the same instants, the same state."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from codel_oracle import Codel, Waiting
from sim_world import NS_PER_S, SINK_PORT, Cbr, World

RATE_BPS = 8_000_000
"""A byte takes 1 us."""
END_NS = 3 * NS_PER_S
TARGET_US, INTERVAL_US, MAX_PACKET_BYTES = 5_000, 100_000, 1_514
STEP_NS = 7_000_000
"""State is compared so often."""
REASON_AQM = 11


def flows(seed: int) -> list[Cbr]:
    """Three sources of changing rates, from half of what the line takes to three times as much, of frames of all sizes."""
    numbers = random.Random(seed)
    out: list[Cbr] = []
    for port in (1, 2, 3):
        at = 1_000_000 + port
        while at < END_NS:
            length = numbers.randrange(100_000_000, 700_000_000)
            rate = numbers.randrange(500_000, 8_000_000)
            out.append(Cbr(port, rate, numbers.choice((60, 300, 960, 1_472)), at, at + length))
            at += length + numbers.randrange(1, 300_000_000)
    return out


class Line:
    """The oracle's queue on a line: what comes at exact times, what leaves as soon as the line is free."""

    def __init__(self, codel: Codel, sent: list[Cbr]) -> None:
        self.codel = codel
        arrivals = ((at, flow.port, flow.frame_bytes) for flow in sent for at in flow.times_ns())
        self.arrivals = sorted(arrivals, reverse=True)
        self.free_ns = Fraction(0)
        self.sent = 0

    def run_until(self, end_ns: int) -> None:
        """Everything that happens before `end_ns`: what comes at the instant at which the line is free comes later."""
        while True:
            at = self.arrivals[-1][0] if self.arrivals else 1 << 62
            starts = -(-self.free_ns.numerator // self.free_ns.denominator)  # whole ns, as the device has them
            if self.codel.queue and starts <= at:
                if starts >= end_ns:
                    return
                packet = self.codel.deque(starts // 1_000)
                if packet is not None:
                    self.free_ns += Fraction(packet.length * 8 * NS_PER_S, RATE_BPS)
                    self.sent += 1
                continue
            if at >= end_ns:
                return
            _, port, length = self.arrivals.pop()
            self.codel.queue.append(Waiting(at // 1_000, length, port))
            self.free_ns = max(self.free_ns, Fraction(at))


@pytest.mark.parametrize("seed", range(6))
def test_drops_and_state_are_those_of_the_rfc(seed: int) -> None:
    sent = flows(seed)
    world = World("codel", sent, sink_rate_bps=RATE_BPS)
    values = {"target_us": TARGET_US, "interval_us": INTERVAL_US, "max_packet_bytes": MAX_PACKET_BYTES, "ecn": 0}
    world.insert("codel_port", {"egress_port": SINK_PORT}, "set_codel", **values)
    line = Line(Codel(TARGET_US, INTERVAL_US, MAX_PACKET_BYTES), sent)
    codel, dropping = line.codel, 0
    for end_ns in range(STEP_NS, END_NS, STEP_NS):
        world.run_until(end_ns - 1)
        line.run_until(end_ns)
        registers = ("first_above_time", "drop_count", "last_count", "waiting_bytes")
        found = [world.register(name, SINK_PORT) for name in registers]
        assert found == [codel.first_above_time, codel.count, codel.lastcount, codel.waiting_bytes], end_ns
        # Within a us: 1/sqrt(count) has 24 bits in the switch.
        assert abs(world.register("drop_next", SINK_PORT) - codel.drop_next) <= codel.count, end_ns
        assert (world.register("drop_state", SINK_PORT) != 0) == codel.dropping, end_ns
        assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] == len(codel.dropped), end_ns
        assert world.counter("sent", SINK_PORT)[0] == line.sent, end_ns
        dropping += codel.dropping
    assert len(codel.dropped) > 100
    assert 0 < dropping < END_NS // STEP_NS - 1


def test_a_drop_takes_no_time_of_the_line() -> None:
    """Three times what the line takes, for a second: it is busy all the time, whatever CoDel drops."""
    world = World("codel", [Cbr(1, 24_000_000, 1_000, 1, NS_PER_S)], sink_rate_bps=RATE_BPS)
    values = {"target_us": TARGET_US, "interval_us": INTERVAL_US, "max_packet_bytes": MAX_PACKET_BYTES, "ecn": 0}
    world.insert("codel_port", {"egress_port": SINK_PORT}, "set_codel", **values)
    world.run_until(NS_PER_S + 1)
    assert world.counter("drops", SINK_PORT << 4 | REASON_AQM)[0] > 20
    assert world.sink()["tx_packets"] == NS_PER_S // (1_042 * 8 * NS_PER_S // RATE_BPS)
