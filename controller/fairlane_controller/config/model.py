# SPDX-License-Identifier: Apache-2.0
"""The one configuration file, `fairlane.toml`, as values: topology, loop, ports, classes, policies, VCs, far sides.

What one value alone can show is refused here; what needs others, or the topology, in `check.py`. A section that the file has not got is
None: what the switches hold of it is left alone. A `gfr.toml` is such a file.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, create_model, field_validator, model_validator

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.contract import Config, Program
from fairlane_controller.program.names import program_names
from fairlane_controller.program.quantities import (
    CellLimit,
    Cells,
    Dscp,
    Duration,
    PacketLimit,
    Packets,
    Rate,
    Size,
    SizeLimit,
)
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.settings import Section
from fairlane_controller.programs.gfr import config as gfr
from fairlane_controller.programs.gfr.config import MARKED_DSCPS, Dscps, GfrConfig, VcConfig
from fairlane_controller.programs.gfr.names import CELLS_MAX
from fairlane_controller.programs.qthresh.model import DEFAULT_K, WEIGHT_MAX, WEIGHT_MIN
from fairlane_controller.programs.qthresh.names import CLASSES
from fairlane_controller.programs.qthresh.policies import Scheme
from fairlane_controller.state.loop_state import Mode, PolicyState
from fairlane_controller.switch.shared import PortNumber, SwitchName

Place = tuple[str, int]
"""(switch, port)."""
PolicyKey = tuple[str, int, int]
"""(switch, egress port, class)."""


ClassNumber = Annotated[int, Field(ge=0, lt=CLASSES)]
Weight = Annotated[float, Field(ge=WEIGHT_MIN, le=WEIGHT_MAX)]


# ---- topology --------------------------------------------------------------------------------------------------------


class TlsConfig(Section):
    """PEM files with which the controller talks to a switch."""

    ca: Path
    "The CA that signed the switch's certificate."
    cert: Path | None = None
    key: Path | None = None


class SwitchConfig(Section):
    """Where one switch is."""

    name: SwitchName
    grpc: Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+):\d{1,5}$")]
    "HOST:PORT of its P4Runtime and gNMI server."
    device_id: int = Field(default=1, ge=0)
    tls: TlsConfig | None = None
    json_file: Path | None = Field(default=None, alias="json")
    "The compiled program (BMv2 JSON), for switches that no running topology describes; relative to the file."
    p4info: Path | None = None


class TopologyConfig(Section):
    """The topology that the file is for."""

    name: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]*$")
    "Name of the running topology (its run-state folder); empty: the one that runs."
    switches: tuple[SwitchConfig, ...] = ()
    "Where switches are, instead of what the run state says, or, with a name, where there is none."
    target: Literal["embedded", "bmv2"] = "embedded"
    "Which switch it is, where there is no run state."


# ---- the loop --------------------------------------------------------------------------------------------------------


class FlowWeightConfig(Section):
    """The weight of new flows that have all that is given; the first rule that matches counts."""

    weight: Weight
    src: str | None = None
    dst: str | None = None
    src_port: int | None = Field(default=None, ge=0, le=65_535)
    dst_port: int | None = Field(default=None, ge=0, le=65_535)


Period = Annotated[Duration, Field(gt=0, le=3600)]


class LoopConfig(Section):
    """How the control loop works; what is not given is as in the loop's own defaults."""

    dry_run: bool = False
    "Measure and decide, write nothing."
    evaluate_period: Annotated[Duration, Field(ge=0.05, le=60)] = 0.25
    "Between two decisions about a threshold."
    tune_period: Annotated[Duration, Field(ge=0.1, le=60)] = 1.0
    "Between two corrections of the flows' own thresholds."
    min_write_interval: Annotated[Duration, Field(ge=0.1, le=3600)] = 1.0
    "At most one write in this time and policy."
    samples: int = Field(default=2, ge=1, le=100)
    "Evaluations in a row that must agree on another value."
    margin_packets: float = Field(default=0.1, ge=0, le=1000)
    "Hysteresis: how far the exact value must be past the rounding boundary of the value in force,"
    margin_ratio: float = Field(default=0.02, ge=0, le=1)
    "and how far as a part of the value in force."
    agree_ratio: float = Field(default=0.05, ge=0, le=1)
    "Values agree when they differ by no more than this part."
    max_age: Period = 3.0
    "A measurement of BW, L_D or N_C older than this decides nothing."
    max_t_res_age: Period = 10.0
    "The same for T_res."
    flow_idle: Annotated[Duration, Field(ge=1, le=86_400)] = 30.0
    "A flow's entry ages out after this time."
    activity_period: Annotated[Duration, Field(ge=0.1, le=60)] = 1.0
    "GFR: between two looks at which VCs are active."
    active_time: Annotated[Duration, Field(ge=0.2, le=600)] = 2.0
    "GFR: a VC without an arrival for so long is not active."
    flow_weights: tuple[FlowWeightConfig, ...] = ()


# ---- ports, classes, policies ----------------------------------------------------------------------------------------


class SchedulerName(str, Enum):
    """How a port serves its queues."""

    STRICT = "strict"
    WRR = "wrr"
    DRR = "drr"


class LinkLayer(str, Enum):
    """What a frame takes on the line."""

    NONE = "none"
    ETHERNET = "ethernet"
    ATM = "atm"


class PortConfig(gfr.PortConfig):
    """One port of a switch: its queue, whether Qthresh manages it, and, with `capacity`, GFR on it."""

    capacity: Annotated[gfr.LineRate, Field(gt=0)] | None = None  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    "GFR: C_GFR, bit/s on the line; a port without it is not GFR's."
    lbo_cells: Annotated[Cells, Field(le=CELLS_MAX)] = 1000
    hbo_cells: Annotated[Cells, Field(le=CELLS_MAX)] = 3000
    qmax_cells: Annotated[Cells, Field(le=CELLS_MAX)] = 4000
    rate: Rate | None = None
    "Rate of the port's shaper; 0 is none. Where it is not given, here and below, it is left alone."
    queue_packets: Packets | None = None
    "What may wait in one queue of the port."
    queue_bytes: SizeLimit | None = None
    queue_cells: CellLimit | None = None
    port_packets: PacketLimit | None = None
    "What may wait in all queues of the port together."
    port_bytes: SizeLimit | None = None
    port_cells: CellLimit | None = None
    scheduler: SchedulerName | None = None
    link_layer: LinkLayer | None = None
    "What a frame takes on the line: none its bytes, ethernet preamble, gap and FCS too, atm 53 bytes a cell."
    queue_count: int | None = Field(default=None, ge=1, le=4096)
    "Queues of the port; never fewer than a running switch has."
    enabled: bool | None = None
    "Whether the port is up."
    managed: bool | None = None
    "Qthresh: whether the program counts, classifies and refuses here."
    limit_packets: Packets | None = None
    "Qthresh: what the program lets wait; default queue_packets. At most what the queue holds."
    limit_bytes: Size | None = None
    report_period: Annotated[Duration, Field(ge=0.001, le=60)] | None = None
    "Qthresh: between two reports of the port."

    @property
    def is_gfr(self) -> bool:
        """Whether GFR manages the port."""
        return self.capacity is not None

    def as_gfr(self) -> gfr.PortConfig:
        """What the program gfr has of it."""
        known = gfr.PortConfig.model_fields
        return gfr.PortConfig.model_validate({name: getattr(self, name) for name in known})


class ClassConfig(Section):
    """Packets of a traffic class; what is left out matches all, the more precise rule wins (port, then DSCP, then PCP)."""

    traffic_class: ClassNumber = Field(alias="class")
    switch: str = ""
    "Empty: every switch."
    ingress_port: PortNumber | None = None
    dscp: Dscp | None = None
    pcp: int | None = Field(default=None, ge=0, le=7)
    "Priority of the frame's VLAN tag."

    @model_validator(mode="after")
    def _matches_something(self) -> ClassConfig:
        if self.ingress_port is None and self.dscp is None and self.pcp is None:
            raise ValueError("a class without ingress_port, dscp or pcp would be all packets: give one of them")
        return self

    @property
    def priority(self) -> int:
        """Higher for the more precise one: 1 to 7, and equal only for two that match the same fields."""
        return 4 * (self.ingress_port is not None) + 2 * (self.dscp is not None) + (self.pcp is not None)


class PolicyConfig(Section):
    """How an egress port treats a class."""

    switch: SwitchName
    port: PortNumber
    traffic_class: ClassNumber = Field(default=0, alias="class")
    scheme: Scheme = Scheme.QTHRESH
    mode: Mode | None = None
    "auto: the loop decides; manual: `threshold` holds. Default: manual with a threshold, else auto."
    threshold: Annotated[Packets, Field(le=65_535)] | None = None
    "Packets of one flow that may wait, before the weight."
    weight: Weight = 1.0
    k: float = Field(default=DEFAULT_K, ge=0.1, le=100)
    "Constant of eq. (9)."
    self_tuning: bool = True
    "Mode auto: correct (9) by the flows' goodputs."
    min_packets: Annotated[Packets, Field(le=65_535)] | None = None
    "Mode auto: bounds of the threshold."
    max_packets: Annotated[Packets, Field(le=65_535)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> PolicyConfig:
        if self.scheme is Scheme.DROP_TAIL:
            for name in ("threshold", "mode", "weight", "k", "self_tuning", "min_packets", "max_packets"):
                if name in self.model_fields_set:
                    raise ValueError(f"{name}: drop_tail has none; leave it out, or set scheme to qthresh")
        if self.mode is Mode.AUTO and self.threshold is not None:
            raise ValueError("threshold: with mode auto the loop decides it; leave it out, or set mode to manual")
        if self.mode is Mode.MANUAL and self.threshold is None and self.scheme is Scheme.QTHRESH:
            raise ValueError("threshold: mode manual needs one, in packets")
        low, high = self.min_packets, self.max_packets
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_packets: {low} is above max_packets {high}")
        if self.threshold is not None and self.threshold * round(self.weight * 256) < 256:
            raise ValueError(
                f"weight: {self.weight:g} with a threshold of {self.threshold} packets would admit nothing: "
                f"must be at least {1 / self.threshold:.4g}"
            )
        return self

    @property
    def key(self) -> PolicyKey:
        """(switch, egress port, class)."""
        return self.switch, self.port, self.traffic_class

    @property
    def settings(self) -> PolicyState:
        """What the loop remembers of it."""
        return PolicyState(
            mode=self.mode or (Mode.AUTO if self.threshold is None else Mode.MANUAL),
            weight=self.weight,
            k=self.k,
            self_tuning=self.self_tuning,
            pinned_packets=self.threshold,
            min_packets=self.min_packets,
            max_packets=self.max_packets,
        )


# ---- all of it -------------------------------------------------------------------------------------------------------


class FairlaneConfig(Section):
    """The whole file."""

    program: str | None = None
    "The P4 program that the file is for; refused on a topology that runs another one."
    topology: TopologyConfig = TopologyConfig()
    loop: LoopConfig | None = None
    ports: tuple[PortConfig, ...] | None = None
    classes: tuple[ClassConfig, ...] | None = None
    "Qthresh: all rules of a traffic class other than 0; others are removed."
    policies: tuple[PolicyConfig, ...] | None = None
    "Qthresh: all policies; a class without one is drop-tail."
    vcs: tuple[VcConfig, ...] | None = None
    "GFR: all VCs."
    clp_dscp: Dscps = MARKED_DSCPS
    "GFR: DSCPs that mean CLP 1."

    @field_validator("program")
    @classmethod
    def _check_program(cls, value: str | None) -> str | None:
        try:
            return value if value is None else load_program(value).name
        except FairlaneError as ex:
            raise ValueError(ex.message) from None

    def gfr_part(self, in_force: GfrConfig | None = None) -> GfrConfig | None:
        """What the program gfr has of it, with what it leaves out as in `in_force`; None when it says nothing of GFR."""
        ports = tuple(port.as_gfr() for port in self.ports or () if port.is_gfr)
        if not ports and self.vcs is None and "clp_dscp" not in self.model_fields_set:
            return None
        old = in_force or GfrConfig()
        return GfrConfig(
            ports=ports if self.ports is not None else old.ports,
            vcs=self.vcs if self.vcs is not None else old.vcs,
            clp_dscp=self.clp_dscp if "clp_dscp" in self.model_fields_set or not in_force else old.clp_dscp,
        )

    def part_of(self, program: Program) -> Config:
        """What a program has of it; ports that say nothing of the program are not in it."""
        ports: dict[Place, Any] = {}
        for port in self.ports or ():
            given = {name: getattr(port, name) for name in port.model_fields_set & program.Settings.model_fields.keys()}
            if given:
                ports[port.place] = program.Settings.model_validate(given)
        names = self.model_fields_set & program.Sections.model_fields.keys()
        sections = {name: getattr(self, name) for name in names}
        return Config(ports or None, program.Sections.model_validate(sections) if sections else None)

    def plain(self) -> dict[str, Any]:
        """As JSON has it, without what was not given; `FairlaneConfig.model_validate` takes it back."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


@cache
def config_model(*others: Program) -> type[FairlaneConfig]:
    """The model of the whole file: the core's sections, those of all programs that have a name, and of `others`."""
    programs = [*others, *(load_program(name) for name in program_names())]
    port_parts = [one.Settings for one in programs if one.Settings.model_fields]
    port: Any = create_model("PortConfig", __base__=(PortConfig, *port_parts), __doc__=PortConfig.__doc__)
    parts = [one.Sections for one in programs if one.Sections.model_fields]
    ports: Any = (tuple[port, ...] | None, None)
    whole = create_model(
        "FairlaneConfig", __base__=(FairlaneConfig, *parts), __doc__=FairlaneConfig.__doc__, ports=ports
    )
    return cast("type[FairlaneConfig]", whole)
