# SPDX-License-Identifier: Apache-2.0
"""Self-tuning: a threshold for each flow, moved around eq. (9) by what the flow really gets; pure, in virtual time.

Equation (9) leaves its constant open, and no constant is fair for every start: Vegas freezes on any whole number of its
alpha..beta band, decided by how the run begins, and Reno's mean window follows Qthresh in steps. So each flow has an
integral controller on its share. With x_i the flow's goodput per unit of weight, f the mean of all x_j and
e_i = (x_i - f)/f, once a period dt:

    z_i <- z_i - k_i * e_i * dt - k_c * mean(z) * dt    (bounded)
    c   <- c + k_u * min(U - u, m) * dt  while the line idles and thresholds refuse packets, else c falls back to 0
    Qthresh_i = Qthresh_(9) * w_i * exp(z_i + c - k_p * e_i)

A flow above its share gets a smaller threshold until it is held there; the sum of e_i over time, which the integral
drives to zero, is what fairness over a run measures. What all z_i have in common says nothing about shares and goes to
0 by itself (k_c), so (9) stays the measure of the whole queue; c lifts it where (9) is too small for the line: u is the
line's utilisation, U what it should be at least. No more than m counts of one period's idleness: a host that stood still
for a moment says nothing about thresholds. Below `idle_utilisation` no z_i falls because of its e_i.

Shares are max-min: f is the mean over the flows that want it. A flow that is young, or gets less than `elastic_ratio`
of f (an interactive one, a short transfer), asks for no more than it has; it has its threshold by (9) and counts for
nothing in f. Thresholds are whole packets in the data plane: what rounding cuts off is carried to the next period, so
their mean over time is the real number (first-order sigma-delta).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Flow = TypeVar("Flow", bound=Hashable)


@dataclass(frozen=True)
class FlowCount:
    """Counters of one flow so far, in packets and bytes; `weight` is its share (QoS)."""

    arrived_packets: int
    arrived_bytes: int
    dropped_packets: int
    dropped_bytes: int
    weight: float = 1.0

    @property
    def carried_bytes(self) -> int:
        """Bytes that were admitted."""
        return self.arrived_bytes - self.dropped_bytes


@dataclass(frozen=True)
class ShareOptions:
    """How eager the tuning is."""

    period_s: float = 1.0
    "dt: between two decisions, each at most one write."
    integral_per_s: float = 0.5
    "k_i: how fast the logarithm of the threshold moves for a flow that gets twice its share."
    proportional: float = 0.2
    "k_p."
    common_per_s: float = 0.1
    "k_c."
    low_factor: float = 1 / 16
    high_factor: float = 4.0
    """A flow's threshold stays between these multiples of (9). The lower one is for paths that hold tens of packets of each flow: there (9) is tens of packets,
    and beside Vegas, which keeps three waiting at most, Reno needs as few."""
    utilisation: float = 0.98
    "U."
    utilisation_per_s: float = 2.0
    "k_u."
    utilisation_missing_max: float = 0.03
    "m."
    idle_utilisation: float = 0.9
    "Below this no z_i falls because of its e_i: on a line that idles nobody takes another one's share."
    utilisation_over_s: float = 3.0
    "u is a mean over about this time: the queue's own movement is no idle line."
    max_common_factor: float = 1.5
    "exp(c) at most: no experiment needs more, and hosts that stand still on a busy machine look like thresholds that are too small."
    elastic_ratio: float = 0.25
    "A flow that gets less than this part of the others' mean is limited by what it asks for."
    young_s: float = 2.0
    "So long is a new flow taken for a short one."
    max_flows: int = 256
    "With more flows than this (9) alone decides."
    active_s: float = 2.0
    "A flow without a packet for this long has no share to get."


@dataclass
class _State:
    born_s: float
    log_factor: float = 0.0
    """z_i."""
    carry: float = 0.0
    """What rounding cut off so far, in packets."""
    moved_s: float = -math.inf
    """When its counters last grew."""
    usual_bps: float | None = None
    """Its rate per unit of weight, smoothed."""
    last: FlowCount | None = None


@dataclass(frozen=True)
class Share:
    """One flow at a decision: its rate per unit of weight, its error e_i and the threshold it should have."""

    rate_bps: float
    error: float
    exact_packets: float
    qthresh_packets: int


@dataclass
class ShareTuner(Generic[Flow]):
    """The flows of one (egress port, class)."""

    options: ShareOptions = field(default_factory=ShareOptions)
    last: dict[Flow, Share] = field(default_factory=lambda: {})
    "The newest decision."
    log_common: float = 0.0
    "c."
    utilisation: float | None = None
    "u; None before the first reading, or where the line's rate is not known."
    _states: dict[Flow, _State] = field(default_factory=lambda: {})
    _observed_s: float | None = None

    def observe(
        self,
        now_s: float,
        counts: Mapping[Flow, FlowCount],
        model_packets: float,
        capacity_packets: int,
        in_force_packets: Mapping[Flow, int] | None = None,
        line_bps: float | None = None,
    ) -> dict[Flow, int] | None:
        """Counters read at `now_s` while (9) says `model_packets`: the thresholds in packets that should be in force.

        None for the first reading. A flow that is not in the answer should have what (9) says: it asks for less than
        its share; so all of them when fewer than two ask for theirs, or there are more than `max_flows`. A flow that is
        new here goes on from `in_force_packets`, if it is there. `line_bps` is the line's rate in bit/s, where known.
        """
        before_s, self._observed_s = self._observed_s, now_s
        first, elapsed_s = before_s is None, now_s - (now_s if before_s is None else before_s)
        for flow in counts.keys() - self._states.keys():
            packets = (in_force_packets or {}).get(flow)
            factor = 1.0 if packets is None else packets / (model_packets * counts[flow].weight)
            # What was tuned already is no short flow.
            born_s = now_s if packets is None and not first else -math.inf
            self._states[flow] = _State(born_s, log_factor=math.log(max(factor, 1e-3)))
        if not first and elapsed_s > 0:
            self._watch_line(counts, elapsed_s, line_bps)
        rates = self._rates(now_s, counts, elapsed_s)
        if first:
            return None
        rates = self._elastic(now_s, rates)
        fair_bps = sum(rates.values()) / len(rates) if rates else 0.0
        if rates and fair_bps <= 0:  # an outage: nothing to learn, what is in force stays
            return {flow: share.qthresh_packets for flow, share in self.last.items() if flow in counts}
        if not 2 <= len(rates) <= self.options.max_flows:
            self.last = {}
            return {}
        errors = {flow: rate / fair_bps - 1.0 for flow, rate in rates.items()}
        self._integrate(errors, elapsed_s)
        self.last = {
            flow: self._decide(flow, rates[flow], error, model_packets * counts[flow].weight, capacity_packets)
            for flow, error in errors.items()
        }
        return {flow: share.qthresh_packets for flow, share in self.last.items()}

    def _watch_line(self, counts: Mapping[Flow, FlowCount], elapsed_s: float, line_bps: float | None) -> None:
        """u, and c after it; a new flow's counters began at 0."""
        if not line_bps:
            self.utilisation, self.log_common = None, 0.0
            return
        carried = dropped = 0
        for flow, count in counts.items():
            before = self._states[flow].last
            if before is None or count.arrived_packets < before.arrived_packets:
                before = FlowCount(0, 0, 0, 0)
            carried += count.carried_bytes - before.carried_bytes
            dropped += count.dropped_packets - before.dropped_packets
        options = self.options
        now = 8 * carried / elapsed_s / line_bps  # above 1 while the queue grows: no bound, the mean has to be right
        part = 1.0 - math.exp(-elapsed_s / options.utilisation_over_s)
        usual = 1.0 if self.utilisation is None else self.utilisation
        self.utilisation = usual + part * (now - usual)
        missing = options.utilisation - self.utilisation
        if missing <= 0:
            self.log_common -= options.common_per_s * self.log_common * elapsed_s
        elif dropped:
            missing = min(missing, options.utilisation_missing_max)
            self.log_common += options.utilisation_per_s * missing * elapsed_s
        self.log_common = min(max(self.log_common, 0.0), math.log(options.max_common_factor))

    def _rates(self, now_s: float, counts: Mapping[Flow, FlowCount], elapsed_s: float) -> dict[Flow, float]:
        """bit/s per unit of weight of the flows that are active since the last reading."""
        self._states = {flow: self._states[flow] for flow in counts}
        part = 1.0 - math.exp(-elapsed_s / self.options.active_s)
        rates: dict[Flow, float] = {}
        for flow, count in counts.items():
            state = self._states[flow]
            before, state.last = state.last, count
            if before is None or count.arrived_packets < before.arrived_packets:
                state.moved_s = now_s
                continue
            if count.arrived_packets > before.arrived_packets:
                state.moved_s = now_s
            if now_s - state.moved_s <= self.options.active_s and elapsed_s > 0 and count.weight > 0:
                rate = 8 * (count.carried_bytes - before.carried_bytes) / elapsed_s / count.weight
                state.usual_bps = rate if state.usual_bps is None else state.usual_bps + part * (rate - state.usual_bps)
                rates[flow] = rate
        return rates

    def _elastic(self, now_s: float, rates: Mapping[Flow, float]) -> dict[Flow, float]:
        """The rates of those that want their share: water-filling, from all flows that are no longer young."""
        usual: dict[Flow, float] = {
            flow: self._states[flow].usual_bps or 0.0
            for flow in rates
            if now_s - self._states[flow].born_s > self.options.young_s
        }
        while usual:
            least = self.options.elastic_ratio * sum(usual.values()) / len(usual)
            wanting: dict[Flow, float] = {flow: rate for flow, rate in usual.items() if rate > least}
            if len(wanting) == len(usual):
                break
            usual = wanting
        return {flow: rates[flow] for flow in usual}

    def _integrate(self, errors: Mapping[Flow, float], elapsed_s: float) -> None:
        """z of all flows; one that wants no share goes back to (9)."""
        options = self.options
        low, high = math.log(options.low_factor), math.log(options.high_factor)
        common = sum(self._states[flow].log_factor for flow in errors) / len(errors)
        idles = self.utilisation is not None and self.utilisation < options.idle_utilisation
        for flow, state in self._states.items():
            error = errors.get(flow)
            if error is None:
                step = -options.common_per_s * state.log_factor
            else:
                step = (
                    -options.integral_per_s * min(max(error, -1.0), 0.0 if idles else 1.0)
                    - options.common_per_s * common
                )
            state.log_factor = min(max(state.log_factor + step * elapsed_s, low), high)

    def _decide(self, flow: Flow, rate_bps: float, error: float, model_packets: float, capacity_packets: int) -> Share:
        """The threshold as a real number and in whole packets; `model_packets` is (9) with the flow's weight."""
        state, options = self._states[flow], self.options
        shift = state.log_factor + self.log_common - options.proportional * min(max(error, -1.0), 1.0)
        factor = math.exp(min(max(shift, math.log(options.low_factor)), math.log(options.high_factor)))
        exact = min(max(model_packets * factor, 2.0), float(capacity_packets))
        packets = max(2, min(math.floor(exact + state.carry + 0.5), capacity_packets))
        state.carry = min(max(state.carry + exact - packets, -1.0), 1.0)
        return Share(rate_bps, error, exact, packets)
