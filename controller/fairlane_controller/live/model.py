# SPDX-License-Identifier: Apache-2.0
"""The rows of a snapshot: plain frozen data with units in the names; None is what cannot be known, and never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, cast


class _Row:
    """A row that becomes plain data."""

    def to_json(self) -> dict[str, Any]:
        """The fields by their names, rows within rows too."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(cast("Any", self))}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and isinstance(value, _Row):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, float):
        return round(value, 6)
    return value


@dataclass(frozen=True)
class SwitchRow(_Row):
    """One switch, whether or not it answers."""

    switch: str
    grpc: str
    device_id: int
    reachable: bool
    program: str | None
    "`qthresh`, `gfr`, `ena`, another program's name; None: no program, or nobody knows."
    error: Mapping[str, str] | None = None
    '`{"code", "message"}` of what is wrong.'
    read_ms: float | None = None
    "How long the reading took."


@dataclass(frozen=True)
class PolicyRow(_Row):
    """The scheme of a class at a managed port."""

    traffic_class: int
    scheme: str
    qthresh_packets: int | None
    weight: float
    effective_packets: int | None
    "(qthresh · weight) >> 8, what a flow without a weight of its own may have waiting."
    mode: str | None
    "`auto` or `manual`; None without a run state, or where no threshold is in force."
    k: float | None = None


@dataclass(frozen=True)
class PortRow(_Row):
    """One egress port: all that the run state names, and every managed one."""

    switch: str
    port: int
    interface: str | None = None
    managed: bool = False
    rate_bps: float | None = None
    "Of the port's shaper; None: unlimited or not known."
    tx_bps: float | None = None
    utilisation: float | None = None
    "tx_bps / rate_bps, or of the measured BW where the rate is not known."
    waiting_packets: int | None = None
    waiting_bytes: int | None = None
    waiting_cells: int | None = None
    capacity_packets: int | None = None
    capacity_cells: int | None = None
    "QMAX of a port that GFR manages."
    drops_per_s: float | None = None
    dropped_packets: int | None = None
    "Since the counters began."
    sent_packets: int | None = None
    sent_bytes: int | None = None
    scheme: str | None = None
    "Of a port that GFR manages."
    lbo_cells: int | None = None
    hbo_cells: int | None = None
    active_vcs: int | None = None
    collisions: int | None = None
    policies: tuple[PolicyRow, ...] = ()
    measured: Mapping[str, Any] | None = None
    """What the loop measures, as its control socket says it: `{"bw_bps": {"value", "count", "age_s", "uncertainty"}, "t_res_s": …}`."""


@dataclass(frozen=True)
class FlowRow(_Row):
    """A flow that has an entry at a switch."""

    switch: str
    port: int | None
    "Its egress port by the switch's routes; None where no route is known."
    traffic_class: int | None
    "None where its port has policies of several classes: the entry does not say."
    flow: str
    slot: int
    protocol: str
    src: str
    src_port: int
    dst: str
    dst_port: int
    vid: int = 0
    "Of the outer VLAN tag; 0: untagged."
    waiting_packets: int | None = None
    qthresh_packets: int | None = None
    "What it may have waiting: (Qthresh · weight) >> 8; None with drop-tail."
    weight: float | None = None
    "In force: its own or tuned one, else its class's."
    packets: int = 0
    "Arrived since the entry was made."
    bytes: int = 0
    dropped_packets: int = 0
    dropped_bytes: int = 0
    offered_bps: float | None = None
    "Frames that arrived for the queue."
    goodput_bps: float | None = None
    "Frames that were admitted: headers and retransmissions are in it."
    drops_per_s: float | None = None
    idle_s: float | None = None


@dataclass(frozen=True)
class VcRow(_Row):
    """A VC at a managed port."""

    switch: str
    port: int
    vc: str
    slot: int | None = None
    mcr_bps: float | None = None
    w_bps: float | None = None
    rate_bps: float | None = None
    "r_i as the data plane has it."
    waiting_cells: int | None = None
    arrived_packets: int = 0
    accepted_packets: int = 0
    refused_packets: int = 0
    offered_bps: float | None = None
    goodput_bps: float | None = None
    "Frames that were accepted."
    drops_per_s: float | None = None
    active: bool | None = None
    "None without a loop."
    verdicts: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    '`{"case_3": {"clp0", "clp1"}}`: frames by verdict and CLP.'


@dataclass(frozen=True)
class DropRow(_Row):
    """Packets that ended at a switch for one reason; a reason without any packet has no row."""

    switch: str
    port: int | None
    "Ingress for reasons of the packet itself, egress for those of the queue; None: of the whole switch."
    reason: str
    packets: int
    per_s: float | None
    by: str
    "`program` (the P4 program), `queue` (the traffic manager), `link` (the port itself)."


@dataclass(frozen=True)
class LoopRow(_Row):
    """The control loop's view of one switch."""

    switch: str
    connected: bool
    error: Mapping[str, str] | None
    flows: int | None = None
    flows_missed: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "All that its `status` says."


@dataclass(frozen=True)
class Snapshot(_Row):
    """Everything at one time."""

    time_s: float
    "Unix time."
    topology: str | None
    target: str | None
    switches: tuple[SwitchRow, ...]
    ports: tuple[PortRow, ...] = ()
    flows: tuple[FlowRow, ...] = ()
    vcs: tuple[VcRow, ...] = ()
    drops: tuple[DropRow, ...] = ()
    loop: tuple[LoopRow, ...] | None = None
    "None: no loop runs."
    loop_error: Mapping[str, str] | None = None
    "What is wrong with the loop itself."
    interval_s: float | None = None
    "Since the snapshot before: what the rates are over."

    def port(self, switch: str, port: int) -> PortRow | None:
        """That port's row, or None."""
        return next((row for row in self.ports if row.switch == switch and row.port == port), None)

    @property
    def managed_ports(self) -> tuple[PortRow, ...]:
        """The ports whose queues the control plane manages."""
        return tuple(row for row in self.ports if row.managed)

    def flows_of(self, row: PortRow) -> tuple[FlowRow, ...]:
        """The flows of a port, those that send most first."""
        mine = [flow for flow in self.flows if flow.switch == row.switch and flow.port == row.port]
        return tuple(sorted(mine, key=lambda f: (-(f.goodput_bps or 0.0), f.slot)))

    def vcs_of(self, row: PortRow) -> tuple[VcRow, ...]:
        """The VCs of a port by slot."""
        return tuple(vc for vc in self.vcs if vc.switch == row.switch and vc.port == row.port)
