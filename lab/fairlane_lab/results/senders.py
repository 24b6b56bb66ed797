# SPDX-License-Identifier: Apache-2.0
"""Metrics of the senders' papers: of file transfers, of what senders sent and took back, of recoveries after a delay spike. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fairlane_hosts.programs import COUNTERS

from fairlane_lab.run_result import FlowResult, PortResult, Transfer

Row = dict[str, Any]
SENDER_COUNTERS = ("segments_sent", "window_reductions", *COUNTERS)
BW_EST = ("bw_est_bps", "bw_est_ratio")
FLOW_COLUMNS = (*SENDER_COUNTERS, "after_spike_bytes", "after_spike_retransmits", "recovery_s", *BW_EST)
"""Of a flow, where its runtime knows them and, for the last five, the run has a delay spike."""


def file_metrics(transfers: Sequence[Transfer]) -> Row:
    """Of transfers whose first data segment is known, means over all of them; nothing without such.

    `transfer_bps`: bytes over the time that it ran, cut ones too (Lee and Kim 2000); `transfer_s`, `packets_sent`: of the finished ones (FastTCP paper).
    """
    known = [each for each in transfers if each.ran_s is not None]
    if not known:
        return {}
    rates = [8 * each.bytes / each.ran_s for each in known if each.ran_s]
    finished = [each for each in known if each.complete]
    metrics: Row = {"unfinished": len(known) - len(finished)}
    if rates:
        metrics["transfer_bps"] = fmean(rates)
    if finished:
        metrics["transfer_s"] = fmean(each.ran_s or 0.0 for each in finished)
    packets = [each.packets for each in finished if each.packets is not None]
    if packets:
        metrics["packets_sent"] = fmean(packets)
    return metrics


def counted(flow: FlowResult, name: str) -> Any:
    """One of FLOW_COLUMNS; None where its runtime does not know it."""
    return flow.counters.get(name) if name in COUNTERS else getattr(flow, name)


def sender_metrics(flows: Sequence[FlowResult], names: Sequence[str] = SENDER_COUNTERS) -> Row:
    """Sums of what the flows' senders counted, those that all of them know; `wasted_share`: of the data segments sent, those sent again."""
    metrics: Row = {}
    for name in names:
        values = [counted(flow, name) for flow in flows]
        if values and None not in values:
            metrics[name] = sum(values)
    sent = metrics.get("segments_sent")
    if sent:
        metrics["wasted_share"] = min(1.0, sum(flow.retransmits for flow in flows) / sent)
    return metrics


def fair_share_ratios(flows: Sequence[FlowResult]) -> dict[str, float]:
    """Greedy flow → its goodput over the mean of all greedy flows, by weight; empty for fewer than two or when nothing moved."""
    greedy = [flow for flow in flows if flow.greedy]
    mean = fmean(flow.goodput_bps / flow.weight for flow in greedy) if greedy else 0.0
    if len(greedy) < 2 or mean <= 0:
        return {}
    return {flow.flow: flow.goodput_bps / flow.weight / mean for flow in greedy}


def spike_metrics(flows: Sequence[FlowResult], ports: Sequence[PortResult]) -> Row:
    """What became of the flows after a delay spike, summed; `recovery_s`: of the slowest. Nothing in a run without one."""
    watched = [flow for flow in flows if flow.after_spike_bytes is not None]
    if not watched:
        return {}
    recoveries = [flow.recovery_s for flow in watched]
    slowest = None if None in recoveries else max(value for value in recoveries if value is not None)
    estimates = {name: [getattr(flow, name) for flow in watched] for name in BW_EST}
    return {
        "after_spike_bytes": sum(flow.after_spike_bytes or 0.0 for flow in watched),
        "after_spike_retransmits": sum(flow.after_spike_retransmits or 0 for flow in watched),
        "after_spike_drops": sum(port.after_spike_drops or 0 for port in ports),
        "recovery_s": slowest,
        **{name: sum(values) for name, values in estimates.items() if None not in values},
    }
