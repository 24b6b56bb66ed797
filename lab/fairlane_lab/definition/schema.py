# SPDX-License-Identifier: Apache-2.0
"""What an experiment file may say beside what it runs (body.py): who it is, its points, how it is judged and drawn."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fairlane_lab.definition.judging import Expectation, Note, PaperFigure, PaperNumbers, Relative
from fairlane_lab.definition.metric import MetricText
from fairlane_lab.definition.plots import Plot
from fairlane_lab.definition.points import Axis, Case, Params, Spread
from fairlane_lab.definition.settings import Setting
from fairlane_lab.definition.strict import Runtime, Strict, Where
from fairlane_lab.scenario import NotNegative, Positive, TcpGiven


class Selected(Strict):
    """Which points are run in one runtime, and how often."""

    repeats: Annotated[int, Field(ge=1)] | None = None
    only: Where = Field(default_factory=dict)
    """Parameter → the values of it that are run (`case` → labels)."""


class Overrides(Selected):
    """What is different in one runtime, or with `--quick`."""

    duration_s: Positive | None = None
    warmup_s: NotNegative | None = None


class SimOverrides(Overrides):
    """`[sim]`: also of the runtime kernel, but for `tcp`."""

    tcp: TcpGiven = Field(default_factory=dict)
    """What only simulated hosts are told: Linux has a clock of its own."""


class MininetOverrides(Overrides):
    """`[mininet]`: real time is expensive."""

    parallel: Annotated[int, Field(ge=1, le=16)] = 1
    """Topologies that run side by side."""


class Experiment(Strict):
    """An experiment file; what it runs is checked with the parameters of each point."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
    title: str
    paper: str
    """Which paper, such as `FastTCP (Oh, Kim, about 2003)`."""
    reproduces: str
    """Which table or figure, or what it goes beyond."""
    what: str
    """What it does and what is to be seen: a sentence or two."""
    runtimes: Annotated[list[Runtime], Field(min_length=1)]

    params: Params = Field(default_factory=dict)
    """Values that hold where neither case nor sweep gives one."""
    cases: tuple[Case, ...] = ()
    """Parameters that go together, and a `label`."""
    drawn: dict[str, Spread] = Field(default_factory=dict)
    """Parameters that are drawn for each run; the same for all points of a repeat."""
    sweep: dict[str, Axis] = Field(default_factory=dict)
    """Cross product of its axes, the last one changing fastest."""
    sets: dict[str, Setting] = Field(default_factory=dict)
    """Parameter → the keys that it sets. Left out: the key of its name in `control`, `tcp` or `run`, or `program`."""

    program: str = ""
    """Name of the P4 program that the switches run, or its folder."""
    senders: tuple[str, ...] = ()
    """Folders of senders of the user's own that `flows` name, from the file's folder."""
    topology: dict[str, Any]
    flows: list[dict[str, Any]]
    vcs: tuple[dict[str, Any], ...] = ()
    tcp: dict[str, Any] = Field(default_factory=dict)
    control: dict[str, Any] = Field(default_factory=dict)
    changes: tuple[dict[str, Any], ...] = ()
    run: dict[str, Any]

    sim: SimOverrides = SimOverrides()
    kernel: Selected = Selected()
    """On top of `sim`."""
    mininet: MininetOverrides = MininetOverrides()
    quick: Overrides = Overrides(repeats=1)

    relative: tuple[Relative, ...] = ()
    """Metrics beside another sender's or scheme's, in pairs."""
    paper_numbers: tuple[PaperNumbers, ...] = ()
    paper_figures: tuple[PaperFigure, ...] = ()
    """Further ones, from lab/papers."""
    expect: tuple[Expectation, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[Note, ...] = ()

    statistic: Literal["median", "mean"] = "median"
    """What stands for the repeats of a point in tables and plots."""
    main_metrics: tuple[MetricText, ...] = ()
    """Columns of the result table in the terminal; empty: a choice from the groups that there are."""

    def runs_in(self, runtime: str) -> bool:
        """Whether it can: what runs on Linux in real time (`mininet`) runs on Linux in virtual time (`kernel`)."""
        return runtime in self.runtimes or (runtime == "kernel" and "mininet" in self.runtimes)
