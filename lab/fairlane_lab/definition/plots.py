# SPDX-License-Identifier: Apache-2.0
"""What to draw from an experiment's results: the `[[plots]]` of its file, kept in summary.json and read by `fairlane_lab.report`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from fairlane_lab.definition.metric import MetricText, check_metric
from fairlane_lab.definition.names import GROUP_METRICS, RUN_METRICS, SERIES_METRICS, TRANSFER_METRICS
from fairlane_lab.definition.strict import Known, Parameter, ParameterOrGroup, Strict, Where
from fairlane_lab.problems import unknown


class _Plot(Strict):
    """Any kind. Points that differ in a parameter that the plot does not name never share a bar, a line or a cell: they get panels."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    """Stem of the picture's file; unique in the experiment."""
    title: str
    meaning: str = ""
    """What it shows: a sentence or two under the picture."""
    where: Where = Field(default_factory=dict)
    """Only these points."""


def _of_bars(name: str, info: ValidationInfo) -> str:
    if info.data.get("by") != "group":
        return check_metric(name, info)
    if isinstance(info.context, Known) and name not in GROUP_METRICS:
        raise ValueError(unknown("metric of groups", name, sorted(GROUP_METRICS)))
    return name


class Bars(_Plot):
    """Groups of bars: one group for each value of `x`, one bar for each value of `by`; a panel for each value of `panel`; the paper's
    values as markers."""

    kind: Literal["bars"]
    x: Parameter = "case"
    by: ParameterOrGroup = "group"
    """A parameter, or `group`: the groups of flows."""
    metric: Annotated[str, AfterValidator(_of_bars)]
    panel: Parameter | None = None
    paper: bool = True


def _of_lines(name: str, info: ValidationInfo) -> str:
    known = info.context
    if isinstance(known, Known) and name not in known.values and name not in RUN_METRICS:
        raise ValueError(unknown("parameter", name, sorted(known.values)))
    return name


class Lines(_Plot):
    """Lines over a parameter, or points over a metric: one for each value of `by`; a panel for each value of `panel`."""

    kind: Literal["lines"]
    x: Annotated[str, AfterValidator(_of_lines)]
    """A parameter, or a metric of a run."""
    y: list[MetricText] | MetricText
    """A metric, or several (one panel above the other)."""
    by: ParameterOrGroup | None = None
    panel: Parameter | None = None
    band: bool = True
    """Shade from `_lo` to `_hi`."""
    log_x: bool = False
    log_y: bool = False
    paper: bool = True


def _of_series(name: str, info: ValidationInfo) -> str:
    if isinstance(info.context, Known) and name not in SERIES_METRICS:
        raise ValueError(unknown("metric of series", name, SERIES_METRICS))
    return name


def _of_transfers(name: str, info: ValidationInfo) -> str:
    return name if name in TRANSFER_METRICS else check_metric(name, info)


SeriesMetric = Annotated[str, AfterValidator(_of_series)]


class Series(_Plot):
    """Metrics over time, for one run of each chosen point."""

    kind: Literal["series"]
    metric: list[SeriesMetric] | SeriesMetric
    by: Literal["flow", "group"] = "flow"
    panel: Parameter | None = None
    """A parameter: one panel for each of its values, one above the other."""
    repeat: int = 0
    from_s: float | None = None
    to_s: float | None = None


class Cdf(_Plot):
    """Distribution of a metric of transfers, or else of runs: one line for each value of `by`."""

    kind: Literal["cdf"]
    metric: Annotated[str, AfterValidator(_of_transfers)] = "completion_s"
    by: ParameterOrGroup = "scheme"
    panel: ParameterOrGroup | None = None
    """A parameter or `group`."""
    log_x: bool = True


class Heat(_Plot):
    """A metric over two parameters; a field for each value of `panel`."""

    kind: Literal["heat"]
    metric: MetricText
    x: Parameter
    y: Parameter
    panel: Parameter | None = None


Plot = Annotated[Bars | Lines | Series | Cdf | Heat, Field(discriminator="kind")]
