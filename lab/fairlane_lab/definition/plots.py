# SPDX-License-Identifier: Apache-2.0
"""What to draw from an experiment's results: the `[[plots]]` of its file, kept in summary.json and read by `fairlane_lab.report`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairlane_lab.definition.strict import Strict, Where


class _Plot(Strict):
    """Any kind. Points that differ in a parameter that the plot does not name never share a bar, a line or a cell: they get panels."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    """Stem of the picture's file; unique in the experiment."""
    title: str
    meaning: str = ""
    """What it shows: a sentence or two under the picture."""
    where: Where = Field(default_factory=dict)
    """Only these points."""


class Bars(_Plot):
    """Groups of bars: one group for each value of `x`, one bar for each value of `by`; a panel for each value of `panel`; the paper's
    values as markers."""

    kind: Literal["bars"]
    metric: str
    x: str = "case"
    by: str = "group"
    """A parameter, or `group`: the groups of flows."""
    panel: str | None = None
    paper: bool = True


class Lines(_Plot):
    """Lines over a parameter: one for each value of `by`; a panel for each value of `panel`."""

    kind: Literal["lines"]
    x: str
    y: list[str] | str
    """A metric, or several (one panel above the other)."""
    by: str | None = None
    panel: str | None = None
    band: bool = True
    """Shade from `_lo` to `_hi`."""
    log_x: bool = False
    log_y: bool = False
    paper: bool = True


class Series(_Plot):
    """Metrics over time, for one run of each chosen point."""

    kind: Literal["series"]
    metric: list[str] | str
    by: Literal["flow", "group"] = "flow"
    panel: str | None = None
    """A parameter: one panel for each of its values, one above the other."""
    repeat: int = 0
    from_s: float | None = None
    to_s: float | None = None


class Cdf(_Plot):
    """Distribution of a metric of transfers, or else of runs: one line for each value of `by`."""

    kind: Literal["cdf"]
    metric: str = "completion_s"
    by: str = "scheme"
    panel: str | None = None
    """A parameter or `group`."""
    log_x: bool = True


class Heat(_Plot):
    """A metric over two parameters; a field for each value of `panel`."""

    kind: Literal["heat"]
    metric: str
    x: str
    y: str
    panel: str | None = None


Plot = Annotated[Bars | Lines | Series | Cdf | Heat, Field(discriminator="kind")]
