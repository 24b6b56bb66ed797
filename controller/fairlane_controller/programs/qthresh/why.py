# SPDX-License-Identifier: Apache-2.0
"""The sentence `why` of the loop's events: for people, and it names the measured values that a decision rests on. Pure."""

from __future__ import annotations

import math
from typing import Any

from fairlane.measure import PortMeasurement
from fairlane.text import counted, format_rate, format_size, format_time

from .decide import Decision, Outcome
from .law import Decision as FlowDecision
from .law import Law, Why


def explain_measurement(measured: PortMeasurement) -> str:
    """`BW 5 Mbit/s, T_res 7.1 ms, L_D 1014 B, N_C 2`: what is known; an empty text when nothing is."""
    t_res, tau, t_ack = measured.t_res_s, measured.tau_s, measured.t_ack_s
    source = ""
    if measured.t_res_source == "probes" and tau is not None and t_ack is not None:
        source = f" (2τ {_time(2 * tau.value)} of the probes + T_ACK {_time(t_ack.value)})"
    elif measured.t_res_source == "probes_alone":
        source = " (2τ of the probes; no ACK was timed)"
    texts = (
        measured.bw_bps and f"BW {format_rate(measured.bw_bps.value)}",
        t_res and f"T_res {_time(t_res.value)}{source}",
        measured.l_d_bytes and f"L_D {format_size(round(measured.l_d_bytes.value))}",
        measured.n_c and f"N_C {measured.n_c.value:g}",
    )
    return ", ".join(filter(None, texts))


def explain_decision(decision: Decision, measured: PortMeasurement, longer: float = 1.0) -> str:
    """Of `threshold` and `decision`; `longer`: how many times as long as (9) the port's lanes are."""
    before, known, plan = decision.previous_packets, explain_measurement(measured), decision.plan
    if decision.outcome is not Outcome.WRITE:
        text = f"{'no threshold' if before is None else f'the threshold {before}'} stays: {decision.reason}"
    elif before is None:
        text = f"the first threshold is {decision.qthresh_packets} packets"
    else:
        text = f"the threshold goes from {before} to {decision.qthresh_packets} packets"
    if plan is None:
        return f"{text}{f' (known: {known})' if known else ''}"
    times = f"{longer:.2f} times (9) is" if longer > 1.0 else "(9) says"
    bound = f", bounded by {decision.bound}" if decision.bound else ""
    return f"{text}: {times} {decision.exact_packets:.1f}{bound} with k {plan.k / longer:g} and {known}"


def tuning(law: Law[Any], written: int, planned_packets: float) -> dict[str, Any]:
    """The fields of `tuned`; its sentence says who is farthest from its share, and how full the line is."""
    tapped = [str(flow) for flow, one in law.last.items() if one.tap]
    text = f"{written} of {len(law.last)} flows' thresholds moved about the {planned_packets:.1f} packets of (9)"
    if tapped:
        text = f"{' and '.join(tapped)} {'loses' if len(tapped) == 1 else 'lose'} a packet"
    if law.last:
        flow, one = max(law.last.items(), key=lambda item: abs(item[1].error))
        text += f": {flow} has {format_rate(one.rate_bps)}{_share(one.error)}"
    used = law.utilisation
    return {
        "why": text if used is None else f"{text}; the line is {100 * min(used, 1.0):.0f} % used",
        "written": written,
        "planned_packets": round(planned_packets, 2),
        "utilisation": None if used is None else round(used, 4),
        "common_factor": round(math.exp(law.log_common), 3),
        "is_long": law.is_long,
        "flows": {str(flow): one.to_json() for flow, one in law.last.items()},
    }


def explain_longer(factor: float) -> str:
    """Of `lanes`."""
    return (
        f"lanes are {factor:.2f} times as long as (9) says: a flow lost packets of its lane and had less than its share, "
        "because its path to the switch is longer than T_res shows"
    )


_OF_FLOW = {
    Why.YOUNG: "it is new and may be short",
    Why.IDLE: "it sends next to nothing, or no data",
    Why.CONTENT: "it does not grow on an idle line, so it has what it asks for",
    Why.ALONE: "no other flow wants a share",
    Why.TUNED: "its threshold follows its share",
    Why.FREE: "it is not above its share of a long path",
    Why.TAPPED: "it has had its share of a long path since its last loss, so it loses one packet",
    Why.HELD: "it does not slow down when it loses packets, so its threshold follows its share",
    Why.LANE: "it has a queue of its own, as long as all lanes of the port",
}


def explain_flow(one: FlowDecision, planned_packets: float) -> str:
    """Of `threshold show`: what a flow gets, what it may have waiting (by (9) where it has no threshold of its own), and why."""
    share = "" if one.why in (Why.YOUNG, Why.IDLE, Why.CONTENT, Why.ALONE) else _share(one.error)
    own = one.qthresh_packets
    bound = f"{planned_packets:.1f} packets, by (9)" if own is None else f"{own} packets"
    return f"gets {format_rate(one.rate_bps)}{share}; {bound}: {_OF_FLOW[one.why]}"


def explain_take_over(flows: int, policies: int) -> str:
    """Of `took_over`."""
    found = f"{counted(flows, 'flow entry')}, {counted(policies, 'policy')}"
    return f"we are the primary controller and go on from what the switch has: {found}"


def _share(error: float) -> str:
    return f", {100 * abs(error):.0f} % {'above' if error > 0 else 'below'} the fair share"


def _time(seconds: float) -> str:
    return format_time(round(seconds, 6))
