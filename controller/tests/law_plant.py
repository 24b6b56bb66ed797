# SPDX-License-Identifier: Apache-2.0
"""A fluid model of one FIFO queue and of senders on a long path, under the law: windows in packets, in steps of a part of a round trip.

It knows what the law rests on and no more: Reno adds half a packet a round trip (delayed ACKs) and halves, CUBIC follows RFC 9438 with its
fast convergence, Vegas keeps one to three packets waiting, BBR keeps two products of its best rate in flight, whatever it loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlane_controller.programs.qthresh.law import Decision, FlowCount, Law, Port
from fairlane_controller.programs.qthresh.model import QthreshPlan

PACKET_BYTES = 1000
KEEPS = {"reno": 0.5, "cubic": 0.7, "vegas": 0.75}
"""What a window is multiplied by after a loss."""
CUBIC_C = 0.4
TAP_LEAST = 3
"""A tap waits for so many packets at the port (p4src/include/sizes.p4)."""


@dataclass
class Sender:
    """One flow."""

    kind: str
    start_s: float = 0.0
    window: float = 2.0
    sent: float = 0.0
    "Packets."
    lost: int = 0
    in_slow_start: bool = True
    lost_s: float = -9.0
    peak: float = 0.0
    "CUBIC's W_max."
    rates: list[float] = field(default_factory=list[float])
    "Packets/s, one a round trip."

    def grow(self, now_s: float, trips: float, waiting: float, base_rtt_s: float) -> None:
        """So many round trips pass, with so many of its packets waiting."""
        if self.kind == "bbr":
            if self.in_slow_start:
                self.window *= 1 + 0.9 * trips
                self.in_slow_start = len(self.rates) < 4 or max(self.rates[-3:]) >= 1.25 * max(self.rates[:-3])
            else:
                self.window = max(4.0, 2.0 * max(self.rates[-10:]) * base_rtt_s)
        elif self.in_slow_start:
            self.window *= 1 + trips * (0.25 if self.kind == "vegas" else 0.5)
            self.in_slow_start = not (self.kind == "vegas" and waiting > 1)
        elif self.kind == "vegas":
            self.window = max(2.0, self.window + 0.5 * trips * ((waiting < 1) - (waiting > 3)))
        elif self.kind == "cubic":
            since_s = now_s - self.lost_s - (max(0.0, self.peak * (1 - KEEPS["cubic"])) / CUBIC_C) ** (1 / 3)
            aim = CUBIC_C * since_s**3 + self.peak
            self.window = min(max(self.window, aim), self.window * (1 + 0.5 * trips)) + 0.15 * trips
        else:
            self.window += 0.5 * trips

    def lose(self, now_s: float, rtt_s: float) -> None:
        """A packet; several of one round trip count once."""
        if now_s - self.lost_s < rtt_s:
            return
        self.lost += 1
        self.lost_s = now_s
        if self.kind in KEEPS:
            self.in_slow_start = False
            self.peak = 0.85 * self.window if self.window < self.peak else self.window
            self.window = max(2.0, self.window * KEEPS[self.kind])

    def count(self) -> FlowCount:
        """The switch's counters of it."""
        packets = round(self.sent) + self.lost
        return FlowCount(packets, packets * PACKET_BYTES, self.lost, self.lost * PACKET_BYTES)


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    rates_bps: tuple[float, ...]
    "Of each sender, in the time that counts."
    used: float
    "Of the line."

    @property
    def fairness(self) -> float:
        """The smallest rate over the largest."""
        return min(self.rates_bps) / max(self.rates_bps)


def run(
    rate_bps: float,
    rtt_s: float,
    senders: Sequence[Sender],
    buffer_packets: int,
    *,
    end_s: float = 120.0,
    count_from_s: float = 50.0,
    law: Law[int] | None = None,
) -> Outcome:
    """Let the senders share the line, with a look of the law each second."""
    law = law or Law[int]()
    path = QthreshPlan(rate_bps, rtt_s, PACKET_BYTES, 1).path_packets
    per_packet_s = 8 * PACKET_BYTES / rate_bps
    decided: dict[int, Decision] = {}
    taps: set[int] = set()
    before = [0.0] * len(senders)
    used_s, now_s, next_s, trip_s = 0.0, 0.0, 1.0, 0.0
    step_s = min(rtt_s / 4, 0.05)
    while now_s < end_s:
        there = {number: one for number, one in enumerate(senders) if now_s >= one.start_s}
        total = sum(one.window for one in there.values())
        queue = max(0.0, total - path)
        now_rtt_s = rtt_s + queue * per_packet_s
        plan = QthreshPlan(rate_bps, rtt_s, PACKET_BYTES, max(1, len(there)), capacity_packets=buffer_packets)
        model = plan.qthresh_exact_packets
        for number, one in there.items():
            waiting, rate = one.window * queue / total, one.window / now_rtt_s
            one.sent += rate * step_s
            limit = decided[number].qthresh_packets if number in decided else None
            one.grow(now_s, step_s / now_rtt_s, waiting, rtt_s)
            if waiting > (limit or model):
                one.lose(now_s, now_rtt_s)
                if one.kind == "bbr":
                    one.window -= waiting - (limit or model)
            elif (queue > buffer_packets and waiting >= queue / len(there)) or (number in taps and queue >= TAP_LEAST):
                one.lose(now_s, now_rtt_s)
                taps.discard(number)
        if now_s - trip_s >= now_rtt_s:
            trip_s = now_s
            for one in there.values():
                one.rates.append(one.window / now_rtt_s)
        if now_s < count_from_s:
            before = [one.sent for one in senders]
        elif total > 0:
            used_s += step_s * min(1.0, total / now_rtt_s * per_packet_s)
        now_s += step_s
        if now_s >= next_s and there:
            next_s += 1.0
            port = Port(rate_bps, per_packet_s, rtt_s, buffer_packets, queue)
            found = law.step(now_s, {n: one.count() for n, one in there.items()}, port, dict.fromkeys(there, model))
            decided = found or {}
            taps |= {number for number, one in decided.items() if one.tap}
    counted_s = end_s - count_from_s
    rates = tuple(8 * PACKET_BYTES * (one.sent - sent) / counted_s for one, sent in zip(senders, before, strict=True))
    return Outcome(rates, used_s / counted_s)
