# SPDX-License-Identifier: Apache-2.0
"""One run, fully resolved: what a runner gets, the same for virtual time and for Mininet. Values only; nothing runs here. Its topology and
the changes of its links are read here as every runtime reads them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from fairlane_controller.state.run_state import DEFAULT_PROGRAM
from fairlane_switch.link_series import Series
from fairlane_topology import changes as fl_changes
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange, Rate
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.dataclasses import dataclass as checked_dataclass

from fairlane_lab.run_result import RunError

AppKind = Literal["greedy", "bytes", "on_off", "web", "interactive", "video", "cbr_udp", "command"]
Distribution = Literal["fixed", "exponential", "pareto", "web_search", "data_mining"]
Backoff = Literal["kept", "reset"]
Naming = Literal["own", "lowest"]
Threshold = int | Literal["model", "auto"]
FRAME_OVERHEAD_BYTES = 54
"""Ethernet, IPv4 and TCP headers without options."""
IPV6_BYTES = 20
"""What an IPv6 header has more."""


_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=0)]

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "greedy": (),
    "bytes": ("bytes",),
    "on_off": ("on_mean_s", "off_mean_s"),
    "web": ("arrivals_per_s", "mean_bytes"),
    "interactive": ("bytes", "interval_s"),
    "video": ("bitrates_bps", "buffer_s", "cushion_s"),
    "cbr_udp": ("rate_bps", "payload_bytes"),
    "command": ("command",),
}
_MAY: Mapping[str, tuple[str, ...]] = {
    "bytes": ("times", "interval_s", "nodelay"),
    "on_off": ("distribution", "shape"),
    "web": ("max_bytes", "distribution", "shape"),
    "video": ("segment_s", "reservoir_s"),
    "command": ("receiver_command", "bytes"),
}


@checked_dataclass(frozen=True, config=_STRICT)
class App:
    """What a flow's application does; fields that its kind does not use stay at their defaults (docs/experiments.md)."""

    kind: AppKind = "greedy"
    bytes: Whole = 0
    """`bytes`: of the file; `interactive`: of each message; `command`: what `{bytes}` stands for."""
    times: Annotated[int, Field(ge=1, le=100_000)] = 1
    """`bytes`: so many files, each on a connection of its own."""
    interval_s: NotNegative = 0.0
    """From asking for one file or message to asking for the next."""
    nodelay: bool = False
    """`bytes`: TCP_NODELAY; what is written goes at once, and the FIN by itself where no data waits for it."""
    on_mean_s: NotNegative = 0.0
    off_mean_s: NotNegative = 0.0
    arrivals_per_s: NotNegative = 0.0
    offered_bps: NotNegative = 0.0
    """`web`: instead of `arrivals_per_s`, what the transfers are together; a scenario has the arrivals."""
    mean_bytes: Whole = 0
    """`web`: of the sizes as drawn."""
    max_bytes: Whole = 0
    """`web`: larger ones are cut to it, so that their mean is below `mean_bytes`; 0: none is."""
    distribution: Distribution = "exponential"
    shape: Annotated[float, Field(gt=1)] = 1.2
    bitrates_bps: tuple[Annotated[int, Field(gt=0, le=400_000_000_000)], ...] = ()
    """`video`: the ladder, rising."""
    segment_s: Annotated[float, Field(ge=0.1, le=60)] = 4.0
    """`video`: play time of a segment; the next one is asked for when the one before is acknowledged and the buffer has room for it."""
    buffer_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """`video`: play time that the player holds at most."""
    reservoir_s: NotNegative = 0.0
    """`video`, BBA-0: with no more than this waiting to be played the lowest rate is asked for …"""
    cushion_s: NotNegative = 0.0
    """… and with this more the highest; between the two the rate follows a straight line."""
    rate_bps: Whole = 0
    payload_bytes: Annotated[int, Field(ge=0, le=1472)] = 0
    """`cbr_udp`: at least 18."""
    command: tuple[str, ...] = ()
    """`command`: a program and its arguments; `{sender}` and `{receiver}` are addresses, `{port}` the receiver's, `{seconds}` the flow's time,
    `{far.receiver}` and `{far.port}` those of flow `far`."""
    receiver_command: tuple[str, ...] = ()
    """`command`: what the receiver runs, from before the run on."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> App:
        if self.offered_bps and self.max_bytes:
            raise ValueError(
                "offered_bps is of sizes whose mean is mean_bytes, and max_bytes makes it smaller: give arrivals_per_s"
            )
        if self.offered_bps and self.mean_bytes and not self.arrivals_per_s:
            object.__setattr__(self, "arrivals_per_s", round(self.offered_bps / (8 * self.mean_bytes), 9))
            object.__setattr__(self, "offered_bps", 0.0)
        needs, may = _NEEDS[self.kind], _MAY.get(self.kind, ())
        given = {field.name for field in fields(App) if getattr(self, field.name) != field.default} - {"kind"}
        missing = [name for name in needs if name not in given]
        useless = sorted(given - {*needs, *may})
        if missing:
            raise ValueError(f"kind {self.kind!r} also needs {', '.join(missing)}")
        if useless:
            allowed = ", ".join((*needs, *may)) or "nothing else"
            raise ValueError(f"kind {self.kind!r} has no {', '.join(useless)}; it has: {allowed}")
        if self.kind == "bytes" and self.times > 1 and not self.interval_s:
            raise ValueError("times above 1 also need interval_s: from asking for one file to asking for the next")
        if self.kind == "on_off" and self.distribution not in ("exponential", "pareto"):
            raise ValueError("kind 'on_off' is exponential or pareto")
        if self.kind == "cbr_udp" and self.payload_bytes < 18:
            raise ValueError(f"payload_bytes {self.payload_bytes}: at least 18")
        if self.kind == "video":
            self._check_video()
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """What its kind has, by name; of a file, what goes beyond one plain file only where it is given."""
        may = [
            name
            for name in _MAY.get(self.kind, ())
            if self.kind != "bytes" or getattr(self, name) != getattr(App, name)
        ]
        return {name: getattr(self, name) for name in (*_NEEDS[self.kind], *may)}

    def _check_video(self) -> None:
        rates = self.bitrates_bps
        if len(rates) < 2:
            raise ValueError(f"bitrates_bps {list(rates)}: at least two")
        if any(low >= high for low, high in pairwise(rates)):
            raise ValueError(f"bitrates_bps {list(rates)}: each must be above the one before")
        least_s = self.segment_s + self.reservoir_s + self.cushion_s
        if self.buffer_s < least_s:
            raise ValueError(
                f"buffer_s {self.buffer_s:g} is below reservoir_s + cushion_s + segment_s, {least_s:g}: "
                "the next segment is asked for when it has room, and the highest rate would never be"
            )


GREEDY = App()


@checked_dataclass(frozen=True, config=_STRICT)
class TcpOptions:
    """What holds for every TCP connection of a run."""

    mss_bytes: Annotated[int, Field(ge=88, le=8960)] = 960
    """Application bytes of a full segment."""
    delayed_ack: bool = True
    """False: every segment is acknowledged at once (sim; Mininet: the sink sets TCP_QUICKACK)."""
    delayed_ack_s: Annotated[float, Field(ge=0, le=0.5)] = 0.04
    """A delayed ACK leaves after this time at the latest (Linux: TCP_DELACK_MIN); 0: as `delayed_ack = false`. Linux hosts have these two alone."""
    receive_window_bytes: Annotated[int, Field(ge=0, le=2**30)] = 0
    """0: never the limit."""
    receive_windows: Annotated[int, Field(ge=0, le=1024)] = 0
    """Instead of `receive_window_bytes`: so many of the largest `window_packets` of the flows."""
    initial_window_packets: Annotated[int, Field(ge=1, le=64)] = 2
    rto_min_s: Annotated[float, Field(gt=0, le=60)] = 0.2
    backoff: Backoff = "kept"
    """When a doubled RTO ends: with an RTT sample (Karn), or with any ACK of new data (`reset`; sim only)."""
    tick_s: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Of the hosts' clock, in which timers and RTTs are counted (Linux: 1/HZ; sim only); 0: the runtime's own."""
    timestamps: bool = False
    sack: bool | None = None
    """None: as the variant says."""
    read_interval_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    """The receiving application reads so long after data came; 0: at once."""
    receiver_program: bool = True
    """False: the receivers have not the host program that the variant asks for (`Variant.receiver_programs`); a switch may do its work."""
    error_naming: Naming | None = None
    """Which corrupted segments a receiver names that notifies its sender of errors: the one that an ACK answers, or in every ACK the lowest that is
    missing; None: as the variant says."""
    ecn: bool = False
    """RFC 3168, which the variant may not ask for by itself: both ends say ECT, and a mark counts as a loss (Linux: tcp_ecn = 1)."""
    ipv6: bool = False
    """Over IPv6 instead of IPv4, UDP too (not in Mininet). A host that the topology gives no IPv6 address has `fd00::` with its IPv4 address."""

    def with_window(self, packets: int) -> TcpOptions:
        """With `receive_window_bytes` for flows of at most so many packets."""
        if not self.receive_windows:
            return self
        window_bytes = self.receive_windows * packets * self.mss_bytes
        return replace(self, receive_window_bytes=window_bytes, receive_windows=0)

    @property
    def acks_at_once(self) -> bool:
        """Whether every segment is acknowledged when it comes."""
        return not self.delayed_ack or self.delayed_ack_s == 0


USUAL_TCP = TcpOptions()


def _given(value: Any, check: ValidatorFunctionWrapHandler) -> dict[str, Any]:
    options: TcpOptions = check(value)
    return {name: getattr(options, name) for name in value}


TcpGiven = Annotated[
    dict[str, Any],
    GetPydanticSchema(lambda _, make: make(TcpOptions)),
    WrapValidator(_given),
    PlainSerializer(dict, return_type=dict[str, Any]),
    TcpOptions,
]
"""Some fields of `TcpOptions`: those that a file gives."""


@checked_dataclass(frozen=True, config={**_STRICT, "json_schema_extra": {"required": ["name", "sender", "receiver"]}})
class Flow:
    """One sender (or, with `connections`, several alike from one host)."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(-[a-z0-9_]+)*$", max_length=64)]
    """Unique in the scenario. A flow with `connections` > 1 is reported as `name-1`, `name-2`, …"""
    group: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)]
    """Flows that an aggregate puts together; also the plots' colour. Left out of a file: its VC, else its name."""
    sender: str
    receiver: str
    variant: str = "reno"
    """A key of `fairlane_hosts.variants.VARIANTS`; all runners know the same names."""
    app: App = GREEDY
    start_s: NotNegative = 0.0
    stop_s: Positive | None = None
    """None: to the end of the run."""
    weight: Annotated[float, Field(gt=0, le=256)] = 1.0
    """Share that the switch should give it, and by which fairness is measured."""
    window_packets: Annotated[int, Field(ge=0, le=65535)] = 0
    """Largest window in packets (cwnd clamp); 0: none."""
    connections: Annotated[int, Field(ge=0, le=10_000)] = 1
    """0: not at this point."""
    tcp: TcpGiven = field(default_factory=dict[str, Any])
    """Fields of `TcpOptions` that differ for this flow."""
    vc: str = ""
    """The VC that it is in, where the program has VCs; all flows of one sender are in one VC."""

    @model_validator(mode="before")
    @classmethod
    def _in_a_group(cls, given: Any) -> Any:
        if isinstance(given, dict) and "name" in given:
            return {"group": given.get("vc") or given["name"], **given}  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
        return given  # pyright: ignore[reportUnknownVariableType]


@checked_dataclass(frozen=True, config=_STRICT)
class Vc:
    """A customer's aggregate with a guaranteed rate: all that its hosts send. Rates are bits on the line."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=32)]
    mcr_bps: Rate
    """Guaranteed: minimum cell rate."""
    pcr_bps: Rate = 0
    """Frames above this peak rate are dropped at the edge; 0: the capacity of its ports."""
    mbs_cells: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    """Burst that conforms to the MCR."""
    mfs_bytes: Annotated[int, Field(ge=20, le=65_000)] = 1500
    """Longest IP packet."""


@dataclass(frozen=True)
class Control:
    """What the switch does at the managed ports, and who decides the threshold."""

    scheme: str = "drop_tail"
    """What the program does there; a program without schemes: `drop_tail`."""
    threshold: Threshold = "auto"
    """Packets: fixed. `model`: the control loop, eq. (9) alone. `auto`: the control loop, tuning itself."""
    measure: bool = False
    """Run the control loop for its measurements also where it decides nothing."""
    probes: bool = False
    """The loop probes the links behind managed ports for τ, as `fairlane run` does by itself; off in the papers' experiments: a
    probe would meet a link's chance in the place of a packet, and two runs would not meet the same."""
    settings: Any = None
    """`[control]` as the program's own model has it (`programs/`); None: its defaults."""

    @property
    def needs_loop(self) -> bool:
        """Whether the controller's loop has to run."""
        return self.measure or (self.scheme != "drop_tail" and isinstance(self.threshold, str))


@dataclass(frozen=True)
class Scenario:
    """One run. Times in seconds from the instant at which the first flow may start."""

    experiment: str
    point: str
    """Which cell of the experiment, such as `512k-5ms/threshold=4`: the same for its repeats."""
    params: Mapping[str, Any]
    """The cell's parameters as columns of the result (names: definition/names.py)."""
    topology: Mapping[str, Any]
    """A topology document (mininet/fairlane_topology/topology.py), final: links and ports already changed as the experiment says."""
    flows: tuple[Flow, ...]
    duration_s: float
    warmup_s: float
    """Not counted. Goodput and utilisation are over [warmup_s, duration_s]; all greedy flows have started by then. Transfers count that are asked
    for from then on; files (`bytes`) and programs (`command`) count whole."""
    program: str = DEFAULT_PROGRAM
    tcp: TcpOptions = USUAL_TCP
    control: Control = Control()
    changes: tuple[LinkChange, ...] = ()
    """What happens to links while it runs, beside what the topology says."""
    vcs: tuple[Vc, ...] = ()
    """Where the program has VCs: every flow is in one of them."""
    repeat: int = 0
    seed: int = 1
    sample_s: float = 0.1
    """Between two samples of the series."""
    until_done: bool = False
    """The run ends when every file of its `bytes` applications is finished, at `duration_s` at the latest."""
    series: bool = False
    """Whether the series (cwnd, queue per flow, thresholds) are wanted in the result."""
    topology_file: Path | None = None
    """That `topology` was made from; nothing is read from it any more."""
    drawn: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """What was drawn for this run (`definition/points.py`): it is in `topology`, `changes` and `flows` already."""
    captures: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Links whose packets, as end a sees them, go into these pcapng files."""

    @property
    def spike_s(self) -> tuple[float, float] | None:
        """From when to when its first delay spike (not one that comes again and again) holds everything, seconds; None without one."""
        for change in sorted(self.changes, key=lambda change: change.at_s):
            if change.spike_s is not None and change.every_s is None:
                return change.at_s, change.at_s + change.spike_s
        return None

    def end_s(self, flow: Flow) -> float:
        """When a flow ends, with the run at the latest."""
        return self.duration_s if flow.stop_s is None else min(flow.stop_s, self.duration_s)

    @property
    def has_steady_state(self) -> bool:
        """Whether it may come to one: greedy flows from before the end of the warm-up to the end, and no link that changes."""
        greedy = [flow for flow in self.flows if flow.app.kind == "greedy"]
        stays = all(flow.start_s <= self.warmup_s and flow.stop_s is None for flow in greedy)
        return bool(greedy) and stays and not self.ends_with_its_files and not _links_change(self)

    @property
    def ends_with_its_files(self) -> bool:
        """Whether it ends as soon as all files are finished."""
        return self.until_done and any(flow.app.kind == "bytes" for flow in self.flows)


_NAMES = frozenset({"experiment", "point", "params", "repeat", "seed", "series", "topology_file", "drawn", "captures"})
"""Fields of a scenario that say which run it is, not what is run."""


def plain_configuration(scenario: Scenario) -> str:
    """What is run as JSON, without experiment, point and seed."""
    run = {name: getattr(scenario, name) for name in scenario.__dataclass_fields__ if name not in _NAMES}
    return json.dumps(run, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """A setting as JSON takes it."""
    if isinstance(value, BaseModel):
        gone: Mapping[str, Any] = _GONE if isinstance(value, LinkChange) else {}
        return _used([*gone.items(), *value.model_dump(mode="json").items()])
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value, dict_factory=_used)
    return str(value)


def _used(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields of a dataclass or of a program's control, without those of `_LATER` at their defaults."""
    return {name: value for name, value in fields if name not in _LATER or value != _LATER[name]}


def flows_of(scenario: Scenario, vc: Vc) -> list[Flow]:
    """The flows of a VC."""
    return [flow for flow in scenario.flows if flow.vc == vc.name]


def names_of(flow: Flow) -> list[str]:
    """Names of a flow's connections as results have them."""
    if flow.connections == 1:
        return [flow.name]
    return [f"{flow.name}-{number}" for number in range(1, flow.connections + 1)]


def connections_of(scenario: Scenario, vc: Vc) -> list[str]:
    """Names of a VC's flows as results have them: one for each connection."""
    return [name for flow in flows_of(scenario, vc) for name in names_of(flow)]


_GONE: Mapping[str, Any] = {"trace": None}
"""Fields of a change that archived runs had, at their defaults: a run that is the same has the same configuration."""
_LATER: Mapping[str, Any] = {
    **{
        name: getattr(App, name)
        for name in ("offered_bps", "bitrates_bps", "segment_s", "buffer_s", "reservoir_s", "cushion_s")
    },
    **{
        name: getattr(TcpOptions, name)
        for name in ("receive_windows", "ecn", "error_naming", "delayed_ack_s", "backoff", "tick_s", "ipv6")
    },
    "errors_in": None,
    "spare_retransmissions": None,
    **dict.fromkeys(("ge_good_ms", "ge_bad_ms", "duplicate", "dama_frame_ms", "dama_delay_ms", "dama_cra_bps")),
    "wrr_weights": "w",
    "classes": [],
}
"""Settings that came after the first runs were archived, and their defaults: left out at these, so that older runs keep their hash."""

UDP_KINDS = ("cbr_udp",)
"""Kinds of applications without a connection."""


def tcp_of(scenario: Scenario, flow: Flow) -> TcpOptions:
    """What holds for a flow's connections."""
    return with_given(scenario.tcp, flow)


def with_given(shared: TcpOptions, flow: Flow) -> TcpOptions:
    """The options of all flows with a flow's own."""
    return replace(shared, **flow.tcp) if flow.tcp else shared


class Place(NamedTuple):
    """Where a flow's connections go: what `{sender}`, `{receiver}` and `{port}` stand for in its commands."""

    sender: str
    receiver: str
    port: int


def command_words(name: str, flow: Flow, scenario: Scenario, places: Mapping[str, Place]) -> dict[str, list[str]]:
    """The programs of a `command` application and their arguments, by role.

    Args:
        name: The connection's; its own place may be named without it.
        flow: The flow.
        scenario: The run.
        places: Of all flows, by name: `{far.port}` is the port of flow `far`.

    Raises:
        RunError: There is no such program or no such flow.

    """
    seconds = (scenario.duration_s if flow.stop_s is None else flow.stop_s) - flow.start_s
    own = {**places[name]._asdict(), "seconds": f"{seconds:g}", "bytes": flow.app.bytes}

    def value_of(match: re.Match[str]) -> str:
        other, what = match.groups()
        if other is None:
            return str(own.get(what, match[0]))
        if other not in places or what not in Place._fields:
            raise RunError(
                f"flow {name}: {match[0]}: allowed is FLOW.sender, FLOW.receiver or FLOW.port of {', '.join(places)}"
            )
        return str(getattr(places[other], what))

    found: dict[str, list[str]] = {}
    for role, command in (("sender", flow.app.command), ("receiver", flow.app.receiver_command)):
        program = shutil.which(command[0]) if command else ""
        if program is None:
            raise RunError(f"flow {name}: there is no program {command[0]!r}")
        words = [re.sub(r"{(?:([\w-]+)\.)?(\w+)}", value_of, word) for word in command[1:]]
        found[role] = [program, *words] if command else []
    return found


def program_failure(name: str, code: int, said: str) -> str:
    """Why a `command` application spoils a run; a code of 256 and more is a signal."""
    how = f"exit code {code}" if code < 256 else f"signal {code - 256}"
    return f"flow {name}: its command ended with {how}: {said[-500:] or 'no output'}"


def checked_topology(scenario: Scenario) -> fl_topology.Topology:
    """The topology of a scenario. Raises RunError for one that what was drawn has broken; all else the definition has checked."""
    try:
        return fl_topology.check(dict(scenario.topology))
    except fl_topology.TopologyError as problem:
        raise RunError(str(problem)) from None


def _links_change(scenario: Scenario) -> bool:
    """Whether a link does while it runs: by a change of the experiment, the topology or a preset, or by a setting that is a function of time."""
    topology = checked_topology(scenario)
    settings = [value for link in topology.links for way in (link.a_to_b, link.b_to_a) for _, value in way]
    settings += [port.rate_bps for own in topology.ports.values() for port in own.values()]
    return bool(changes_of(scenario, topology)) or any(isinstance(value, Series) for value in settings)


def changes_of(scenario: Scenario, topology: fl_topology.Topology) -> list[tuple[float, LinkChange]]:
    """(s after zero, change) of everything that happens before the end, in order of time."""
    return list(fl_changes.schedule([*topology.changes, *scenario.changes], scenario.duration_s))
