# SPDX-License-Identifier: Apache-2.0
"""GFR's configuration (docs/concepts/gfr.md): ports and VCs as values, and the numbers that VCs have in the switches.

What one value alone can show is refused here; what needs others, or the topology, in `check.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from fairlane import Cells, Config, Duration, ErrorCode, Flag, Place, Rate, Section, Settings, parse_dscp
from fairlane.changes import Documents
from fairlane.switch import CPU_PORT, ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES, PortNumber, SwitchName
from fairlane.text import plain_value
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from .model import MAX_40, cells_of_frame
from .names import CELLS_MAX, PROGRAM, RATE_PERIOD_MAX_US, RATE_PERIOD_MIN_US

MFS_MAX_BYTES = 65_535 - ETHERNET_HEADER_BYTES - VLAN_TAG_BYTES
"""`mfs` of the data plane counts bytes of frame in 16 bits."""
MarkedDscp = Literal["", "AF12", "AF13", "AF22", "AF23", "AF32", "AF33", "AF42", "AF43"]
MARKED_DSCPS: tuple[str, ...] = get_args(MarkedDscp)[1:]
"""Drop precedence 2 and 3 (RFC 2597): a frame that comes with one of them has CLP 1."""
RATE_PERIOD_MIN_S = RATE_PERIOD_MIN_US / 1e6


def network_of(text: str) -> IPv4Network | IPv6Network | None:
    """`10.0.1.0/24`, `2001:db8::/32`, an address, or "" (any, None). Raises ValueError, also where host bits are not 0."""
    return ip_network(text.strip()) if text.strip() else None


def place_of(text: str) -> Place:
    """`s1:3` as switch and port. Raises ValueError."""
    switch, _, port = text.rpartition(":")
    if not switch or not port.isdecimal() or not 0 < int(port) < CPU_PORT:
        raise ValueError(f"{text!r}: must be SWITCH:PORT, e.g. s1:3")
    return switch, int(port)


def _read_by(parse: Callable[[str], object]) -> AfterValidator:
    """A text that a function understands; it stays a text."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


def _unchanged(text: str, option: str) -> str:
    """What the model reads of an option that may be repeated."""
    del option
    return text


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
Prefix = Annotated[str, _read_by(network_of)]
PlaceText = Annotated[str, _read_by(place_of)]


class SchemeSettings(Settings):
    """How a port admits frames, whatever its line; symbols are the GFR paper's."""

    lbo_cells: CellThreshold = 1000
    "LBO, e.g. 1000 or 1000cells."
    hbo_cells: CellThreshold = 3000
    "HBO, e.g. 1000 or 1000cells."
    qmax_cells: CellThreshold = 4000
    "QMAX, e.g. 1000 or 1000cells."
    rate_form: Literal["time", "alpha"] = "time"
    "Form of (2) that measures r_i: weighted by time, or with the paper's fixed alpha."
    rate_alpha: float = Field(default=0.9, ge=0, le=255 / 256)
    'Alpha of (2) with `rate_form = "alpha"`.'
    rate_at: Literal["arrival", "acceptance"] = "acceptance"
    "Which frames (2) counts: acceptance, those that are accepted (the paper's pseudo-code), or arrival, all (its section 3.2)."
    dfba_z: float = Field(default=1.0, gt=0, le=255)
    dfba_alpha: float = Field(default=0.5, ge=0, le=1)
    wfba_z: float = Field(default=0.8, gt=0, le=255)
    threshold_mbs: float = Field(default=1.0, gt=0, le=1000)
    "perVC+threshold: T_i as a multiple of MBS_i."


class GfrPort(SchemeSettings):
    """A port of the file: GFR's when it has a capacity."""

    capacity: Capacity | None = None
    "GFR: C_GFR, bit/s on the line; a port without it is not GFR's."
    follow_capacity: bool = False
    "Let C_GFR, LBO and HBO follow what the line really drains, where that is 5 % less or more than `capacity`."
    scheme: Scheme = "proposed"
    "drop_tail, double_epd, dfba, wfba, pervc_threshold or proposed."
    queues: Literal["wrr", "fifo"] = "wrr"
    "wrr (a queue for each VC, served with the weights w_i) or fifo (one queue for all)."
    rate_period: Annotated[Duration, Field(ge=RATE_PERIOD_MIN_S, le=RATE_PERIOD_MAX_US / 1e6)] = RATE_PERIOD_MIN_S
    'T of (2) with `rate_form = "alpha"`, 64us to 1s, at least: frames within it count together; 64us: T between arrivals.'


class ManagedPort(GfrPort):
    """An egress port that GFR manages."""

    switch: SwitchName
    port: PortNumber
    capacity: Capacity  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    "C_GFR, bit/s on the line."

    @property
    def place(self) -> Place:
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
            raise ErrorCode.BAD_INPUT(f"{option} {text!r}: {example}")
        given = (pair.partition("=") for pair in pairs)
        return {"switch": switch, **{key: plain_value(value) for key, _, value in given}}


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
    mark_dscp: Annotated[MarkedDscp, Flag("--mark-dscp", "DSCP")] = "AF12"
    'DSCP that a frame above MCR gets at the edge; "": its DSCP stays (a VLAN tag\'s DEI says CLP 1).'
    match: Annotated[tuple[VcMatch, ...], Flag("--match -m", "MATCH", VcMatch.of_text)] = Field(min_length=1)
    "Its packets at a switch, e.g. s1,ingress_port=1,src=10.0.1.0/24 (also dst, vlan, dscp)."
    edge: Annotated[tuple[PlaceText, ...], Flag("--edge", "SWITCH:PORT", _unchanged)] = ()
    "Where it is policed: s1:1 (switch, ingress port); none: not policed, its frames' own marks are believed."
    path: Annotated[tuple[PlaceText, ...], Flag("--path", "SWITCH:PORT", _unchanged)] = ()
    "Managed ports that it crosses, s1:6; default: all managed ports of the switches in `match`."

    @property
    def edges(self) -> list[Place]:
        """The places of `edge`: switch and ingress port."""
        return [place_of(text) for text in self.edge]

    @property
    def mfs_frame_bytes(self) -> int:
        """MFS in bytes of frame: with the Ethernet header, and a VLAN tag where it is matched by one."""
        tag = VLAN_TAG_BYTES if any(match.vlan for match in self.match) else 0
        return self.mfs_bytes + ETHERNET_HEADER_BYTES + tag

    @property
    def mfs_cells(self) -> int:
        """Cells of its longest frame."""
        return cells_of_frame(self.mfs_frame_bytes)


class GfrSections(Section):
    """At the top of the file."""

    vcs: tuple[VcConfig, ...] | None = None
    "GFR: all VCs."


Numbers = dict[str, dict[str, int]]
"""By scope, then by what has the number: ids of VCs in the network ("", VC), slots of a switch ("s1", "s1:6 VC"), queues of a port
("s1:6", VC)."""


class GfrState(Section):
    """What is in force: all managed ports and VCs of a topology, and the numbers that these VCs have in the switches."""

    ports: tuple[ManagedPort, ...] = ()
    vcs: tuple[VcConfig, ...] = ()
    numbers: Numbers = Field(default_factory=dict)
    used: dict[str, int] = Field(default_factory=dict)
    "By scope: the number above all that were given at some time."

    @property
    def switches(self) -> set[str]:
        """Every switch that is named."""
        places = [place for vc in self.vcs for place in (*vc.edges, *map(place_of, vc.path))]
        matches = [match.switch for vc in self.vcs for match in vc.match]
        return {*matches, *(switch for switch, _ in places), *(port.switch for port in self.ports)}

    def path_of(self, vc: VcConfig) -> list[ManagedPort]:
        """The managed ports that a VC crosses, in the order of the configuration."""
        places, switches = [place_of(text) for text in vc.path], [match.switch for match in vc.match]
        return [port for port in self.ports if (port.place in places if places else port.switch in switches)]

    def vcs_of(self) -> dict[Place, list[VcConfig]]:
        """The VCs of each managed port."""
        found: dict[Place, list[VcConfig]] = {port.place: [] for port in self.ports}
        for vc in self.vcs:
            for port in self.path_of(vc):
                found[port.place].append(vc)
        return found

    def changed_by(self, part: Config) -> GfrState:
        """What a file says, with what it leaves out as here."""
        changes: dict[str, Any] = {}
        if part.sections is not None and part.sections.vcs is not None:
            changes["vcs"] = part.sections.vcs
        if part.ports is not None:
            given = [(at, one) for at, one in part.ports.items() if one.capacity is not None]
            changes["ports"] = tuple(
                ManagedPort.model_construct(
                    **{name: getattr(one, name) for name in one.model_fields_set}, switch=at[0], port=at[1]
                )
                for at, one in given
            )
        return self.model_copy(update=changes)


def gfr_store(folder: Path | None) -> Documents[GfrState]:
    """The state, in the state file of a folder; `folder` None keeps it in memory only. Raises BAD_FILE when it cannot be understood."""
    return Documents(folder, PROGRAM, GfrState, PROGRAM)
