# SPDX-License-Identifier: Apache-2.0
"""What an experiment file may say: who it is, its points, how it is judged and drawn (`Experiment`); and the part that is run, with the
parameters of a point: program, topology, flows, vcs, tcp, control, changes, run (`Body`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fairlane_controller.gnmi.ports import Scheduler
from fairlane_controller.switch.shared import QUEUES_MAX
from fairlane_switch.link_model import LinkSettings
from fairlane_switch.link_series import times_in
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction, LinkChange, PresetName, Rate
from pydantic import Field, model_validator

from fairlane_lab.definition.judging import Expectation, MetricText, Note, PaperFigure, PaperNumbers, Plot, Relative
from fairlane_lab.definition.points import Axis, Case, Draws, Params, Setting, Spread
from fairlane_lab.definition.strict import Runtime, Strict, Where, runnable
from fairlane_lab.scenario import Flow, NotNegative, Positive, TcpGiven, TcpOptions, Vc

DIRECTION_KEYS = frozenset(
    name for field, info in Direction.model_fields.items() for name in (field, info.validation_alias) if name
)
"""Keys of a topology file's link that a preset replaces."""


class LinkChanges(LinkSettings):
    """Values of a topology file's link, both directions alike."""

    preset: PresetName | None = None
    """Instead of all that the file says of its directions and its rate; what stands beside it here wins."""
    rate_bps: Rate | None = None
    """Of the switch ports at its ends, and of the wire in the direction that leaves a host (the file's `bandwidth`)."""
    a_to_b: LinkSettings | None = None
    b_to_a: LinkSettings | None = None
    """Of one direction alone."""

    def apply_to(self, link: dict[str, Any]) -> None:
        """Change a link of a topology document."""
        values = self.model_dump(exclude_none=True)
        if self.preset is not None:
            for key in [key for key in link if key in DIRECTION_KEYS or key in ("bandwidth", "a_to_b", "b_to_a")]:
                del link[key]
        if "rate_bps" in values:
            link["bandwidth"] = values.pop("rate_bps")
        for way in ("a_to_b", "b_to_a"):
            if way in values:
                link[way] = {**link.get(way, {}), **_in_us(values.pop(way))}
        link.update(_in_us(values))


def _in_us(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by the names of a topology file, whose bare times are µs."""
    return {name.removesuffix("_us"): value for name, value in times_in("us", settings).items()}


class ChangeSpec(LinkChange):
    """`scenario.Change`: something that changes while it runs."""

    at_s: Annotated[float, Field(ge=0)]


class Buffer(Strict):
    """How many packets a port's buffer has at a point: `share` of the largest of `packets`, `bdp` and `packets_per_flow`."""

    packets: Annotated[float, Field(ge=0, le=1e6)] = 0
    bdp: Annotated[float, Field(ge=0, le=1e4)] = 0
    """Products of the link's rate and the round-trip time: twice the link's delay, and `other_rtt_ms`."""
    other_rtt_ms: Annotated[float, Field(ge=0, le=60_000)] = 0
    packet_bytes: Annotated[int, Field(ge=1)] = 1500
    """That `bdp` is counted in."""
    packets_per_flow: Annotated[float, Field(ge=0, le=1e4)] = 0
    share: Annotated[float, Field(gt=0, le=1e3)] = 1

    def queue_packets(self, link: fl_topology.Link, connections: int) -> int:
        """The port's `queue_packets`."""
        rtt_ms = 2 * link.a_to_b.delay_us / 1000 + self.other_rtt_ms
        bdp = self.bdp * link.bandwidth_bps * rtt_ms / (8000 * self.packet_bytes)
        return max(1, round(self.share * max(self.packets, bdp, self.packets_per_flow * connections)))


class PortChanges(Strict):
    """Values of a switch port, named as in the topology file: `s1-p3`."""

    rate_bps: Rate | None = None
    queues: Annotated[int, Field(ge=1, le=QUEUES_MAX)] | None = None
    scheduler: Scheduler | None = None
    queue_packets: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    calendar_packets: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Instead of `queue_packets`, where the scheduler is `calendar`."""
    buffer: Buffer | None = None
    """Instead of `queue_packets`: computed from the point."""
    qdisc: fl_topology.Qdisc | None = None
    bottleneck: bool | None = None

    @model_validator(mode="after")
    def _one_length(self) -> PortChanges:
        if self.buffer is not None and self.queue_packets is not None:
            raise ValueError("queue_packets and buffer both say how many packets may wait; allowed: one of them")
        return self


class TopologySpec(Strict):
    """A file of mininet/topologies and what is different in it."""

    base: str
    """Name of a file of mininet/topologies without `.json`, or a path relative to the experiment's file."""
    links: dict[str, LinkChanges] = Field(default_factory=dict)
    """By name (`s1-s2`) or pattern (`h*`); later ones win."""
    ports: dict[str, PortChanges] = Field(default_factory=dict)


class Starts(Strict):
    """How repeats differ by the file, beside what is drawn for each (`Draws`)."""

    flows: tuple[str, ...] = ()
    """Names or groups of the flows that are moved; empty: all but the first (`offsets_s`) or all (`jitter_s`)."""
    offsets_s: tuple[float, ...] = ()
    """Repeat i moves them by entry i (around again after the last); negative: the others start later instead."""
    jitter_s: NotNegative = 0.0
    """Every connection's start is moved by a random time below this, on top."""


class RunSpec(Strict):
    """How long, how often, what is kept."""

    duration_s: Annotated[float, Field(gt=0, le=86_400)]
    """From the instant at which the first flow may start."""
    warmup_s: NotNegative
    """Not counted; every greedy flow has started by then. Nor do transfers that begin in it count, but for files (`bytes`) and programs (`command`)."""
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    connections: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Of all flows together, as many of each; None: as each flow says."""
    starts: Starts = Starts()
    draws: Draws = Draws()
    sample_s: Annotated[float, Field(ge=0.001, le=60)] = 0.1
    series_repeats: Annotated[int, Field(ge=0)] = 0
    """The first so many repeats of a point keep their time series; at least one where there is a plot of series."""
    until_done: bool = False
    """The run ends when every file (`bytes` applications) is finished, at `duration_s` at the latest; without a warm-up."""

    @model_validator(mode="after")
    def _window(self) -> RunSpec:
        if self.warmup_s >= self.duration_s:
            raise ValueError(f"warmup_s {self.warmup_s:g} leaves nothing of duration_s {self.duration_s:g} to measure")
        if self.until_done and self.warmup_s:
            raise ValueError(
                f"until_done, warmup_s {self.warmup_s:g}: the files may be finished by then; until_done needs warmup_s 0"
            )
        return self


class Body(Strict):
    """What one point runs."""

    program: str = ""
    """Name of the P4 program that the switches run, or its folder."""
    topology: TopologySpec
    flows: Annotated[list[Flow], Field(min_length=1)]
    vcs: tuple[Vc, ...] = ()
    tcp: TcpOptions = TcpOptions()
    control: Any = Field(default_factory=dict)
    """As `[control]`; a resolved point has the program's own model of it."""
    changes: tuple[ChangeSpec, ...] = ()
    run: RunSpec

    @model_validator(mode="after")
    def _sends(self) -> Body:
        each, rest = divmod(self.run.connections or 0, len(self.flows))
        if rest:
            raise ValueError(f"run.connections {self.run.connections} is no multiple of the {len(self.flows)} flows")
        if not each and not any(flow.connections for flow in self.flows):
            raise ValueError("flows: every one has 0 connections; at least one must have 1 or more")
        return self

    def with_totals(self) -> Body:
        """With what the file says of all flows together filled in for each."""
        each = (self.run.connections or 0) // len(self.flows)
        flows = [replace(flow, connections=each) for flow in self.flows] if each else self.flows
        window = max(flow.window_packets for flow in self.flows)
        return self.model_copy(update={"flows": flows, "tcp": self.tcp.with_window(window)})


SECTIONS = tuple(Body.model_fields)
"""Of an experiment file: those of `Body`."""


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

    @property
    def source(self) -> str:
        """Paper and what is reproduced of it, for people; without a paper what is asked."""
        paper = f"no paper{self.paper[4:]}" if self.paper.startswith("none") else self.paper
        return f"{paper}: {self.reproduces.removeprefix('nothing: ')}"

    def runs_in(self, runtime: str) -> bool:
        """Whether it can (`runnable`)."""
        return runtime in runnable(self.runtimes)
