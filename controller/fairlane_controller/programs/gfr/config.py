# SPDX-License-Identifier: Apache-2.0
"""GFR's configuration, `gfr.toml` of docs/concepts/gfr.md: ports and VCs as values, read with errors that say what and where.

What one value alone can show is refused here; what needs others, or the topology, in `check.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from fairlane import (
    Cells,
    Config,
    Duration,
    ErrorCode,
    FairlaneError,
    Flag,
    Rate,
    Section,
    Settings,
    duration_text,
    parse_dscp,
)
from fairlane.changes import read_text
from fairlane.switch import CPU_PORT, ETHERNET_HEADER_BYTES, PortNumber, SwitchName
from fairlane.text import DocumentError, bad_config, describe, parse_toml, plain_value
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    field_validator,
)

from .match import IpNetwork, Ternary, parse_prefix, ternaries
from .model import MAX_40, cells_of_frame
from .names import CELLS_MAX, RATE_PERIOD_MAX_US, RATE_PERIOD_MIN_US

MFS_MAX_BYTES = 65_535 - ETHERNET_HEADER_BYTES - 4
"""`mfs` of the data plane counts bytes of frame in 16 bits; 4 of them for a VLAN tag."""
MARKED_DSCPS = ("AF12", "AF13", "AF22", "AF23", "AF32", "AF33", "AF42", "AF43")
"""Drop precedence 2 and 3 (RFC 2597) say CLP 1 unless the configuration says otherwise."""


LineRate = Annotated[Rate, Field(le=MAX_40)]
"""Bits on the line a second, as 40 bits have them."""
CellThreshold = Annotated[Cells, Field(le=CELLS_MAX)]
Dscp = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


class GfrScheme(str, Enum):
    """How an egress port admits frames: actions of the table `port_scheme`."""

    DROP_TAIL = "drop_tail"
    DOUBLE_EPD = "double_epd"
    DFBA = "dfba"
    WFBA = "wfba"
    PERVC_THRESHOLD = "pervc_threshold"
    PROPOSED = "proposed"


class Queues(str, Enum):
    """Where admitted frames wait."""

    WRR = "wrr"
    "A queue for each VC, served by the port's scheduler with the weights w_i."
    FIFO = "fifo"
    "One queue for all."


class RateForm(str, Enum):
    """Which form of (2) measures r_i."""

    TIME = "time"
    ALPHA = "alpha"


class RateAt(str, Enum):
    """When r_i is measured."""

    ARRIVAL = "arrival"
    ACCEPTANCE = "acceptance"


class GfrPort(Settings):
    """A port of the file: GFR's when it has a capacity."""

    capacity: Annotated[Annotated[LineRate, Field(gt=0)] | None, Flag("--capacity", "RATE")] = None
    "GFR: C_GFR, bit/s on the line; a port without it is not GFR's."
    follow_capacity: bool = False
    "Let C_GFR, LBO and HBO follow what the line really drains, where that is less or more than `capacity`."
    scheme: Annotated[GfrScheme, Flag("--scheme")] = GfrScheme.PROPOSED
    "drop_tail, double_epd, dfba, wfba, pervc_threshold or proposed."
    queues: Annotated[Queues, Flag("--queueing")] = Queues.WRR
    "wrr (a queue a VC) or fifo."
    lbo_cells: Annotated[CellThreshold, Flag("--lbo", "CELLS")] = 1000
    "LBO, e.g. 1000 or 1000cells."
    hbo_cells: Annotated[CellThreshold, Flag("--hbo", "CELLS")] = 3000
    "HBO, e.g. 1000 or 1000cells."
    qmax_cells: Annotated[CellThreshold, Flag("--qmax", "CELLS")] = 4000
    "QMAX, e.g. 1000 or 1000cells."
    rate_form: Annotated[RateForm, Flag("--rate-form")] = RateForm.TIME
    "Form of (2) that measures r_i: time or alpha."
    rate_alpha: Annotated[float, Flag("--rate-alpha")] = Field(default=0.9, ge=0, lt=1)
    'Alpha of (2) with `rate_form = "alpha"`.'
    rate_period: Annotated[Duration, Flag("--rate-period", "TIME")] = RATE_PERIOD_MIN_US / 1e6
    'T of (2) with `rate_form = "alpha"`, at least: frames within it count together; 64us: T between arrivals.'
    rate_at: Annotated[RateAt, Flag("--rate-at")] = RateAt.ACCEPTANCE
    "Which frames (2) counts: acceptance, those that are accepted (the paper's pseudo-code), or arrival, all (its section 3.2)."
    dfba_z: float = Field(default=1.0, gt=0, le=255)
    dfba_alpha: float = Field(default=0.5, ge=0, le=1)
    wfba_z: float = Field(default=0.8, gt=0, le=255)
    threshold_mbs: float = Field(default=1.0, gt=0, le=1000)
    "perVC+threshold: T_i as a multiple of MBS_i."
    mtu_bytes: int | None = Field(default=None, ge=68, le=65_535)
    "Longest IP packet of the line; default: what the run state says, else 1500."

    @field_validator("rate_period")
    @classmethod
    def _check_period(cls, value: float) -> float:
        least, most = RATE_PERIOD_MIN_US / 1e6, RATE_PERIOD_MAX_US / 1e6
        if not least <= value <= most:
            raise ValueError(f"{duration_text(value)} must be {duration_text(least)} to {duration_text(most)}")
        return value


class PortConfig(GfrPort):
    """An egress port that GFR manages."""

    switch: SwitchName
    port: PortNumber
    capacity: Annotated[LineRate, Field(gt=0)]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    "C_GFR, bit/s on the line."

    @property
    def place(self) -> tuple[str, int]:
        """(switch, port)."""
        return self.switch, self.port


class VcMatch(Section):
    """Packets of a VC at one switch; what is left out matches all."""

    switch: SwitchName
    ingress_port: int = Field(default=0, ge=0, lt=CPU_PORT)
    src: str = ""
    dst: str = ""
    vlan: int = Field(default=0, ge=0, le=4094)
    dscp: Dscp = ""

    @field_validator("src", "dst")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        parse_prefix(value)
        return value

    @field_validator("dscp")
    @classmethod
    def _check_dscp(cls, value: str) -> str:
        parse_dscp(value)
        return value

    @property
    def dst_network(self) -> IpNetwork | None:
        """Where the packets go, if it says so."""
        return parse_prefix(self.dst)

    @staticmethod
    def of_text(text: str, option: str) -> dict[str, Any]:
        """`s1,ingress_port=1,src=10.0.1.0/24` as the file has it; which keys there are, the model says."""
        first, *rest = [part.strip() for part in text.split(",")]
        made: dict[str, Any] = {"switch": first.removeprefix("switch=")}
        for part in rest:
            key, equals, value = part.partition("=")
            if not equals or not first:
                example = "must be SWITCH,KEY=VALUE,… e.g. s1,ingress_port=1,src=10.0.1.0/24"
                raise FairlaneError(ErrorCode.BAD_INPUT, f"{option} {text!r}: {example}")
            made[key] = plain_value(value)
        return made

    def __str__(self) -> str:
        """The inverse of `of_text`."""
        given = {name: getattr(self, name) for name in VcMatch.model_fields}
        return ",".join([given.pop("switch"), *(f"{key}={value}" for key, value in given.items() if value)])

    def ternaries(self) -> list[Ternary]:
        """Its entries. Raises ValueError when src and dst are of different IP versions."""
        return ternaries(
            self.ingress_port, self.vlan, parse_dscp(self.dscp), parse_prefix(self.src), parse_prefix(self.dst)
        )


def _place_parser(key: str) -> Callable[[str, str], dict[str, Any]]:
    """What reads `s1:1` as a table of the file whose port is called `key`."""

    def read(text: str, option: str) -> dict[str, Any]:
        switch, _, number = text.rpartition(":")
        if not switch or not number.isdecimal():
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{option} {text!r}: must be SWITCH:PORT, e.g. s1:1")
        return {"switch": switch, key: int(number)}

    return read


class VcEdge(Section):
    """Where a VC enters the network and is policed."""

    switch: SwitchName
    ingress_port: PortNumber


class VcPlace(Section):
    """An egress port on a VC's path."""

    switch: SwitchName
    port: PortNumber


class VcConfig(Section):
    """One VC: a customer's aggregate with a minimum rate."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    mcr: Annotated[LineRate, Flag("--mcr", "RATE")]
    "Guaranteed rate, bit/s on the line."
    pcr: Annotated[Annotated[LineRate, Field(gt=0)] | None, Flag("--pcr", "RATE")] = None
    "Peak rate: above it frames are dropped at the edge; default: the least capacity of its ports."
    mbs_cells: Annotated[int, Flag("--mbs", "CELLS")] = Field(default=200, ge=1, le=1_000_000)
    "Longest burst within MCR, in cells."
    mfs_bytes: Annotated[int, Flag("--mfs", "BYTES")] = Field(default=1500, ge=20, le=MFS_MAX_BYTES)
    "Longest IP packet, in bytes."
    weight: Annotated[float, Flag("--weight -w")] = Field(default=1.0, gt=0, le=1000)
    "Share of what is left of C_GFR after all MCR; 1 for all is the paper's (3)."
    mark_dscp: Annotated[Dscp, Flag("--mark-dscp", "DSCP")] = "AF12"
    'DSCP that a frame above MCR gets at the edge; "": its DSCP stays (a VLAN tag\'s DEI says CLP 1).'
    match: Annotated[tuple[VcMatch, ...], Flag("--match -m", "MATCH", VcMatch.of_text)] = ()
    "Its packets at a switch, e.g. s1,ingress_port=1,src=10.0.1.0/24 (also dst, vlan, dscp)."
    edge: Annotated[tuple[VcEdge, ...], Flag("--edge", "SWITCH:PORT", _place_parser("ingress_port"))] = ()
    "Where it is policed: s1:1 (switch, ingress port); none: not policed, its frames' own marks are believed."
    path: Annotated[tuple[VcPlace, ...], Flag("--path", "SWITCH:PORT", _place_parser("port"))] = ()
    "Managed ports that it crosses; default: by the routes of its `dst`, else all managed ports of the switches in `match`."

    @field_validator("mark_dscp")
    @classmethod
    def _check_dscp(cls, value: str) -> str:
        parse_dscp(value)
        return value

    @property
    def mfs_frame_bytes(self) -> int:
        """MFS in bytes of frame: with the Ethernet header, and a VLAN tag where it is matched by one."""
        tag = 4 if any(match.vlan for match in self.match) else 0
        return self.mfs_bytes + ETHERNET_HEADER_BYTES + tag

    @property
    def mfs_cells(self) -> int:
        """Cells of its longest frame."""
        return cells_of_frame(self.mfs_frame_bytes)


Dscps = Annotated[tuple[Dscp, ...], PlainSerializer(list)]


class GfrConfig(Section):
    """All ports and VCs of a topology."""

    ports: tuple[PortConfig, ...] = ()
    vcs: tuple[VcConfig, ...] = ()
    clp_dscp: Dscps = MARKED_DSCPS
    "DSCPs that mean CLP 1 when a frame comes; a VLAN tag's DEI always does."

    @field_validator("clp_dscp")
    @classmethod
    def _check_dscps(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if parse_dscp(value) is None:
                raise ValueError(
                    "an empty DSCP would mark every frame: must be 0 to 63, AF11 to AF43, CS0 to CS7 or EF"
                )
        return values

    @property
    def switches(self) -> list[str]:
        """Every switch that is named, sorted."""
        named = {port.switch for port in self.ports}
        for vc in self.vcs:
            named |= {part.switch for part in (*vc.match, *vc.edge, *vc.path)}
        return sorted(named)

    def port(self, switch: str, number: int) -> PortConfig | None:
        """The managed port of that place, or None."""
        return next((port for port in self.ports if port.place == (switch, number)), None)

    def vc(self, name: str) -> VcConfig | None:
        """The VC of that name, or None."""
        return next((vc for vc in self.vcs if vc.name == name), None)


class GfrSections(Section):
    """At the top of the file."""

    vcs: tuple[VcConfig, ...] | None = None
    "GFR: all VCs."
    clp_dscp: Dscps = MARKED_DSCPS
    "GFR: DSCPs that mean CLP 1."


class GfrLoop(Section):
    """Keys of `[loop]`."""

    activity_period: Annotated[Duration, Field(ge=0.1, le=60)] = 1.0
    "GFR: between two looks at which VCs are active."
    active_time: Annotated[Duration, Field(ge=0.2, le=600)] = 2.0
    "GFR: a VC without an arrival for so long is not active."


def config_of(part: Config, in_force: GfrConfig | None = None) -> GfrConfig | None:
    """What a file says, with what it leaves out as in `in_force`; None when it says nothing of GFR."""
    ports = tuple(
        PortConfig.model_construct(
            switch=place[0], port=place[1], **{name: getattr(port, name) for name in port.model_fields_set}
        )
        for place, port in (part.ports or {}).items()
        if port.capacity is not None
    )
    sections = part.sections or GfrSections()
    said = sections.model_fields_set
    if not ports and not said:
        return None
    old = in_force or GfrConfig()
    return GfrConfig(
        ports=ports if part.ports is not None else old.ports,
        vcs=old.vcs if sections.vcs is None else sections.vcs,
        clp_dscp=sections.clp_dscp if "clp_dscp" in said else old.clp_dscp,
    )


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_config(path: Path) -> GfrConfig:
    """Read a TOML file; raises BAD_FILE that says the file, the key (`ports[0].lbo_cells`), and what is allowed."""
    text = read_text(path)
    try:
        data = parse_toml(text)
    except DocumentError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: not TOML: {ex}") from None
    return parse_config(data, str(path))


def parse_config(data: dict[str, Any], source: str) -> GfrConfig:
    """A configuration from plain data; raises BAD_FILE as `read_config` does, with `source` where the file stands."""
    try:
        return GfrConfig.model_validate(data)
    except ValidationError as ex:
        raise bad_config(source, describe(ex, GfrConfig)) from None
