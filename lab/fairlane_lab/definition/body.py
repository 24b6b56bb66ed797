# SPDX-License-Identifier: Apache-2.0
"""The part of an experiment file that is run, with the parameters of a point: program, topology, flows, vcs, tcp, control, changes, run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fairlane_topology import topology as fl_topology
from pydantic import Field, model_validator

from fairlane_lab.definition.draws import Draws
from fairlane_lab.definition.links import ChangeSpec, LinkChanges
from fairlane_lab.definition.strict import Strict
from fairlane_lab.scenario import Flow, NotNegative, Rate, TcpOptions, Vc


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
    queues: Annotated[int, Field(ge=1, le=4096)] | None = None
    scheduler: fl_topology.Scheduler | None = None
    queue_packets: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    calendar_packets: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Instead of `queue_packets`, where the scheduler is `calendar`."""
    buffer: Buffer | None = None
    """Instead of `queue_packets`: computed from the point."""
    bottleneck: bool | None = None


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
    """Not counted; every greedy flow has started by then."""
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
    connections: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Of all flows together, as many of each; None: as each flow says."""
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
