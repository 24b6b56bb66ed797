# SPDX-License-Identifier: Apache-2.0
"""What becomes of results: what they are compared with and what is drawn.

Names of metrics (`fairness`, `goodput_bps[vegas]`, `goodput_bps[vegas] / goodput_bps[reno]`), numbers of the papers (in the file, or in
lab/papers/*.csv, a row each and how it was read), bounds, notes on known differences, the sentences of lab/claims.toml with bounds that were
fixed before the runs that judge them, and the `[[plots]]`, which summary.json keeps.
"""

from __future__ import annotations

import csv
import datetime
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane_controller.documents import is_file
from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, model_validator

from fairlane_lab.definition.extend import read_as
from fairlane_lab.definition.names import (
    GROUP_METRICS,
    PARAMETERS,
    RUN_METRICS,
    RUNTIMES,
    SERIES_METRICS,
    TRANSFER_METRICS,
    split_metric,
    split_quotient,
)
from fairlane_lab.definition.strict import (
    Between,
    Condition,
    Known,
    Parameter,
    ParameterOrGroup,
    Runtime,
    Scalar,
    Strict,
    Values,
    Where,
    conditions,
    holds,
    parameter,
    scalar_of,
)
from fairlane_lab.paths import CLAIMS, PAPERS
from fairlane_lab.problems import unknown

_FORM = re.compile(r"[a-z][a-z0-9_]*(\[[a-z][a-z0-9_-]*\])?")


def check_metric(text: str, info: ValidationInfo) -> str:
    """The text of a metric, or of a quotient of it and another or a parameter. Raises ValueError with what is allowed."""
    known = info.context
    if isinstance(known, Known) and text:
        above, below = split_quotient(text)
        if "/" in below:
            raise ValueError(f"got {text!r}; one division at most")
        for each in (above, *([below] if "/" in text and below not in PARAMETERS else [])):
            _check_single(each, known.groups)
    return text


def _check_single(text: str, groups: Sequence[str]) -> None:
    name, group = split_metric(text)
    if not _FORM.fullmatch(text):
        raise ValueError(f"got {text!r}; a metric is written as `fairness` or `goodput_bps[group]`")
    if group and name not in GROUP_METRICS:
        raise ValueError(unknown("metric of groups", name, sorted(GROUP_METRICS)))
    if group and group not in groups:
        raise ValueError(unknown("group of flows", group, groups))
    if not group and name not in RUN_METRICS:
        raise ValueError(unknown("metric", name, RUN_METRICS))


def _no_quotient(text: str, info: ValidationInfo) -> str:
    if isinstance(info.context, Known) and "/" in text:
        raise ValueError(f"got {text!r}; one metric, not a quotient, belongs here")
    return check_metric(text, info)


MetricText = Annotated[str, AfterValidator(check_metric)]
OneMetric = Annotated[str, AfterValidator(_no_quotient)]


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

    @property
    def metrics(self) -> list[str]:
        """As a list, where it is one alone too."""
        return [self.metric] if isinstance(self.metric, str) else list(self.metric)


def drawn_repeats(plots: Sequence[_Plot]) -> set[int]:
    """The repeats of a point whose series the plots draw."""
    return {plot.repeat for plot in plots if isinstance(plot, Series)}


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

_SCALES = {"": 1.0, "packets": 1.0, "%": 0.01, "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6}


class PaperRow(Strict):
    """A number of a paper."""

    figure: str
    """Table, figure or equation."""
    series: str
    """The line of the figure, or the column of the table."""
    x: str
    """Where on it; empty without one."""
    metric: str
    """Ours."""
    y: float
    of: float | None = None
    """What `y` is divided by to be the metric, in the same unit."""
    unit: Literal["", "packets", "%", "bit/s", "kbit/s", "Mbit/s"]
    how: Literal["table", "text", "read off the figure"]

    @model_validator(mode="before")
    @classmethod
    def _no_divisor(cls, row: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in row.items() if (name, value) != ("of", "")}

    @property
    def value(self) -> float:
        """In the metric's own unit."""
        return round(self.y * _SCALES[self.unit], 9) if self.of is None else self.y / self.of


@lru_cache(maxsize=16)
def read_paper(path: Path) -> tuple[PaperRow, ...]:
    """Every number of a paper. Raises ValueError with the line that is wrong."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows: list[PaperRow] = []
        for row in reader:
            try:
                rows.append(PaperRow.model_validate(row))
            except ValidationError as error:
                first = error.errors()[0]
                key = ".".join(map(str, first["loc"]))
                raise ValueError(f"{path.name}, line {reader.line_num}: {key}: {first['msg']}, got {first['input']!r}") from None  # fmt: skip
    return tuple(rows)


def numbers_of(figure: PaperFigure, folder: Path = PAPERS) -> list[PaperNumbers]:
    """The numbers of a figure, each with the points of an experiment that it is for. Raises ValueError with what is wrong."""
    path = folder / f"{figure.paper}.csv"
    if not is_file(path):
        raise ValueError(unknown("paper", figure.paper, sorted(each.stem for each in folder.glob("*.csv"))))
    rows = read_paper(path)
    for key, wanted in (("figure", figure.figure), ("series", figure.line)):
        there = dict.fromkeys(getattr(row, key) for row in rows)
        rows = tuple(row for row in rows if wanted in ("", getattr(row, key)))
        if not rows:
            raise ValueError(unknown(key, wanted, there))
    at = [(name, key) for name, key in ((figure.x, "x"), (figure.series, "series")) if name]
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        found.setdefault(tuple(getattr(row, key) for _, key in at), {})[row.metric] = row.value
    names = [name for name, _ in at]
    return [
        PaperNumbers(
            where={**dict(zip(names, map(scalar_of, place), strict=True)), **figure.where},
            values=values,
            source=figure.source,
        )
        for place, values in found.items()
    ]


class ClaimBound(Expectation):
    """A bound of a claim: what an experiment is asked beside its own expectations."""

    claim: str
    """Id."""
    experiment: str


class Asked(Expectation):
    """Bounds of a claim as its file says them: one for each metric, reference and step."""

    text: str = ""
    metric: str = ""
    metrics: tuple[str, ...] = ()
    """Several, instead of `metric`."""
    beside: tuple[dict[str, Scalar], ...] = ()
    """Several of `relative_to`."""
    steps: str = ""
    """A parameter: at each of its values in `where` the metric is judged relative to itself at the value before."""
    experiment: str = ""
    """Where it is not the claim's."""

    @model_validator(mode="after")
    def _is_whole(self) -> Asked:
        if bool(self.metric) == bool(self.metrics):
            raise ValueError("needs metric, or metrics")
        if self.beside and self.relative_to:
            raise ValueError("has both relative_to and beside")
        if self.steps and len(self._values()) < 2:
            raise ValueError(f"steps {self.steps!r}: where.{self.steps} has to be a list of two values or more")
        return self

    def _values(self) -> Sequence[Scalar]:
        values = self.where.get(self.steps)
        return values if isinstance(values, list) else []

    def bounds(self, claim: Claim) -> Iterator[ClaimBound]:
        """Each by itself."""
        written = {name: getattr(self, name) for name in self.model_fields_set & Expectation.model_fields.keys()}
        references = self.beside or (self.relative_to,)
        steps = [*pairwise(self._values())] if self.steps else [None]
        for metric, reference, step in itertools.product(self.metrics or (self.metric,), references, steps):
            where, relative_to = dict(self.where), dict(reference)
            if step:
                relative_to[self.steps], where[self.steps] = step
            several = {name for each in claim.expect for name in each.metrics or (each.metric,)}
            text = f"{claim.id}: {self.text or claim.sentence}" + (f" ({metric})" if len(several) > 1 else "")
            changed = {"text": text, "metric": metric, "where": where, "relative_to": relative_to}
            whose = {"claim": claim.id, "experiment": self.experiment or claim.experiment}
            yield ClaimBound.model_validate({**written, **changed, **whose})


class Claim(Strict):
    """A sentence of a paper."""

    id: Annotated[str, Field(pattern=r"^[A-Z][0-9]+$")]
    paper: Annotated[str, Field(pattern=r"^[A-Za-z]+$")]
    where: str
    """Table or figure."""
    sentence: str
    kind: Literal["direction", "size", "shape"]
    """The sign of a difference, the paper's number, or an order or trend over points."""
    bound: str
    """In words, as it was fixed."""
    day: datetime.date
    """On which the bound was fixed."""
    changed: tuple[Changed, ...] = ()
    paper_number: str = ""
    """What the paper has, where it gives a number."""
    assumption: str
    """Under which the paper says it."""
    experiment: str
    """That judges it."""
    lacks: str = ""
    """What no experiment measures yet: until it does, the claim is not run as a whole."""
    expect: tuple[Asked, ...] = ()

    @model_validator(mode="after")
    def _can_be_judged(self) -> Claim:
        if not self.expect and not self.lacks:
            raise ValueError("has neither expect nor lacks")
        return self

    def bounds(self) -> list[ClaimBound]:
        """All that has to be met."""
        return [bound for asked in self.expect for bound in asked.bounds(self)]


class _File(Strict):
    claims: tuple[Claim, ...]

    @model_validator(mode="after")
    def _ids_differ(self) -> _File:
        ids = [claim.id for claim in self.claims]
        if twice := [name for name in dict.fromkeys(ids) if ids.count(name) > 1]:
            raise ValueError(f"the same id twice: {', '.join(twice)}")
        return self


@lru_cache(maxsize=4)
def read_claims(path: Path = CLAIMS) -> tuple[Claim, ...]:
    """Every claim, in the file's order. Raises ExperimentError with all that is wrong."""
    return read_as(path, _File).claims


def bounds_of(experiment: str) -> list[ClaimBound]:
    """What the claims ask of an experiment."""
    return [bound for claim in read_claims() for bound in claim.bounds() if bound.experiment == experiment]
