# SPDX-License-Identifier: Apache-2.0
"""When a VC is active and in which part of a run it counts. Pure functions; times in seconds from the scenario's zero."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane_lab.scenario import Scenario, Vc, flows_of


@dataclass(frozen=True)
class Span:
    """From when to when."""

    begin_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """0 when it is empty."""
        return max(0.0, self.end_s - self.begin_s)

    def holds(self, begin_s: float, end_s: float) -> bool:
        """Whether that interval lies in it."""
        return self.begin_s <= begin_s + 1e-9 and end_s <= self.end_s + 1e-9


def active(scenario: Scenario, vc: Vc) -> Span:
    """From its first flow's start to its last one's end."""
    flows = flows_of(scenario, vc)
    ends = [scenario.duration_s if flow.stop_s is None else min(flow.stop_s, scenario.duration_s) for flow in flows]
    return Span(min((flow.start_s for flow in flows), default=0.0), max(ends, default=0.0))


def counted(scenario: Scenario, vc: Vc) -> Span:
    """The part of the measured window in which a VC counts: one that starts during it has a warm-up of its own, as long as the run's."""
    span = active(scenario, vc)
    warm = scenario.warmup_s
    begin_s = warm if span.begin_s < warm else span.begin_s + warm
    return Span(begin_s, max(begin_s, span.end_s))
