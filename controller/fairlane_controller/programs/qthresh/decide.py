# SPDX-License-Identifier: Apache-2.0
"""When the threshold of one (egress port, class) changes: pure, in virtual time; hysteresis, bounds, rate limit; and the sentence that says why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from fairlane.measure import PortMeasurement
from fairlane.text import counted, format_rate, format_size, format_time

from .model import QthreshPlan, bounded_capacity, round_half_up
from .settings import PolicySettings

LANE_MIN_PACKETS = 4
"""A lane has room for at least so many: three duplicate ACKs behind a lost packet repair it without a timeout (RFC 5681, section 3.2)."""


MIN_WRITE_INTERVAL_S = 1.0
"""At most one write in this time and policy."""
MARGIN_PACKETS, MARGIN_RATIO = 0.1, 0.02
"""Hysteresis: how far the exact value must be past the rounding boundary of the value in force, and how far as a part of that value:
a packet more or less is nothing to a threshold of a hundred."""
SPACING_TRIPS = 3.0
"""Between two refusals of a flow in its lane, in T_res: a round trip in which a whole threshold by (9), about two windows, waits."""
SPACING_RATIO = 0.25
"""A spacing in force is right when the wanted one differs from it by no more than this part."""
AGREE_RATIO = 0.05
"""Values agree when they differ by no more than a packet, or by no more than this part."""
MAX_AGE_S, MAX_T_RES_AGE_S = 3.0, 10.0
"""An older measurement of BW, L_D or N_C decides nothing, nor one of T_res, which comes from single packets: the last threshold stays
for the next flows."""


class Outcome(str, Enum):
    """What an evaluation decided."""

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
    plan: QthreshPlan | None = None
    "(9) alone."
    exact_packets: float | None = None
    "(9) within the bounds, not rounded."
    bound: str = ""
    "What keeps (9) from being in force as it is: `the shortest lane`, `the port's capacity`; empty when nothing does."
    spacing_us: int = 0
    "Between two refusals of a flow in its lane, as it should be in force after it."


@dataclass
class ThresholdDecider:
    """The state of one policy between evaluations; `in_force_packets` is what the switch has."""

    in_force_packets: int | None = None
    samples: int = 2
    "Evaluations in a row that must agree on another value."
    _candidate: int | None = None
    _agreed: int = 0
    _last_write_s: float = -math.inf

    def evaluate(
        self,
        now_s: float,
        measured: PortMeasurement,
        settings: PolicySettings,
        capacity_packets: float,
        *,
        longer: float = 1.0,
        has_lane: bool = False,
        spacing_us: int = 0,
    ) -> Decision:
        """Decide at `now_s` by (9), within the port's capacity; in lanes a threshold that is right is written once more where its spacing is wrong.

        The caller writes when the outcome is WRITE and then calls `record_write`.

        Args:
            now_s: of any one clock.
            measured: what is known of the port.
            settings: k, the class's weight.
            capacity_packets: what may wait at the port; in a lane a flow's part of it.
            longer: k is multiplied by it.
            has_lane: whether each flow has a queue of its own.
            spacing_us: what is in force between two refusals of a flow there.
        """
        known, current = _known(measured), self.in_force_packets
        if isinstance(known, str):
            self._candidate, self._agreed = None, 0
            return Decision(Outcome.NOT_READY, known, current, current, spacing_us=spacing_us)
        bw_bps, t_res_s, l_d_bytes, n_c = known
        if has_lane:
            capacity_packets = max(LANE_MIN_PACKETS, int(capacity_packets))
        capacity = bounded_capacity(int(capacity_packets), settings.weight)
        # Without the weight, by which the data plane multiplies.
        plan = QthreshPlan(bw_bps, t_res_s, l_d_bytes, max(1.0, n_c), settings.k * longer, 1.0, capacity)
        exact, bound = plan.qthresh_exact_packets, ""
        if plan.k * plan.w_best_packets > capacity:
            bound = "the port's capacity"
        elif has_lane and exact < LANE_MIN_PACKETS:
            exact, bound = float(min(LANE_MIN_PACKETS, capacity)), "the shortest lane"
        wanted_us = round(SPACING_TRIPS * 1e6 * t_res_s) if has_lane else spacing_us
        is_spaced, wanted = abs(wanted_us - spacing_us) <= SPACING_RATIO * spacing_us, round_half_up(exact)
        outcome, reason = self._decide(now_s, current, wanted, exact, is_spaced=is_spaced)
        if outcome is not Outcome.WRITE:
            return Decision(outcome, reason, current, current, plan, exact, bound, spacing_us)
        if wanted == current:
            reason = f"losses of a flow are to be {format_time(wanted_us / 1e6)} apart"
        return Decision(outcome, reason, wanted, current, plan, exact, bound, wanted_us)

    def record_write(self, now_s: float, packets: int) -> None:
        """Record that the switch has a threshold of `packets` since `now_s`."""
        self.in_force_packets, self._last_write_s = packets, now_s
        self._candidate, self._agreed = None, 0

    def may_write(self, now_s: float) -> bool:
        """Whether the last write is a minimum interval ago."""
        return now_s - self._last_write_s >= MIN_WRITE_INTERVAL_S - 1e-6

    def _decide(
        self, now_s: float, current: int | None, wanted: int, exact: float, *, is_spaced: bool
    ) -> tuple[Outcome, str]:
        if current is not None and is_spaced:
            boundary = current + 0.5 if wanted > current else current - 0.5
            margin = max(MARGIN_PACKETS, MARGIN_RATIO * current)
            if wanted == current or abs(exact - boundary) < margin:
                self._candidate, self._agreed = None, 0
                return Outcome.HOLD, "the value in force is right" if wanted == current else "within the hysteresis"
        near = max(1.0, AGREE_RATIO * wanted)
        agrees = self._candidate is not None and abs(wanted - self._candidate) <= near
        self._candidate, self._agreed = wanted, self._agreed + 1 if agrees else 1
        if self._agreed < self.samples:
            return Outcome.HOLD, f"{self._agreed} of {self.samples} evaluations agree on {wanted}"
        if not self.may_write(now_s):
            return Outcome.HOLD, "written less than the minimum interval ago"
        return Outcome.WRITE, "first threshold" if current is None else f"changed from {current} to {wanted}"


def _known(measured: PortMeasurement) -> list[float] | str:
    """BW, T_res, L_D and N_C; or what is missing of the measurements."""
    values: list[float] = []
    for name, estimate, count, oldest_s in (
        ("BW", measured.bw_bps, 2, MAX_AGE_S),
        ("T_res", measured.t_res_s, 2, MAX_T_RES_AGE_S),
        ("L_D", measured.l_d_bytes, 1, MAX_AGE_S),
        ("N_C", measured.n_c, 1, MAX_AGE_S),
    ):
        if estimate is None or estimate.count < count:
            return f"fewer than {counted(count, 'measurement')} of {name}"
        if estimate.age_s > oldest_s:
            return f"{name} was last measured {estimate.age_s:.1f} s ago, which is too old"
        values.append(estimate.value)
    return values


def lane_room(capacity_packets: int, connections: float, mean_weight: float) -> float:
    """The part of a port's `capacity_packets` of one flow per unit of its weight."""
    return capacity_packets / (max(1.0, connections) * mean_weight)


def measured_for_lanes(measured: PortMeasurement) -> PortMeasurement:
    """What (9) is computed from in lanes: the longest path, because each flow has to fill its lane by itself."""
    usual, longest = measured.t_res_s, measured.longest_s
    if usual is None or longest is None:
        return measured
    return replace(measured, t_res_s=replace(usual, value=max(usual.value, longest.value)))


def explain_decision(decision: Decision, measured: PortMeasurement) -> str:
    """Of `threshold` and `decision`; k is larger where the port's lanes are longer than (9)."""
    before, plan = decision.previous_packets, decision.plan
    bw, t_res, l_d, n_c = measured.bw_bps, measured.t_res_s, measured.l_d_bytes, measured.n_c
    texts = (
        bw and f"BW {format_rate(bw.value)}",
        t_res and f"T_res {format_time(round(t_res.value, 6))}",
        l_d and f"L_D {format_size(round(l_d.value))}",
        n_c and f"N_C {n_c.value:g}",
    )
    known = ", ".join(filter(None, texts))
    text = f"the threshold {before or 'is not set and'} stays: {decision.reason}"
    if decision.outcome is Outcome.WRITE and decision.qthresh_packets != before:
        text = f"the threshold goes from {before or 'none'} to {decision.qthresh_packets} packets"
    if plan is None:
        return f"{text} (known: {known or 'nothing'})"
    bound = f", bounded by {decision.bound}" if decision.bound else ""
    return f"{text}: (9) says {decision.exact_packets:.1f}{bound} with k {plan.k:.4g} and {known}"
