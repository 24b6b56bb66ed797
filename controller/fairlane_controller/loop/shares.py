# SPDX-License-Identifier: Apache-2.0
"""Self-tuning: a threshold for each flow, moved around eq. (9) by what the flow really gets; pure, in virtual time.

Equation (9) leaves its constant open, and no constant is fair for every start: Vegas freezes on any whole number of its
alpha..beta band, decided by how the run begins, and Reno's mean window follows Qthresh in steps. So each flow has an
integral controller on its share. With x_i the flow's goodput per unit of weight, f the mean of all x_j and
e_i = (x_i - f)/f, once a period:

    z_i <- z_i - k_i * e_i * dt            (bounded)
    Qthresh_i = Qthresh_(9) * exp(z_i - k_p * e_i)

A flow above its share gets a smaller threshold until it is held there; the sum of e_i over time, which the integral
drives to zero, is what fairness over a run measures. Thresholds are whole packets in the data plane: what rounding cuts
off is carried to the next period, so their mean over time is the real number (first-order sigma-delta).
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
    "Between two decisions, each at most one write."
    integral_per_s: float = 0.2
    "k_i: how fast the logarithm of the threshold moves for a flow that gets twice its share."
    proportional: float = 0.2
    "k_p."
    low_factor: float = 0.5
    high_factor: float = 2.0
    "A flow's threshold stays between these multiples of (9)."
    max_flows: int = 256
    "With more flows than this (9) alone decides."
    active_s: float = 2.0
    "A flow without a packet for this long has no share to get."


@dataclass
class _State:
    log_factor: float = 0.0
    """z_i."""
    carry: float = 0.0
    """What rounding cut off so far, in packets."""
    moved_s: float = -math.inf
    """When its counters last grew."""
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
    _states: dict[Flow, _State] = field(default_factory=lambda: {})
    _observed_s: float | None = None

    def observe(
        self,
        now_s: float,
        counts: Mapping[Flow, FlowCount],
        model_packets: float,
        capacity_packets: int,
        in_force_packets: Mapping[Flow, int] | None = None,
    ) -> dict[Flow, int] | None:
        """Counters read at `now_s` while (9) says `model_packets`: the thresholds in packets that should be in force.

        None for the first reading. Empty when there is nothing to compare: fewer than two active flows, or more than
        `max_flows`; then (9) alone should hold. A flow that is new here goes on from `in_force_packets`, if it is there.
        """
        before_s, self._observed_s = self._observed_s, now_s
        elapsed_s = 0.0 if before_s is None else now_s - before_s
        for flow in counts.keys() - self._states.keys():
            packets = (in_force_packets or {}).get(flow)
            factor = 1.0 if packets is None else packets / (model_packets * counts[flow].weight)
            self._states[flow] = _State(log_factor=math.log(max(factor, 1e-3)))
        rates = self._rates(now_s, counts, elapsed_s)
        if before_s is None:
            return None
        fair_bps = sum(rates.values()) / len(rates) if rates else 0.0
        if not 2 <= len(rates) <= self.options.max_flows or fair_bps <= 0:
            self.last = {}
            return {}
        self.last = {
            flow: self._decide(
                self._states[flow], rate / fair_bps - 1.0, rate, elapsed_s, model_packets, capacity_packets
            )
            for flow, rate in rates.items()
        }
        return {flow: share.qthresh_packets for flow, share in self.last.items()}

    def _rates(self, now_s: float, counts: Mapping[Flow, FlowCount], elapsed_s: float) -> dict[Flow, float]:
        """bit/s per unit of weight of the flows that are active since the last reading."""
        self._states = {flow: self._states[flow] for flow in counts}
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
                rates[flow] = 8 * (count.carried_bytes - before.carried_bytes) / elapsed_s / count.weight
        return rates

    def _decide(
        self,
        state: _State,
        error: float,
        rate_bps: float,
        elapsed_s: float,
        model_packets: float,
        capacity_packets: int,
    ) -> Share:
        options = self.options
        bounded = min(max(error, -1.0), 1.0)
        low, high = math.log(options.low_factor), math.log(options.high_factor)
        state.log_factor = min(max(state.log_factor - options.integral_per_s * bounded * elapsed_s, low), high)
        factor = math.exp(min(max(state.log_factor - options.proportional * bounded, low), high))
        exact = min(max(model_packets * factor, 2.0), float(capacity_packets))
        packets = max(2, min(math.floor(exact + state.carry + 0.5), capacity_packets))
        state.carry = min(max(state.carry + exact - packets, -1.0), 1.0)
        return Share(rate_bps, error, exact, packets)
