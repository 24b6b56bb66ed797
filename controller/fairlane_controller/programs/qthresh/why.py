# SPDX-License-Identifier: Apache-2.0
"""The sentence `why` of the loop's events: for people, and it names the measured values that a decision rests on. Pure."""

from __future__ import annotations

from typing import Any

from fairlane.measure import PortMeasurement
from fairlane.text import format_rate, format_size, format_time

from .decide import Decision, Outcome
from .law import Decision as FlowDecision
from .law import Law, Why


def explain_measurement(measured: PortMeasurement) -> str:
    """`BW 5 Mbit/s, T_res 7.1 ms, L_D 1014 B, N_C 2`: what is known; an empty text when nothing is."""
    texts = (
        ("BW", measured.bw_bps, format_rate, ""),
        ("T_res", measured.t_res_s, _millis, _source(measured)),
        ("L_D", measured.l_d_bytes, _bytes, ""),
        ("N_C", measured.n_c, _plain, ""),
    )
    return ", ".join(f"{name} {form(known.value)}{more}" for name, known, form, more in texts if known is not None)


def _source(measured: PortMeasurement) -> str:
    """Behind T_res, where it is not of the ACKs alone: ` (2τ 4 ms of the probes + T_ACK 2.9 ms)`."""
    if not measured.t_res_source.startswith("probes") or measured.tau_s is None:
        return ""
    two_tau = f"2τ {_millis(2 * measured.tau_s.value)} of the probes"
    if measured.t_res_source == "probes_alone" or measured.t_ack_s is None:
        return f" ({two_tau}; no ACK was timed)"
    return f" ({two_tau} + T_ACK {_millis(measured.t_ack_s.value)})"


def explain_decision(decision: Decision, measured: PortMeasurement, k: float, longer: float = 1.0) -> str:
    """Of `threshold` and `decision`; `longer`: how many times as long as (9) the port's lanes are."""
    if decision.outcome is Outcome.WRITE:
        begin = (
            f"the first threshold is {decision.qthresh_packets} packets"
            if decision.previous_packets is None
            else f"the threshold goes from {decision.previous_packets} to {decision.qthresh_packets} packets"
        )
        return f"{begin}: {_equation(decision, measured, k, longer)}"
    held = "no threshold" if decision.previous_packets is None else f"the threshold {decision.previous_packets}"
    if decision.plan is None:
        known = explain_measurement(measured)
        return f"{held} stays: {decision.reason}{f' (known: {known})' if known else ''}"
    return f"{held} stays: {decision.reason}; {_equation(decision, measured, k, longer)}"


def _equation(decision: Decision, measured: PortMeasurement, k: float, longer: float) -> str:
    exact = decision.exact_packets
    says = "" if exact is None else f"(9) says {exact:.1f}"
    if longer > 1.0 and exact is not None:
        says = f"{longer:.2f} times (9) is {exact:.1f}"
    if decision.bound:
        says += f", bounded by {decision.bound}"
    return f"{says} with k {k:g} and {explain_measurement(measured)}"


def explain_tuning(law: Law[Any], written: int, planned_packets: float) -> str:
    """Of `tuned`: who is farthest from its share, and how full the line is."""
    line = "" if law.utilisation is None else f"; the line is {100 * min(law.utilisation, 1.0):.0f} % used"
    tapped = [str(flow) for flow, one in law.last.items() if one.tap]
    if tapped:
        text = f"{' and '.join(tapped)} {'loses' if len(tapped) == 1 else 'lose'} a packet"
    else:
        text = f"{written} of {len(law.last)} flows' thresholds moved about the {planned_packets:.1f} packets of (9)"
    if not law.last:
        return text + line
    flow, one = max(law.last.items(), key=lambda item: abs(item[1].error))
    side = "above" if one.error > 0 else "below"
    farthest = f"{flow} has {format_rate(one.rate_bps)}, {abs(one.error):.0%} {side} the fair share"
    return f"{text}: {farthest.replace('%', ' %')}{line}"


def explain_longer(factor: float) -> str:
    """Of `lanes`."""
    return (
        f"lanes are {factor:.2f} times as long as (9) says: a flow lost packets of its lane and had less than its share, as one does "
        "whose way between the sender and the switch is longer than T_res tells"
    )


_OF_FLOW = {
    Why.YOUNG: "it is new and may be short",
    Why.IDLE: "it sends next to nothing, or no data",
    Why.CONTENT: "it does not grow on an idle line, so it has what it asks for",
    Why.ALONE: "no other flow wants a share",
    Why.TUNED: "its threshold follows its share",
    Why.FREE: "it keeps to its share of a long path",
    Why.TAPPED: "it has had its share of a long path since its last loss, so it loses one packet",
    Why.HELD: "it does not slow down when it loses packets, so its threshold follows its share",
}


def explain_flow(one: FlowDecision, packets: float) -> str:
    """Of `threshold show`: what a flow gets, what it may have waiting (`packets`, by (9) where it has no threshold of its own), and why."""
    share = ""
    if one.why in (Why.TUNED, Why.FREE, Why.TAPPED, Why.HELD):
        side = "above" if one.error > 0 else "below"
        share = f", {100 * abs(one.error):.0f} % {side} the fair share"
    bound = f"{packets:g} packets" if one.qthresh_packets is not None else f"{packets:.1f} packets, by (9)"
    return f"gets {format_rate(one.rate_bps)}{share}; {bound}: {_OF_FLOW[one.why]}"


def explain_lane(rate_bps: float, mean_bps: float, packets: float, longer: float) -> str:
    """Of `threshold show`: what a flow in its lane gets per unit of its weight, and what it may have waiting."""
    error = rate_bps / mean_bps - 1.0 if mean_bps > 0 else 0.0
    side = "above" if error > 0 else "below"
    length = "by (9)" if longer < 1.005 else f"{longer:.2f} times (9)"
    return (
        f"gets {format_rate(rate_bps)}, {100 * abs(error):.0f} % {side} the mean; {packets:g} packets, {length}: it has a queue of its own, "
        "as long as all lanes of the port"
    )


def explain_take_over(flows: int, policies: int) -> str:
    """Of `took_over`."""
    return (
        f"we are the primary controller and go on from what the switch holds: {_count(flows, 'flow entry', 'flow entries')}, "
        f"{_count(policies, 'policy', 'policies')}"
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _millis(seconds: float) -> str:
    return format_time(round(seconds, 6))


def _bytes(size: float) -> str:
    return format_size(round(size))


def _plain(number: float) -> str:
    return f"{number:g}"
