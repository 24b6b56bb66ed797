# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `gfr` (docs/concepts/gfr.md): VCs, their ideal shares, what they got.

config.py   scenario → the controller's configuration, by the topology's routes
vcs.py      ideal shares over time; what each VC got      checks.py   what may be wrong with VCs, flows and control
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fairlane import RunState
from fairlane.switch import COUNTER_ADMITTED
from fairlane_lab import scenario
from fairlane_lab.programs.part import LabPart, Name
from fairlane_lab.recording import Recording
from fairlane_lab.run_result import RunResult, SeriesPoint, VcResult
from fairlane_topology import topology as fl_topology

from ..config import GfrState
from ..control import GfrTopology
from ..plan import GfrPlan, make_plan
from .config import Control, gfr_config
from .vcs import vc_metrics, vc_results, vc_samples, vc_series

if TYPE_CHECKING:
    from fairlane_lab.definition.schema import Body
    from fairlane_lab.definition.topology import Resolved
    from fairlane_lab.problems import Problem

_VC_METRICS = {"mcr_met": Name("MCR met", "%", 100), "mcr_met_5s": Name("MCR, worst 5 s", "%", 100)}
_GOODPUT = {"vc_goodput_bps": Name("goodput", "Mbit/s", 1e-6)}


class Part(LabPart):
    """Program `gfr`."""

    Control = Control
    shows_columns = False
    parameters: ClassVar[Mapping[str, Name]] = {
        "scheduler": Name("scheduler", kind=str),
        "wrr_weights": Name("weights of the queues", kind=str),
        "lbo_cells": Name("LBO", "cells", kind=int),
        "hbo_cells": Name("HBO", "cells", kind=int),
        "qmax_cells": Name("buffer", "cells", kind=int),
        "rate_form": Name("form of r_i", kind=str),
        "rate_alpha": Name("alpha of r_i"),
        "rate_period_us": Name("T of r_i", "ms", 1e-3),
        "rate_at": Name("r_i measured at", kind=str),
        "threshold_mbs": Name("T_i", "MBS"),
        "tcps": Name("TCPs a VC", kind=int),
        "udp_bps": Name("UDP rate", "Mbit/s", 1e-6),
    }
    run_metrics: ClassVar[Mapping[str, Name]] = {
        "goodput_share": Name("of the ideal", "%", 100),
        "least_ratio": Name("smallest VC, of its ideal", "%", 100),
        **_VC_METRICS,
    }
    object_metrics: ClassVar[Mapping[str, Name]] = {
        **_GOODPUT,
        "vc_ratio": Name("of its ideal", "%", 100),
        **_VC_METRICS,
    }
    series_metrics: ClassVar[Mapping[str, Name]] = _GOODPUT
    value_labels: ClassVar[Mapping[tuple[str, str], str]] = {
        ("scheme", "double_epd"): "Double-EPD",
        ("scheme", "dfba"): "DFBA",
        ("scheme", "wfba"): "WFBA",
        ("scheme", "pervc_threshold"): "perVC+threshold",
        ("scheduler", "wrr"): "WRR",
        ("scheduler", "fifo"): "FIFO",
    }
    has_vcs = True

    def columns(self, control: scenario.Control) -> dict[str, Any]:
        """Columns of results that say what the switch does."""
        settings: Control = control.settings
        columns = {name: getattr(settings, name) for name in ("scheduler", "lbo_cells", "hbo_cells")}
        return {**super().columns(control), **columns}

    def problems(self, body: Body, topology: Resolved) -> Iterable[Problem]:
        """What is wrong with VCs, flows and control of an experiment."""
        from .checks import gfr_problems

        return gfr_problems(body, topology)

    def metrics(self, result: RunResult) -> dict[str, Any]:
        """Metrics of a run: of its VCs."""
        return vc_metrics(result.vcs)

    def sent_cells(self, port: int) -> tuple[str, list[int]]:
        """A counter and its cells that together count what a port was given."""
        return COUNTER_ADMITTED, [port]

    def vcs(self, seen: Recording) -> list[VcResult]:
        """What each VC got."""
        state = gfr_config(seen.scenario, seen.topology)
        crossing = state.vcs_of()
        ports = [(port.capacity, {vc.name for vc in crossing[port.place]}) for port in state.ports]
        samples = vc_samples(seen.scenario, seen.carried)
        return vc_results(seen.scenario, ports, samples)

    def series(self, seen: Recording) -> list[SeriesPoint]:
        """The goodput of each VC over time."""
        return vc_series(vc_samples(seen.scenario, seen.carried))

    def configurations(self, scenario: scenario.Scenario, topology: fl_topology.Topology) -> list[dict[str, Any]]:
        """VCs and schemes."""
        return [gfr_config(scenario, topology).plain()]

    def plans(self, run: RunState, scenario: scenario.Scenario, topology: fl_topology.Topology) -> list[GfrPlan]:
        """Of a topology that had no VCs before."""
        return [make_plan(gfr_config(scenario, topology), GfrState(), run, scenario.point)]

    def control_loop(self, run: RunState, scenario: scenario.Scenario, plans: Sequence[Any]) -> GfrTopology:
        """Keeps N and w_i current."""
        del run
        return GfrTopology(plan=plans[0], probes=scenario.control.probes)
