# SPDX-License-Identifier: Apache-2.0
"""What results are compared with: the paper's numbers, the bounds of a reproduction, the notes on known differences."""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from fairlane_lab.definition.metric import MetricText, OneMetric, check_metric
from fairlane_lab.definition.names import PARAMETERS, RUN_METRICS, RUNTIMES
from fairlane_lab.definition.strict import (
    Between,
    Condition,
    Known,
    Parameter,
    Runtime,
    Strict,
    Values,
    Where,
    conditions,
    holds,
    parameter,
)


class PaperNumbers(Strict):
    """Numbers of the paper for the points that match."""

    where: Where = Field(default_factory=dict)
    values: Annotated[dict[OneMetric, float], Field(min_length=1)]
    """Metric (`fairness`, `goodput_bps[reno]`) → value in the metric's own unit."""
    source: str = ""
    """Where it stands when it is not the experiment's paper, such as `FIFO` or `FQ-CoDel, published`."""


class PaperFigure(Strict):
    """Numbers of the paper that stand in lab/papers."""

    paper: str
    """Stem of the file."""
    figure: str
    """`Table 2`, as the file has it."""
    x: str = ""
    """The parameter that the file's x is."""
    series: str = ""
    """The parameter that the file's series is."""
    line: str = ""
    """Only this series of the file."""
    where: Where = Field(default_factory=dict)
    """What else the points are."""
    source: str = ""
    """As in `paper_numbers`."""


class Changed(Strict):
    """A bound that is no longer what it was when it was first measured."""

    day: datetime.date
    before: Annotated[str, Field(alias="from")]
    after: Annotated[str, Field(alias="to")]
    why: str


def _is_parameter(name: str) -> bool:
    """Whether it is one, and no metric."""
    return name in PARAMETERS and name not in RUN_METRICS


def _metric_or_parameter(name: str, info: ValidationInfo) -> str:
    return name if _is_parameter(name) else check_metric(name, info)


class Expectation(Strict):
    """A bound on a metric. One verdict for each value of the parameters in `per`, or one over all that match."""

    text: str
    """What is asked, in a sentence."""
    metric: Annotated[str, AfterValidator(_metric_or_parameter)]
    """A metric, `metric[group]`, a quotient `a / b` of two of them (or by a parameter), or with `over` that parameter itself."""
    min: float | None = None
    max: float | None = None
    where: Where = Field(default_factory=dict)
    statistic: Literal["median", "mean", "min", "max", "most"] = "median"
    """Of the repeats of a point. `min`, `max`: every run is within the bound; one outside shows that it is not so. `most`: the share `share` of
    all runs is within at least."""
    share: Annotated[float, Field(ge=0.5, lt=1)] = 0.75
    """With `statistic` min or max: what runs that are all within have to show, that so many of all runs are (exact binomial test)."""
    per: tuple[Annotated[str, parameter("point")], ...] = ("point",)
    """Parameters; `point` is all of them."""
    over: Parameter | None = None
    """Parameter over which one point is picked, by the runs of even repeats, before the bound is applied to the others."""
    pick: Literal["highest", "lowest", "first", "last", "mean"] = "highest"
    """With `over`: by the metric (`highest`, `lowest`) or by the parameter's own order (`first`, `last`); `mean`: the mean of all points instead."""
    by: MetricText = ""
    """With `highest` or `lowest`: another metric by which the point is picked."""
    given: dict[MetricText, Between] = Field(default_factory=dict)
    """With `over`: only points whose metrics lie in these ranges."""
    relative_to: Values = Field(default_factory=dict)
    """What is bounded is the metric divided by itself at the point with these values: the ratio of the two middles, runs of the same repeat paired."""
    runtimes: tuple[Runtime, ...] = ("sim", "kernel", "mininet")
    why: str = ""
    """Why it is not met, where it is not: a sentence for the page of results."""
    changed: tuple[Changed, ...] = ()

    @model_validator(mode="after")
    def _bounded(self, info: ValidationInfo) -> Expectation:
        known = info.context
        if isinstance(known, Known) and _is_parameter(self.metric) and not (self.over and self.metric in known.values):
            raise ValueError(f"metric: got {self.metric!r}; allowed: a metric, or with over a parameter of the points")
        if self.min is None and self.max is None:
            raise ValueError("says neither min nor max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        if self.statistic == "most" and (self.relative_to or self.over or None not in (self.min, self.max)):
            raise ValueError("statistic most: takes either min or max, without `over` and `relative_to`")
        if self.over is None and (self.given or self.by or self.pick != Expectation.model_fields["pick"].default):
            raise ValueError("`given`, `by` and `pick` need `over`: the parameter over which a point is picked")
        return self


class Relative(Strict):
    """A metric of every run divided by itself in the run of the same repeat with another sender or scheme."""

    name: Literal["relative_time", "relative_packets", "relative_goodput", "relative_throughput"]
    metric: OneMetric
    to: Annotated[Values, Field(min_length=1)]
    """Values of `sender` or of the switch's parameters."""


class Note(Strict):
    """Where a difference from the paper, or between runtimes, comes from; without `share` a remark on the experiment."""

    text: str
    """The cause and its measured effect."""
    against: Literal["paper", "sim", "kernel"] = "paper"
    """What is differed from: the paper, the simulator (by real Linux), or Linux in virtual time (by Mininet)."""
    where: Annotated[dict[str, Condition], conditions(runtime=RUNTIMES)] = Field(default_factory=dict)
    """Parameters; also `runtime`."""
    metrics: tuple[OneMetric, ...] = ()
    """Only these metrics; empty: all."""
    share: Between | None = None
    """The differences that it explains, as (measured - reference) / reference; one outside stays unexplained. Needs both ends."""

    @model_validator(mode="after")
    def _has_both_ends(self) -> Note:
        if self.share is not None and not math.isfinite(self.share.max - self.share.min):
            raise ValueError("share: needs both min and max: a note that explains any difference explains none")
        return self

    @property
    def is_remark(self) -> bool:
        """Whether it explains no difference."""
        return self.share is None

    def explains(self, share: float) -> bool:
        """Whether a difference of this size has this cause."""
        return self.share is not None and holds(self.share, share)

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")
