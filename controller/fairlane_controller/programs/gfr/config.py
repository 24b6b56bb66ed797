# SPDX-License-Identifier: Apache-2.0
"""GFR's configuration, `gfr.toml` of docs/concepts/gfr.md: ports and VCs as values, read with errors that say what and where.

What one value alone can show is refused here; what needs others, or the topology, in `check.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane import Cells, Config, Duration, ErrorCode, FairlaneError, Flag, Rate, Section, Settings, parse_dscp
from fairlane.changes import read_text
from fairlane.switch import CPU_PORT, ETHERNET_HEADER_BYTES, PortNumber, SwitchName
from fairlane.text import DocumentError, bad_config, describe, parse_toml, plain_value
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from .model import MAX_40, cells_of_frame
from .names import CELLS_MAX, RATE_PERIOD_MAX_US, RATE_PERIOD_MIN_US

MFS_MAX_BYTES = 65_535 - ETHERNET_HEADER_BYTES - 4
"""`mfs` of the data plane counts bytes of frame in 16 bits; 4 of them for a VLAN tag."""
MARKED_DSCPS = ("AF12", "AF13", "AF22", "AF23", "AF32", "AF33", "AF42", "AF43")
"""Drop precedence 2 and 3 (RFC 2597) say CLP 1 unless the configuration says otherwise."""
RATE_PERIOD_MIN_S = RATE_PERIOD_MIN_US / 1e6


def network_of(text: str) -> IPv4Network | IPv6Network | None:
    """`10.0.1.0/24`, `2001:db8::/32`, an address, or "" (any, None). Raises ValueError, also where host bits are not 0."""
    return ip_network(text.strip()) if text.strip() else None


def _read_by(parse: Callable[[str], object]) -> AfterValidator:
    """A text that a function understands; it stays a text."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


Scheme = Literal["drop_tail", "double_epd", "dfba", "wfba", "pervc_threshold", "proposed"]
"""How an egress port admits frames: actions of the table `port_scheme`."""
LineRate = Annotated[Rate, Field(le=MAX_40)]
"""Bits on the line a second, as 40 bits have them."""
Capacity = Annotated[LineRate, Field(gt=0)]
CellThreshold = Annotated[Cells, Field(le=CELLS_MAX)]
DscpText = Annotated[
    str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value), _read_by(parse_dscp)
]
"""0 to 63 or a name; "": none."""
Dscps = Annotated[tuple[Annotated[DscpText, Field(min_length=1)], ...], PlainSerializer(list)]
Prefix = Annotated[str, _read_by(network_of)]


class GfrPort(Settings):
    """A port of the file: GFR's when it has a capacity."""

    capacity: Annotated[Capacity | None, Flag("--capacity", "RATE")] = None
    "GFR: C_GFR, bit/s on the line; a port without it is not GFR's."
    follow_capacity: bool = False
    "Let C_GFR, LBO and HBO follow what the line really drains, where that is less or more than `capacity`."
    scheme: Annotated[Scheme, Flag("--scheme")] = "proposed"
    "drop_tail, double_epd, dfba, wfba, pervc_threshold or proposed."
    queues: Annotated[Literal["wrr", "fifo"], Flag("--queueing")] = "wrr"
    "wrr (a queue a VC, served with the weights w_i) or fifo (one queue for all)."
    lbo_cells: Annotated[CellThreshold, Flag("--lbo", "CELLS")] = 1000
    "LBO, e.g. 1000 or 1000cells."
    hbo_cells: Annotated[CellThreshold, Flag("--hbo", "CELLS")] = 3000
    "HBO, e.g. 1000 or 1000cells."
    qmax_cells: Annotated[CellThreshold, Flag("--qmax", "CELLS")] = 4000
    "QMAX, e.g. 1000 or 1000cells."
    rate_form: Annotated[Literal["time", "alpha"], Flag("--rate-form")] = "time"
    "Form of (2) that measures r_i: time or alpha."
    rate_alpha: Annotated[float, Flag("--rate-alpha")] = Field(default=0.9, ge=0, lt=1)
    'Alpha of (2) with `rate_form = "alpha"`.'
    rate_period: Annotated[
        Annotated[Duration, Field(ge=RATE_PERIOD_MIN_S, le=RATE_PERIOD_MAX_US / 1e6)], Flag("--rate-period", "TIME")
    ] = RATE_PERIOD_MIN_S
    'T of (2) with `rate_form = "alpha"`, 64us to 1s, at least: frames within it count together; 64us: T between arrivals.'
    rate_at: Annotated[Literal["arrival", "acceptance"], Flag("--rate-at")] = "acceptance"
    "Which frames (2) counts: acceptance, those that are accepted (the paper's pseudo-code), or arrival, all (its section 3.2)."
    dfba_z: float = Field(default=1.0, gt=0, le=255)
    dfba_alpha: float = Field(default=0.5, ge=0, le=1)
    wfba_z: float = Field(default=0.8, gt=0, le=255)
    threshold_mbs: float = Field(default=1.0, gt=0, le=1000)
    "perVC+threshold: T_i as a multiple of MBS_i."
    mtu_bytes: int | None = Field(default=None, ge=68, le=65_535)
    "Longest IP packet of the line; default: what the run state says, else 1500."


class PortConfig(GfrPort):
    """An egress port that GFR manages."""

    switch: SwitchName
    port: PortNumber
    capacity: Capacity  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    "C_GFR, bit/s on the line."

    @property
    def place(self) -> tuple[str, int]:
        """(switch, port)."""
        return self.switch, self.port

    def __str__(self) -> str:
        """`s1:3`."""
        return f"{self.switch}:{self.port}"


class VcMatch(Section):
    """Packets of a VC at one switch; what is left out matches all."""

    switch: SwitchName
    ingress_port: int = Field(default=0, ge=0, lt=CPU_PORT)
    src: Prefix = ""
    dst: Prefix = ""
    vlan: int = Field(default=0, ge=0, le=4094)
    dscp: DscpText = ""

    @model_validator(mode="after")
    def _one_ip_version(self) -> VcMatch:
        if len(self.versions) == 0:
            raise ValueError(f"src {self.src} and dst {self.dst} are of different IP versions: no packet has both")
        return self

    @property
    def versions(self) -> list[int]:
        """The IP versions of its packets: 4 and 6 where no address says which."""
        given = {network.version for network in map(network_of, (self.src, self.dst)) if network is not None}
        return [version for version in (4, 6) if given <= {version}]

    @staticmethod
    def of_text(text: str, option: str) -> dict[str, Any]:
        """`s1,ingress_port=1,src=10.0.1.0/24` as the file has it; which keys there are, the model says.

        Raises:
            FairlaneError: BAD_INPUT, with the name of the option.
        """
        switch, *pairs = [part.strip() for part in text.split(",")]
        if not switch or not all("=" in pair for pair in pairs):
            example = "must be SWITCH,KEY=VALUE,… e.g. s1,ingress_port=1,src=10.0.1.0/24"
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{option} {text!r}: {example}")
        given = (pair.partition("=") for pair in pairs)
        return {"switch": switch, **{key: plain_value(value) for key, _, value in given}}

    def __str__(self) -> str:
        """The inverse of `of_text`."""
        switch, *given = self.model_dump().items()
        return ",".join([str(switch[1]), *(f"{key}={value}" for key, value in given if value)])


class VcEdge(Section):
    """Where a VC enters the network and is policed."""

    switch: SwitchName
    ingress_port: PortNumber

    @staticmethod
    def of_text(text: str, option: str, key: str = "ingress_port") -> dict[str, Any]:
        """`s1:1` as the file has it, with the port called `key`. Raises BAD_INPUT, with the name of the option."""
        switch, _, number = text.rpartition(":")
        if not switch or not number.isdecimal():
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{option} {text!r}: must be SWITCH:PORT, e.g. s1:1")
        return {"switch": switch, key: int(number)}


class VcPlace(Section):
    """An egress port on a VC's path."""

    switch: SwitchName
    port: PortNumber


class VcConfig(Section):
    """One VC: a customer's aggregate with a minimum rate."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    mcr: Annotated[LineRate, Flag("--mcr", "RATE")]
    "Guaranteed rate, bit/s on the line."
    pcr: Annotated[Capacity | None, Flag("--pcr", "RATE")] = None
    "Peak rate: above it frames are dropped at the edge; default: the least capacity of its ports."
    mbs_cells: Annotated[int, Flag("--mbs", "CELLS")] = Field(default=200, ge=1, le=1_000_000)
    "Longest burst within MCR, in cells."
    mfs_bytes: Annotated[int, Flag("--mfs", "BYTES")] = Field(default=1500, ge=20, le=MFS_MAX_BYTES)
    "Longest IP packet, in bytes."
    weight: Annotated[float, Flag("--weight -w")] = Field(default=1.0, gt=0, le=1000)
    "Share of what is left of C_GFR after all MCR; 1 for all is the paper's (3)."
    mark_dscp: Annotated[DscpText, Flag("--mark-dscp", "DSCP")] = "AF12"
    'DSCP that a frame above MCR gets at the edge; "": its DSCP stays (a VLAN tag\'s DEI says CLP 1).'
    match: Annotated[tuple[VcMatch, ...], Flag("--match -m", "MATCH", VcMatch.of_text)] = Field(min_length=1)
    "Its packets at a switch, e.g. s1,ingress_port=1,src=10.0.1.0/24 (also dst, vlan, dscp)."
    edge: Annotated[tuple[VcEdge, ...], Flag("--edge", "SWITCH:PORT", VcEdge.of_text)] = ()
    "Where it is policed: s1:1 (switch, ingress port); none: not policed, its frames' own marks are believed."
    path: Annotated[
        tuple[VcPlace, ...], Flag("--path", "SWITCH:PORT", lambda text, option: VcEdge.of_text(text, option, "port"))
    ] = ()
    "Managed ports that it crosses; default: by the routes of its `dst`, else all managed ports of the switches in `match`."

    @property
    def mfs_frame_bytes(self) -> int:
        """MFS in bytes of frame: with the Ethernet header, and a VLAN tag where it is matched by one."""
        tag = 4 if any(match.vlan for match in self.match) else 0
        return self.mfs_bytes + ETHERNET_HEADER_BYTES + tag

    @property
    def mfs_cells(self) -> int:
        """Cells of its longest frame."""
        return cells_of_frame(self.mfs_frame_bytes)


class GfrSections(Section):
    """At the top of the file."""

    vcs: tuple[VcConfig, ...] | None = None
    "GFR: all VCs."
    clp_dscp: Dscps = MARKED_DSCPS
    "GFR: DSCPs that mean CLP 1 when a frame comes; a VLAN tag's DEI always does."


class GfrConfig(Section):
    """All ports and VCs of a topology."""

    ports: tuple[PortConfig, ...] = ()
    vcs: tuple[VcConfig, ...] = ()
    clp_dscp: Dscps = MARKED_DSCPS

    @model_validator(mode="after")
    def _each_port_once(self) -> GfrConfig:
        counts = Counter(map(str, self.ports))
        if twice := [f"{port} occurs {count} times" for port, count in counts.items() if count > 1]:
            raise ValueError(f"ports: {twice[0]}; a port may occur once")
        return self

    @property
    def switches(self) -> list[str]:
        """Every switch that is named, sorted."""
        named = {port.switch for port in self.ports}
        return sorted(named.union(*({part.switch for part in (*vc.match, *vc.edge, *vc.path)} for vc in self.vcs)))

    def port(self, switch: str, number: int) -> PortConfig | None:
        """The managed port of that place, or None."""
        return next((port for port in self.ports if port.place == (switch, number)), None)


class GfrLoop(Section):
    """Keys of `[loop]`."""

    activity_period: Annotated[Duration, Field(ge=0.1, le=60)] = 1.0
    "GFR: between two polls of which VCs are active."
    active_time: Annotated[Duration, Field(ge=0.2, le=600)] = 2.0
    "GFR: a VC without an arrival for so long is not active."


def with_changes(part: Config, in_force: GfrConfig) -> GfrConfig | None:
    """What a file says, with what it leaves out as in `in_force`; None when it says nothing of GFR."""
    given = [(place, port) for place, port in (part.ports or {}).items() if port.capacity is not None]
    sections = part.sections.model_fields_set if part.sections else ()
    if not given and not sections:
        return None
    changes: dict[str, Any] = {name: getattr(part.sections, name) for name in sections}
    if part.ports is not None:
        values = [(place, {name: getattr(port, name) for name in port.model_fields_set}) for place, port in given]
        changes["ports"] = tuple(PortConfig.model_construct(switch=at[0], port=at[1], **port) for at, port in values)
    return in_force.model_copy(update={name: value for name, value in changes.items() if value is not None})


def read_config(path: Path) -> GfrConfig:
    """Read a TOML file; raises BAD_FILE that says the file, the key (`ports[0].lbo_cells`), and what is allowed."""
    try:
        return parse_config(parse_toml(read_text(path)), str(path))
    except DocumentError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: not TOML: {ex}") from None


def parse_config(data: dict[str, Any], source: str) -> GfrConfig:
    """A configuration from plain data; raises BAD_FILE as `read_config` does, with `source` where the file stands."""
    try:
        return GfrConfig.model_validate(data)
    except ValidationError as ex:
        raise bad_config(source, describe(ex, GfrConfig)) from None
