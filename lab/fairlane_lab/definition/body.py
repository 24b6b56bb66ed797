# SPDX-License-Identifier: Apache-2.0
"""The part of an experiment file that may refer to parameters, as it is once they are filled in: topology, flows, vcs, tcp, control, changes, run."""

from __future__ import annotations

from typing import Annotated, Any

from fairlane_topology import topology as fl_topology
from pydantic import Field, model_validator

from fairlane_lab.definition.draws import Draws
from fairlane_lab.definition.links import ChangeSpec, LinkChanges
from fairlane_lab.definition.strict import Strict
from fairlane_lab.scenario import App, Flow, NotNegative, Rate, TcpGiven, TcpOptions, Vc

Positive = Annotated[float, Field(gt=0)]


class FlowSpec(Strict):
    """`scenario.Flow`: one sender, or `connections` alike."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(-[a-z0-9_]+)*$", max_length=32)]
    group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)] | None = None
    """Its name when left out."""
    sender: str
    receiver: str
    variant: str = "reno"
    app: App = App()
    start_s: NotNegative = 0.0
    stop_s: Positive | None = None
    weight: Annotated[float, Field(gt=0, le=256)] = 1.0
    window_packets: Annotated[int, Field(ge=0, le=65535)] = 0
    connections: Annotated[int, Field(ge=0, le=10_000)] = 1
    """0: not at this point."""
    tcp: TcpGiven = Field(default_factory=dict)
    vc: str = ""
    """The VC that it is in, where the program has VCs."""

    @property
    def flow(self) -> Flow:
        """As a scenario has it; in the group that it says, else its VC, else its name."""
        fields: dict[str, Any] = {**dict(self), "group": self.group or self.vc or self.name}
        return Flow(**fields)


class PortChanges(Strict):
    """Values of a switch port, named as in the topology file: `s1-p3`."""

    rate_bps: Rate | None = None
    queues: Annotated[int, Field(ge=1, le=4096)] | None = None
    scheduler: fl_topology.Scheduler | None = None
    queue_packets: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    bottleneck: bool | None = None


class TopologySpec(Strict):
    """A file of mininet/topologies and what is different in it."""

    base: str
    """Name of a file of mininet/topologies without `.json`, or a path relative to the experiment's file."""
    links: dict[str, LinkChanges] = Field(default_factory=dict)
    """By name (`s1-s2`) or pattern (`h*`); later ones win."""
    ports: dict[str, PortChanges] = Field(default_factory=dict)
    program: str = ""


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
    """Not counted; every greedy flow has started by then."""
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    starts: Starts = Starts()
    draws: Draws = Draws()
    sample_s: Annotated[float, Field(ge=0.001, le=60)] = 0.1
    series_repeats: Annotated[int, Field(ge=0)] = 0
    """The first so many repeats of a point keep their time series."""
    until_done: bool = False
    """The run ends when every file (`bytes` applications) is finished, at `duration_s` at the latest."""

    @model_validator(mode="after")
    def _window(self) -> RunSpec:
        if self.warmup_s >= self.duration_s:
            raise ValueError(f"warmup_s {self.warmup_s:g} leaves nothing of duration_s {self.duration_s:g} to measure")
        return self


class Body(Strict):
    """The resolved part of one point."""

    program: str = ""
    """Also `topology.program`; neither: `DEFAULT_PROGRAM`."""
    topology: TopologySpec
    flows: Annotated[list[FlowSpec], Field(min_length=1)]
    vcs: tuple[Vc, ...] = ()
    tcp: TcpOptions = TcpOptions()
    control: Any = Field(default_factory=dict)
    """As `[control]`; a resolved point has the program's own model of it."""
    changes: tuple[ChangeSpec, ...] = ()
    run: RunSpec

    @model_validator(mode="after")
    def _sends(self) -> Body:
        if not any(flow.connections for flow in self.flows):
            raise ValueError("flows: every one has 0 connections; at least one must have 1 or more")
        return self


TEMPLATED = ("program", "topology", "flows", "vcs", "tcp", "control", "changes", "run")
"""The sections in which `$param` and `= expression` may stand."""


def explicit_values(model: Strict) -> dict[str, Any]:
    """The values that a file sets itself, by name, without defaults."""
    return {name: value for name, value in model.model_dump().items() if value is not None}
