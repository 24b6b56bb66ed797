# SPDX-License-Identifier: Apache-2.0
"""Cebinae's filter and its judgement of the flows (Yu, Sonchack, Liu, SIGCOMM 2022, sections 3 and 4), in exact numbers. Bytes, seconds.

`top` is the group of the bottlenecked flows, which are taxed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

HEAD, NEXT, DROPPED = "head", "next", "dropped"


@dataclass
class Filter:
    """The leaky-bucket filter of one port: a bucket for each group, an allowance for each group and queue."""

    capacity: Fraction
    "Bytes that the line sends in a round."
    round_s: Fraction
    allowance: dict[bool, list[Fraction]] = field(init=False)
    "By whether the group is `top`: of the queue whose turn it is, and of the next one."
    bucket: dict[bool, Fraction] = field(default_factory=lambda: {True: Fraction(0), False: Fraction(0)})

    slack: Fraction = Fraction(0)
    "By how many bytes the last packet's verdict was what it was."

    def __post_init__(self) -> None:
        self.allowance = {True: [Fraction(0)] * 2, False: [self.capacity] * 2}

    def turn(self, top_allowance: Fraction) -> None:
        """A round is over: the queues change, and the one that had its turn gets these allowances."""
        for top, value in ((True, top_allowance), (False, self.capacity - top_allowance)):
            used, ahead = self.allowance[top]
            self.bucket[top] = max(self.bucket[top] - used, Fraction(0))
            self.allowance[top] = [ahead, value]

    def arrive(self, top: bool, length: int, since_turn_s: Fraction) -> str:
        """Where a packet of a group goes that comes so long after the last turn."""
        here, ahead = self.allowance[top]
        self.bucket[top] = max(self.bucket[top], here * since_turn_s / self.round_s) + length
        beyond = self.bucket[top] - here
        self.slack = min(abs(beyond), abs(beyond - ahead))
        return HEAD if beyond <= 0 else NEXT if beyond <= ahead else DROPPED


@dataclass(frozen=True)
class Judge:
    """What is decided at the end of a period."""

    capacity: Fraction
    "Bytes that the line sends in a round (dT)."
    rounds: int = 1
    "Rounds of a period (P)."
    tax: Fraction = Fraction(1, 100)
    "tau"
    saturation_margin: Fraction = Fraction(1, 100)
    "delta_p"
    flow_margin: Fraction = Fraction(1, 100)
    "delta_f"

    def bottlenecked(self, sent: dict[int, int]) -> set[int]:
        """Which flows are, of the bytes that each sent in the period."""
        if sum(sent.values()) < self.capacity * self.rounds * (1 - self.saturation_margin):
            return set()
        largest = max(sent.values())
        return {flow for flow, count in sent.items() if count > largest * (1 - self.flow_margin)}

    def top_allowance(self, count: int) -> Fraction:
        """What flows that had `count` bytes in the period may send together in a round."""
        return min(Fraction(count) * (1 - self.tax) / self.rounds, self.capacity * (1 - self.tax))
