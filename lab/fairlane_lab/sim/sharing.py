# SPDX-License-Identifier: Apache-2.0
"""How the greedy flows of a run in virtual time share the line as time goes on: where the steady state begins (at the end of the warm-up, or
later where MSER-5 says so), Jain's index over short windows, how soon after a change it is fair again, the least used seconds, and how long packets wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlane_lab.measures import Values, mser5
from fairlane_lab.recording import FlowRecord, Recording
from fairlane_lab.run_result import AFTER_SPIKE_S
from fairlane_lab.scenario import Scenario

WINDOWS_S = {"jain_100ms": 0.1, "jain_1s": 1.0, "jain_10s": 10.0}
FAIR = 0.95
"""Jain's index over one second from which on the line counts as shared fairly."""
WORST_S = 5.0
"""Length of the window of `worst_5s_use`."""


def sharing(seen: Recording) -> dict[str, float]:
    """Metrics of a run over its measured window; each is left out where there is nothing to measure it by."""
    start_s, end_s = seen.start_s, seen.end_s
    flows = [each for each in seen.flows if each.is_greedy_tcp]
    known = [each for each in flows if each.sampled.t_s.size]
    found: dict[str, float] = {}
    if len(known) > 1:
        t_s = known[0].sampled.t_s
        step_s = float(np.median(np.diff(t_s))) if len(t_s) > 1 else np.inf
        for name, window_s in WINDOWS_S.items():
            count = int((end_s - start_s) / window_s + 1e-6)
            if count and step_s <= window_s * (1 + 1e-6):
                edges = (end_s - window_s * np.arange(count, -1, -1)).astype(np.float64)
                jains = _jains(known, edges[:-1], edges[1:])
                if not np.isnan(jains).all():
                    found[name] = float(np.nanmean(jains))
        if (fair_s := _fair_after_s(seen.scenario, known)) is not None:
            found["fair_after_s"] = fair_s
    if (used := _worst_use(seen)) is not None:
        found["worst_5s_use"] = used
    waits = [_waits_ms(each, start_s, end_s) for each in flows]
    if waits and (all_ms := np.concatenate(waits)).size:
        found["delay_p99_ms"] = float(np.quantile(all_ms, 0.99))
    return found


def _jains(known: list[FlowRecord], begins: Values, ends: Values) -> Values:
    """Jain's index of the flows that run in each window; NaN where there are fewer than two."""
    count, total, squares = np.zeros(len(ends)), np.zeros(len(ends)), np.zeros(len(ends))
    for each in known:
        stop_s = np.inf if each.flow.stop_s is None else each.flow.stop_s
        runs = (each.flow.start_s <= begins + 1e-9) & (ends <= stop_s + 1e-9)
        rates = runs * (each.sampled.at(ends) - each.sampled.at(begins)) / each.flow.weight
        count, total, squares = count + runs, total + rates, squares + rates**2
    jains = np.divide(total**2, count * squares, out=np.zeros(len(ends)), where=squares > 0)
    return np.where(count > 1, jains, np.nan)


def _fair_after_s(scenario: Scenario, known: list[FlowRecord]) -> float | None:
    """The longest time from a change (of a link, or a flow that starts or stops) to the end of the first second that is shared fairly;
    where that does not come before the next change, the time to that one. Only the changes of the measured window count, or the last one before it."""
    end_s = scenario.duration_s
    times = {change.at_s for change in scenario.changes if change.every_s is None}
    times |= {each.flow.start_s for each in known} | {each.flow.stop_s or end_s for each in known}
    ordered = [at_s for at_s in sorted(times) if at_s <= end_s - 1.0]
    changes = [at_s for at_s in ordered if at_s >= scenario.warmup_s] or ordered[-1:]
    took: list[float] = []
    for at_s, next_s in zip(changes, [*changes[1:], end_s], strict=True):
        ends = np.arange(at_s + 1.0, next_s + 1e-9, 0.1)
        if not ends.size:
            continue
        jains = _jains(known, ends - 1.0, ends)
        if np.isnan(jains).all():
            continue  # one flow, or none
        fair = np.flatnonzero(jains >= FAIR)
        took.append(float(ends[fair[0]] - at_s) if fair.size else next_s - at_s)
    return max(took, default=None)


def _worst_use(seen: Recording) -> float | None:
    """The smallest part of the first managed port's rate that was used in any `WORST_S` of the window."""
    start_s, end_s = seen.start_s, seen.end_s
    if not seen.ports or end_s - start_s < WORST_S or not seen.ports[0].sampled.t_s.size:
        return None
    port = seen.ports[0]
    rates, sent = port.rates, port.sampled
    ends = np.arange(start_s + WORST_S, end_s + 1e-9, 0.1)
    times = np.array([at_s for at_s, _ in rates] + [end_s])
    could = np.concatenate(([0.0], np.cumsum([rate for _, rate in rates] * np.diff(times))))
    possible = np.interp(ends, times, could) - np.interp(ends - WORST_S, times, could)
    carried = 8 * port.counted_share(start_s, end_s) * (sent.at(ends) - sent.at(ends - WORST_S))
    usable = possible > 0
    return float((carried[usable] / possible[usable]).min()) if usable.any() else None


def _waits_ms(each: FlowRecord, start_s: float, end_s: float) -> Values:
    """The sender's round-trip times beyond the smallest that it had in the window, ms."""
    found = each.srtt_ns.within(start_s, end_s)
    return (found - found.min()) / 1e6 if found.size else found


BINS = 500
"""Goodput is looked at over so many equal parts of the run."""
MARKS = 5
"""The measured window may begin at the end of the warm-up, or so many tenths of what follows it later."""


def marks_s(scenario: Scenario) -> list[float]:
    """The instants at which the measured window may begin, seconds."""
    rest_s = scenario.duration_s - scenario.warmup_s
    count = MARKS if scenario.has_steady_state else 0
    return [round(scenario.warmup_s + rest_s * step / 10, 9) for step in range(count + 1)]


def spike_marks_s(scenario: Scenario) -> list[float]:
    """Start and end of its delay spike, and the instant by which the recovery is judged, seconds; empty without one."""
    if scenario.spike_s is None:
        return []
    return [*scenario.spike_s, scenario.spike_s[1] + AFTER_SPIKE_S]


def steady_s(flows: Sequence[FlowRecord], end_s: float) -> float | None:
    """From when on the goodput of every group of greedy flows is steady, seconds; None when it never is in the first half."""
    edges = np.linspace(0.0, end_s, BINS + 1)
    groups: dict[str, Values] = {}
    for each in flows:
        if each.is_greedy_tcp and each.sampled.t_s.size:
            grown = np.diff(each.sampled.at(edges))
            groups[each.flow.group] = groups.get(each.flow.group, 0.0) + grown
    cuts = [mser5(grown.tolist()) for grown in groups.values()]
    known = [cut for cut in cuts if cut is not None]
    return max(known, default=0) * end_s / BINS if len(known) == len(cuts) else None
