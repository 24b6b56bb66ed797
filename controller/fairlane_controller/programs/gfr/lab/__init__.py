# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `gfr` (docs/concepts/gfr.md): VCs, their ideal shares, what they got.

ideal.py    when a VC counts, its w_i and ideal goodput over time
results.py  samples → VcResult → metrics of a run
ways.py     which managed ports a VC crosses      config.py   scenario → the controller's configuration
counters.py verdicts of each VC                   checks.py   what may be wrong with VCs, flows and control
sim.py      in virtual time                       testbed.py  in Mininet
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from fairlane import Section
from fairlane.switch import COUNTER_ADMITTED
from fairlane_lab import scenario
from fairlane_lab.programs.part import LabPart, MininetPart, Name, Records, SimPart
from fairlane_lab.run_result import RunResult, SeriesPoint, VcResult
from pydantic import Field

from ..names import RATE_PERIOD_MAX_US, RATE_PERIOD_MIN_US
from .counters import added, grown
from .results import vc_metrics, vc_results, vc_row, vc_samples, vc_series
from .ways import gfr_ports

if TYPE_CHECKING:
    from fairlane_lab.definition.body import Body
    from fairlane_lab.definition.topology import Resolved
    from fairlane_lab.problems import Problem
    from fairlane_lab.sim.world import SimWorld
    from fairlane_lab.testbed.bed import Bed

Cells = Annotated[int, Field(ge=1, le=65_535)]


class Control(Section):
    """`[control]`: what it does at every managed port; symbols are the GFR paper's. A file that compares schemes may give the keys of all."""

    scheme: Literal["drop_tail", "double_epd", "dfba", "wfba", "pervc_threshold", "proposed"] = "drop_tail"
    probes: bool = False
    scheduler: Literal["fifo", "wrr"] = "wrr"
    """`wrr`: a queue a VC, weighted by w_i; `fifo`: one queue."""
    wrr_weights: Literal["w", "mcr"] = "w"
    """`pervc_threshold`: the queues' weights, w_i of (3) or MCR_i; fair shares are those of (3) with both."""
    lbo_cells: Cells = 1000
    hbo_cells: Cells = 3000
    qmax_cells: Cells = 4000
    rate_form: Literal["time", "alpha"] = "time"
    """Of (2): weighted by time, or the paper's fixed alpha."""
    rate_alpha: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """The paper's alpha; `rate_form = "alpha"` only."""
    rate_period_us: Annotated[int, Field(ge=RATE_PERIOD_MIN_US, le=RATE_PERIOD_MAX_US)] = RATE_PERIOD_MIN_US
    """The paper's T, at least: 64 is the time between arrivals, more a period; `rate_form = "alpha"` only."""
    rate_at: Literal["acceptance", "arrival"] = "acceptance"
    """Which frames (2) counts: those accepted (the paper's pseudo-code) or all that arrive (its section 3.2)."""
    threshold_mbs: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """`pervc_threshold`: T_i as a multiple of the VC's MBS."""
    dfba_z: Annotated[float, Field(gt=0, le=255)] = 1.0
    dfba_alpha: Annotated[float, Field(ge=0, le=1)] = 0.5
    wfba_z: Annotated[float, Field(gt=0, le=255)] = 0.8


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

    def control(self, settings: Any) -> scenario.Control:
        return scenario.Control(settings.scheme, probes=settings.probes, settings=settings)

    def columns(self, control: scenario.Control) -> dict[str, Any]:
        settings: Control = control.settings
        columns = {name: getattr(settings, name) for name in ("scheduler", "lbo_cells", "hbo_cells")}
        return {**super().columns(control), **columns}

    def problems(self, body: Body, topology: Resolved) -> Iterable[Problem]:
        from .checks import gfr_problems

        return gfr_problems(body, topology)

    def metrics(self, result: RunResult) -> dict[str, Any]:
        return vc_metrics(result.vcs)

    def vc_rows(self, result: RunResult) -> list[dict[str, Any]]:
        return [vc_row(vc) for vc in result.vcs]

    def sent_cells(self, port: int) -> list[tuple[str, int]]:
        return [(COUNTER_ADMITTED, port)]

    def values(self, seen: Records) -> dict[str, float]:
        del seen
        return {}

    def vcs(self, seen: Records) -> list[VcResult]:
        ports = list(gfr_ports(seen.scenario, seen.topology).values())
        drops = grown(added(seen.before.values()), added(seen.after.values()))
        return vc_results(seen.scenario, ports, vc_samples(seen.scenario, seen.carried), drops)

    def series(self, seen: Records) -> list[SeriesPoint]:
        return vc_series(vc_samples(seen.scenario, seen.carried))

    def in_sim(self, world: SimWorld) -> SimPart:
        from .sim import GfrInSim

        return GfrInSim(self, world)

    def in_mininet(self, bed: Bed) -> MininetPart:
        from .testbed import GfrInMininet

        return GfrInMininet(self, bed)
