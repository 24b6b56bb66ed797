# SPDX-License-Identifier: Apache-2.0
"""When the threshold of one (egress port, class) changes: pure, in virtual time; hysteresis, bounds, rate limit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from . import model as qthresh

if TYPE_CHECKING:  # `status` decides nothing
    from fairlane.measure import PortMeasurement

    from .settings import QthreshLoop

LANE_MIN_PACKETS = 4
"""A lane holds at least so many: three duplicate ACKs behind a lost packet repair it without a timeout (RFC 5681, section 3.2)."""

MIN_BW_COUNT = 2
"""Reports of the drain rate before the first decision."""
MIN_T_RES_COUNT = 2
"""T_res observations before the first decision."""


class Outcome(str, Enum):
    """What an evaluation said."""

    WRITE = "write"
    HOLD = "hold"
    NOT_READY = "not_ready"


@dataclass(frozen=True)
class Decision:
    """One evaluation with its inputs; `qthresh_packets` is what should be in force after it."""

    outcome: Outcome
    reason: str
    qthresh_packets: int | None
    previous_packets: int | None
    plan: qthresh.QthreshPlan | None
    "(9) alone."
    exact_packets: float | None = None
    "(9) within the bounds, not rounded."
    bound: str = ""
    "What keeps (9) from being in force as it is: `the minimum`, `the maximum`, `the port's capacity`; empty when nothing does."

    def to_json(self) -> dict[str, Any]:
        """For the event log."""
        return {**asdict(self), "outcome": self.outcome.value}


@dataclass
class ThresholdDecider:
    """The state of one policy between evaluations; `in_force_packets` is what the switch holds."""

    options: QthreshLoop
    in_force_packets: int | None = None
    _candidate: int | None = None
    _agreed: int = 0
    _last_write_s: float | None = None

    def evaluate(
        self,
        now_s: float,
        measured: PortMeasurement,
        *,
        weight: float,
        k: float,
        capacity_packets: int,
        min_packets: int | None = None,
        max_packets: int | None = None,
        lanes: int = 0,
        mean_weight: float = 1.0,
    ) -> Decision:
        """Decide at `now_s` by (9), within `min_packets` and `max_packets` where they are given and the port's capacity; with `lanes`
        within a flow's part of that, where the flows' weights have that mean.

        The caller writes when the outcome is WRITE and then calls `written`.
        """
        ready, reason = self._ready(measured)
        if not ready:
            self._candidate, self._agreed = None, 0
            return Decision(Outcome.NOT_READY, reason, self.in_force_packets, self.in_force_packets, None)
        assert measured.bw_bps is not None
        assert measured.t_res_s is not None
        assert measured.l_d_bytes is not None
        assert measured.n_c is not None
        if lanes:
            capacity_packets = max(LANE_MIN_PACKETS, int(lane_room(capacity_packets, measured.n_c.value, mean_weight)))
            min_packets = LANE_MIN_PACKETS if min_packets is None else min_packets
        capacity = bounded_capacity(capacity_packets, weight)
        plan = qthresh.plan(
            measured.bw_bps.value,
            measured.t_res_s.value,
            measured.l_d_bytes.value,
            max(1.0, measured.n_c.value),
            k=k,
            weight=1.0,  # the data plane multiplies by the class's weight
            capacity_packets=capacity,
        )
        free = k * plan.w_best_packets
        exact, bound = plan.qthresh_exact_packets, "the port's capacity" if free > capacity else ""
        if max_packets is not None and exact > max_packets:
            exact, bound = float(max_packets), "the maximum"
        if min_packets is not None and exact < min_packets:
            exact, bound = float(min(min_packets, capacity)), "the minimum"
        return self._decide(now_s, plan, exact, bound)

    def record_write(self, now_s: float, packets: int) -> None:
        """Record that the switch has a threshold of `packets` since `now_s`."""
        self.in_force_packets = packets
        self._last_write_s = now_s
        self._candidate, self._agreed = None, 0

    def may_write(self, now_s: float) -> bool:
        """Whether the last write is a minimum interval ago."""
        return self._last_write_s is None or now_s - self._last_write_s >= self.options.min_write_interval - 1e-6

    def _ready(self, measured: PortMeasurement) -> tuple[bool, str]:
        options = self.options
        needs = (
            ("BW", measured.bw_bps, MIN_BW_COUNT, options.max_age),
            ("T_res", measured.t_res_s, MIN_T_RES_COUNT, options.max_t_res_age),
            ("L_D", measured.l_d_bytes, 1, options.max_age),
            ("N_C", measured.n_c, 1, options.max_age),
        )
        for name, estimate, count, max_age_s in needs:
            if estimate is None:
                return False, f"no measurement of {name} yet"
            if estimate.count < count:
                return False, f"{estimate.count} of {count} measurements of {name}"
            if estimate.age_s > max_age_s:
                return False, f"{name} was last measured {estimate.age_s:.1f} s ago: nothing to go by"
        return True, ""

    def _decide(self, now_s: float, plan: qthresh.QthreshPlan, exact_packets: float, bound: str) -> Decision:
        current, wanted = self.in_force_packets, qthresh.round_half_up(exact_packets)

        def say(outcome: Outcome, reason: str) -> Decision:
            target = wanted if outcome is Outcome.WRITE else current
            return Decision(outcome, reason, target, current, plan, exact_packets, bound)

        if current is not None:
            boundary = current + 0.5 if wanted > current else current - 0.5
            past = abs(exact_packets - boundary)
            margin = max(self.options.margin_packets, self.options.margin_ratio * current)
            if wanted == current or past < margin:
                self._candidate, self._agreed = None, 0
                text = "the value in force is right" if wanted == current else "within the hysteresis"
                return say(Outcome.HOLD, text)
        near = max(1.0, self.options.agree_ratio * wanted)
        agrees = self._candidate is not None and abs(wanted - self._candidate) <= near
        self._candidate, self._agreed = wanted, self._agreed + 1 if agrees else 1
        if self._agreed < self.options.samples:
            return say(Outcome.HOLD, f"{self._agreed} of {self.options.samples} evaluations agree on {wanted}")
        if not self.may_write(now_s):
            return say(Outcome.HOLD, "written less than the minimum interval ago")
        return say(Outcome.WRITE, "first threshold" if current is None else f"changed from {current} to {wanted}")


def lane_room(capacity_packets: int, connections: float, mean_weight: float) -> float:
    """The part of a port's `capacity_packets` of one flow per unit of its weight."""
    return capacity_packets / (max(1.0, connections) * mean_weight)


def measured_for(lanes: int, measured: PortMeasurement) -> PortMeasurement:
    """What (9) is to go by: in `lanes` the longest path, because each flow has to fill its lane by itself."""
    known = measured.t_res_s, measured.longest_s
    if not lanes or known[0] is None or known[1] is None or known[1].value <= known[0].value:
        return measured
    return replace(measured, t_res_s=replace(known[0], value=known[1].value, uncertainty=known[1].uncertainty))


def bounded_capacity(capacity_packets: int, weight: float) -> int:
    """The largest threshold whose product with `weight` still fits the port's queue; at least the minimum."""
    limit = capacity_packets if capacity_packets > 0 else qthresh.QTHRESH_MAX_PACKETS
    if weight > 1.0:
        limit = int(limit / weight)
    return max(qthresh.QTHRESH_MIN_PACKETS, min(limit, qthresh.QTHRESH_MAX_PACKETS))
