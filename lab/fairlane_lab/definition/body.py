# SPDX-License-Identifier: Apache-2.0
"""The part of an experiment file that may refer to parameters, as it is once they are filled in: topology, flows, vcs, tcp, control, changes, run."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fairlane_lab.definition.draws import Draws
from fairlane_lab.definition.links import ChangeSpec, LinkChanges
from fairlane_lab.definition.strict import Strict
from fairlane_lab.scenario import App, Backoff, Distribution, Naming
from fairlane_lab.topology_scripts import fl_topology

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[int, Field(ge=0, le=400_000_000_000)]

_NEEDS: dict[str, tuple[str, ...]] = {
    "greedy": (),
    "bytes": ("bytes",),
    "on_off": ("on_mean_s", "off_mean_s"),
    "web": ("arrivals_per_s", "mean_bytes"),
    "interactive": ("bytes", "interval_s"),
    "video": ("bitrates_bps", "buffer_s", "reservoir_s", "cushion_s"),
    "cbr_udp": ("rate_bps", "payload_bytes"),
    "command": ("command",),
}
_MAY: dict[str, tuple[str, ...]] = {
    "bytes": ("times", "interval_s", "nodelay"),
    "on_off": ("distribution", "shape"),
    "web": ("distribution", "shape", "max_bytes"),
    "video": ("segment_s",),
    "command": ("receiver_command",),
}


class AppSpec(Strict):
    """`scenario.App`: what a flow's application does."""

    kind: Literal["greedy", "bytes", "on_off", "web", "interactive", "video", "cbr_udp", "command"] = "greedy"
    bytes: Annotated[int, Field(gt=0)] | None = None
    times: Annotated[int, Field(ge=1, le=100_000)] | None = None
    nodelay: bool | None = None
    interval_s: Positive | None = None
    on_mean_s: Positive | None = None
    off_mean_s: Positive | None = None
    arrivals_per_s: Positive | None = None
    mean_bytes: Annotated[int, Field(gt=0)] | None = None
    max_bytes: Annotated[int, Field(gt=0)] | None = None
    distribution: Distribution | None = None
    shape: Annotated[float, Field(gt=1)] | None = None
    bitrates_bps: Annotated[tuple[Annotated[int, Field(gt=0, le=400_000_000_000)], ...], Field(min_length=2)] | None = (
        None
    )
    segment_s: Annotated[float, Field(ge=0.1, le=60)] | None = None
    buffer_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    reservoir_s: NotNegative | None = None
    cushion_s: Positive | None = None
    rate_bps: Annotated[int, Field(gt=0)] | None = None
    payload_bytes: Annotated[int, Field(ge=18, le=1472)] | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    receiver_command: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> AppSpec:
        needs, may = _NEEDS[self.kind], _MAY.get(self.kind, ())
        given = self.model_fields_set - {"kind"}
        missing = [name for name in needs if name not in given]
        useless = sorted(given - {*needs, *may})
        if missing:
            raise ValueError(f"kind {self.kind!r} also needs {', '.join(missing)}")
        if useless:
            allowed = ", ".join((*needs, *may)) or "nothing else"
            raise ValueError(f"kind {self.kind!r} has no {', '.join(useless)}; it has: {allowed}")
        if self.kind == "bytes" and (self.times or 1) > 1 and self.interval_s is None:
            raise ValueError("times above 1 also need interval_s: from asking for one file to asking for the next")
        if self.kind == "on_off" and self.distribution not in (None, "exponential", "pareto"):
            raise ValueError("kind 'on_off' is exponential or pareto")
        if self.kind == "video":
            self._check_video()
        return self

    def _check_video(self) -> None:
        rates = self.bitrates_bps or ()
        if any(low >= high for low, high in pairwise(rates)):
            raise ValueError(f"bitrates_bps {list(rates)}: each must be above the one before")
        segment_s = self.segment_s or App.segment_s
        least_s = segment_s + (self.reservoir_s or 0.0) + (self.cushion_s or 0.0)
        if (self.buffer_s or 0.0) < least_s:
            raise ValueError(
                f"buffer_s {self.buffer_s:g} is below reservoir_s + cushion_s + segment_s, {least_s:g}: "
                "the next segment is asked for when it has room, and the highest rate would never be"
            )


class TcpSpec(Strict):
    """`scenario.TcpOptions`: what is left out keeps its default."""

    mss_bytes: Annotated[int, Field(ge=88, le=8960)] | None = None
    delayed_ack: bool | None = None
    receive_window_bytes: Annotated[int, Field(ge=0, le=2**30)] | None = None
    initial_window_packets: Annotated[int, Field(ge=1, le=64)] | None = None
    rto_min_s: Annotated[float, Field(gt=0, le=60)] | None = None
    backoff: Backoff | None = None
    tick_s: Annotated[float, Field(ge=0, le=1)] | None = None
    delayed_ack_s: Annotated[float, Field(ge=0, le=0.5)] | None = None
    timestamps: bool | None = None
    sack: bool | None = None
    read_interval_s: Annotated[float, Field(ge=0, le=60)] | None = None
    receiver_program: bool | None = None
    error_naming: Naming | None = None
    ecn: bool | None = None


class FlowSpec(Strict):
    """`scenario.Flow`: one sender, or `connections` alike."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(-[a-z0-9_]+)*$", max_length=32)]
    group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)] | None = None
    """Its name when left out."""
    sender: str
    receiver: str
    variant: str = "reno"
    app: AppSpec = AppSpec()
    start_s: NotNegative = 0.0
    stop_s: Positive | None = None
    weight: Annotated[float, Field(gt=0, le=256)] = 1.0
    window_packets: Annotated[int, Field(ge=0, le=65535)] = 0
    connections: Annotated[int, Field(ge=0, le=10_000)] = 1
    """0: not at this point."""
    tcp: TcpSpec = TcpSpec()
    vc: str = ""
    """The VC that it is in, where the program has VCs."""

    @property
    def reported_group(self) -> str:
        """Its group: as it says, else its VC, else its name."""
        return self.group or self.vc or self.name


class VcSpec(Strict):
    """`scenario.Vc`: a customer's aggregate."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)]
    mcr_bps: Annotated[int, Field(ge=0, le=400_000_000_000)]
    pcr_bps: Annotated[int, Field(ge=0, le=400_000_000_000)] = 0
    mbs_cells: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    mfs_bytes: Annotated[int, Field(ge=20, le=65_000)] = 1500


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
    vcs: tuple[VcSpec, ...] = ()
    tcp: TcpSpec = TcpSpec()
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
