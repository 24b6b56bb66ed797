# SPDX-License-Identifier: Apache-2.0
"""Self-tuning of the threshold: packets more or fewer than eq. (9), from what the flows really get; pure, in virtual time.

Equation (9) leaves its constant open, and no constant is fair for every start: Vegas freezes on any whole number of
its alpha..beta band, decided by how the run begins, while the mean window of a flow that the threshold holds (Reno)
follows Qthresh. So the loop looks at the flows' own counters: the *held* flows are those that the threshold drops
from, the *free* ones those that stay below it. Held flows that get more than the free ones need a smaller threshold,
and the other way round. Fairness is not monotonic in Qthresh, so what was measured at each value is remembered: once
the sign turns between two neighbours the better one stays in force until it gets worse.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FlowId = Any


@dataclass(frozen=True)
class FlowCount:
    """Counters of one flow so far, in packets and bytes; `weight` is its share (QoS)."""

    arrived_packets: int
    arrived_bytes: int
    dropped_packets: int
    dropped_bytes: int
    weight: float = 1.0


@dataclass(frozen=True)
class BalanceOptions:
    """How eager the tuning is."""

    window_s: float = 3.0
    "Counters are compared over this time: several saw-teeth of a held flow."
    settle_s: float = 1.0
    "After a change of the threshold this time is not counted."
    deadband: float = 0.15
    "Rates whose ratio is within 1 ± this are fair enough."
    worse: float = 0.15
    "A chosen value is left when |ln ratio| there grows by this."
    big_step_ratio: float = 2.0
    "From this ratio on the threshold moves by two packets."
    low_factor: float = 0.5
    high_factor: float = 1.6
    "The tuned threshold stays between these multiples of (9)."
    max_flows: int = 64
    "With more flows than this (9) alone decides."
    wait_s: float = 5.0
    "How long a change that was asked for may take to come into force before the tuning goes on without it."
    active_s: float = 2.0
    "A flow without a packet for this long does not count."


@dataclass(frozen=True)
class Balance:
    """Mean rates of the held and the free flows in a window, bit/s per unit of weight."""

    held_bps: float
    free_bps: float
    held: int
    free: int

    @property
    def ratio(self) -> float:
        """held / free."""
        return self.held_bps / self.free_bps if self.free_bps > 0 else math.inf


@dataclass
class Balancer:
    """The self-tuning of one (egress port, class)."""

    options: BalanceOptions = field(default_factory=BalanceOptions)
    trim_packets: int = 0
    "What is added to (9)."
    last: Balance | None = None
    "The newest measurement."
    _history: deque[tuple[float, dict[FlowId, FlowCount]]] = field(
        default_factory=lambda: deque[tuple[float, dict[FlowId, FlowCount]]]()
    )
    _moved: dict[FlowId, tuple[int, float]] = field(default_factory=lambda: dict[FlowId, tuple[int, float]]())
    "Packets of each flow, and when they last grew."
    _tried: dict[int, float] = field(default_factory=lambda: dict[int, float]())
    "ln ratio last seen at each threshold, in packets."
    _owners: set[FlowId] = field(default_factory=lambda: set[FlowId]())
    "The flows from which `trim_packets` was learnt."
    _in_force: int | None = None
    _planned: int | None = None
    _not_before_s: float = -math.inf
    _wanted: tuple[int, float] | None = None
    "The threshold that was asked for, and until when it is waited for."
    _chosen: tuple[int, float] | None = None

    def observe(
        self, now_s: float, counts: Mapping[FlowId, FlowCount], in_force_packets: int, planned_packets: int
    ) -> bool:
        """Counters read at `now_s` while `in_force_packets` is in force and (9) alone says `planned_packets`.

        Returns whether `trim_packets` changed.
        """
        if (in_force_packets, planned_packets) != (self._in_force, self._planned):
            if planned_packets != self._planned:
                self._start_anew()
            self._in_force, self._planned = in_force_packets, planned_packets
            self._history.clear()
            self._not_before_s = now_s + self.options.settle_s
        active = self._active(now_s, counts)
        if self._history and set(self._history[-1][1]) != set(active):
            self._history.clear()
            self._start_anew()
        if self.trim_packets and not self._owners & set(active):
            self.trim_packets = 0
            return True
        if self._wanted is not None:
            packets, until_s = self._wanted
            if in_force_packets != packets and now_s < until_s:
                return False  # the last change is not in force yet
            self._wanted = None
        if now_s < self._not_before_s or len(active) > self.options.max_flows:
            return False
        self._history.append((now_s, active))
        since_s = now_s - self._history[0][0]
        if since_s < self.options.window_s - 1e-9:
            return False
        self.last = measure(self._history[0][1], active, since_s)
        self._history.popleft()
        if self.last is None or self.last.held_bps <= 0 or self.last.free_bps <= 0:
            return False
        changed = self._decide(in_force_packets, planned_packets, math.log(self.last.ratio))
        if changed:
            self._owners = set(active)
            self._wanted = (planned_packets + self.trim_packets, now_s + self.options.wait_s)
        return changed

    def _active(self, now_s: float, counts: Mapping[FlowId, FlowCount]) -> dict[FlowId, FlowCount]:
        moved: dict[FlowId, tuple[int, float]] = {}
        for flow, count in counts.items():
            packets, since_s = self._moved.get(flow, (count.arrived_packets, -math.inf))
            moved[flow] = (count.arrived_packets, now_s if count.arrived_packets > packets else since_s)
        self._moved = moved
        return {flow: counts[flow] for flow, (_, since_s) in moved.items() if now_s - since_s <= self.options.active_s}

    def _start_anew(self) -> None:
        """What was measured at each threshold belongs to other flows or another link."""
        self._tried.clear()
        self._chosen = None

    def _decide(self, current: int, planned: int, log_ratio: float) -> bool:
        options = self.options
        self._tried[current] = log_ratio
        if self._chosen is not None:
            packets, was = self._chosen
            if current == packets and abs(log_ratio) <= abs(was) + options.worse:
                return False
            self._chosen = None
            self._tried = {current: log_ratio}
        if abs(log_ratio) <= math.log1p(options.deadband):
            self._chosen = (current, log_ratio)
            return False
        direction = -1 if log_ratio > 0 else 1
        low = max(2, math.floor(planned * options.low_factor))
        high = max(low, math.ceil(planned * options.high_factor))
        target = current + direction
        if abs(log_ratio) >= math.log(options.big_step_ratio) and not {target, target + direction} & set(self._tried):
            target += direction
        target = min(max(target, low), high)
        if target == current or target in self._tried:
            # Bracketed, or at a bound: the best of what was seen.
            target = min(self._tried, key=lambda packets: abs(self._tried[packets]))
            self._chosen = (target, self._tried[target])
        if target == current:
            return False
        self.trim_packets = target - planned
        return True


def measure(before: Mapping[FlowId, FlowCount], after: Mapping[FlowId, FlowCount], seconds: float) -> Balance | None:
    """Held and free flows between two readings; None unless there is at least one of each.

    A flow is held when the threshold dropped from it at least half as often as from the flow with the most drops.
    """
    rates: list[tuple[float, int]] = []
    for flow, now in after.items():
        then = before.get(flow)
        if then is None or now.arrived_packets <= then.arrived_packets or now.weight <= 0:
            continue
        carried = (now.arrived_bytes - then.arrived_bytes) - (now.dropped_bytes - then.dropped_bytes)
        rates.append((8 * carried / seconds / now.weight, now.dropped_packets - then.dropped_packets))
    most = max((drops for _, drops in rates), default=0)
    if most <= 0:
        return None
    held = [rate for rate, drops in rates if 2 * drops >= most]
    free = [rate for rate, drops in rates if 2 * drops < most]
    if not held or not free:
        return None
    return Balance(sum(held) / len(held), sum(free) / len(free), len(held), len(free))
