# SPDX-License-Identifier: Apache-2.0
"""What a topology file may say of a link: its two directions, a preset, and what changes over time. Values only; nothing is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane_controller.documents import is_file
from fairlane_controller.errors import FairlaneError, short
from fairlane_controller.units import parse_rate, parse_time
from fairlane_switch.link_presets import PRESETS
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NO_TRACE = "none"
"""In a change: takes the trace away."""
TOPOLOGIES = Path(__file__).parents[1] / "topologies"
"""The folder of topology files; also of traces with relative names, when no topology file says another."""
GE_LEAVE_MIN = 1e-6


def _rate(value: object) -> object:
    return _parsed(value, parse_rate, 1)


def _delay(value: object) -> object:
    return _parsed(value, parse_time, 1e6)


def _parsed(value: object, parse: Callable[[str], float], scale: float) -> object:
    if not isinstance(value, str):
        return value
    try:
        return round(parse(value) * scale)
    except FairlaneError as error:
        raise ValueError(error.message) from None


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise ValueError(f"there is no preset {short(repr(name))}; there are {', '.join(PRESETS)}")
    return name


Rate = Annotated[int, BeforeValidator(_rate), Field(ge=0, le=400_000_000_000)]
DelayUs = Annotated[int, BeforeValidator(_delay), Field(ge=0, le=60_000_000)]
DelayMs = Annotated[float, Field(ge=0, le=60_000)]
Mtu = Annotated[int, Field(ge=576, le=9000)]
Share = Annotated[float, Field(ge=0, le=1)]
Leave = Annotated[float, Field(ge=GE_LEAVE_MIN, le=1)]
QueuePackets = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=600)]
Distribution = Literal["uniform", "normal"]
ErrorsIn = Literal["frame", "payload"]
SpikeBlocks = Literal["delivery", "line"]
PresetName = Annotated[str, AfterValidator(_preset)]


class Strict(BaseModel):
    """A part of a file in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Direction(Strict):
    """One direction of an emulated link: what `fairlane-wire` does to a frame on its way. Zero is off.

    In the file: `"delay": "5ms"`, `"jitter": "100us"`, `"rate": "10Mbit"` (bare numbers are µs and bit/s), `loss`, `ber`, `queue_packets`, …
    The fields are those of `fairlane_switch.wire.LinkOptions`, by the same names.
    """

    delay_us: DelayUs = Field(default=0, validation_alias="delay")
    jitter_us: DelayUs = Field(default=0, validation_alias="jitter")
    jitter_distribution: Distribution = "uniform"
    reorder: bool = False
    rate_bps: Rate = Field(default=0, validation_alias="rate")
    loss: Share = 0.0
    ber: Share = 0.0
    errors_in: ErrorsIn = "frame"
    """Where `ber` and `ge_ber` hold: behind the Ethernet header, or behind the TCP or UDP header alone."""
    spare_retransmissions: bool = False
    """What a TCP flow sends again on this link is not hit."""
    queue_packets: QueuePackets = 1000
    ge_enter: Share = 0.0
    """Gilbert-Elliott: probability per packet of entering the bad state, in which `ge_loss` and `ge_ber` hold; 0: there is none."""
    ge_leave: Leave = 1.0
    """Probability per packet of leaving it: bursts last 1 / `ge_leave` packets on average."""
    ge_loss: Share = 1.0
    ge_ber: Share = 0.0
    trace: str | None = None
    """File in Mahimahi's format that takes the place of `rate`; a relative name is beside the topology file."""

    @property
    def is_plain(self) -> bool:
        """True when a bare veth pair does the same."""
        return not (
            self.delay_us or self.jitter_us or self.rate_bps or self.loss or self.ber or self.ge_enter or self.trace
        )

    def problem(self) -> tuple[str, str] | None:
        """A key and what is wrong with it beside the others; None when all fit together."""
        if self.jitter_us > self.delay_us:
            return "jitter", f"{self.jitter_us} µs exceed the delay; allowed: 0 to {self.delay_us} µs"
        if self.trace and self.rate_bps:
            return "trace", f"{self.trace} beside a rate of {self.rate_bps} bit/s; allowed: one of them"
        if self.trace and not is_file(self.trace):
            return "trace", f"there is no file {short(self.trace)}"
        return None


class LinkSpec(Direction):
    """A link between two endpoints (`h1`, `s1-p3`); its own values hold for both directions, `a_to_b` and `b_to_a` override them."""

    a: str
    b: str
    bandwidth_bps: Rate = Field(default=0, validation_alias="bandwidth")
    """Rate of the switch ports at its ends, and of the wire in the direction that leaves a host."""
    mtu: Mtu | None = None
    """Longest IP packet on it, bytes. Left out: the host's at one of its ends, else the largest of all hosts'."""
    preset: PresetName | None = None
    """A kind of link (docs/links.md); what stands beside it wins."""
    emulated: bool = False
    """The wire is there also while it has nothing to do, for changes by command."""
    a_to_b: Direction | None = None
    b_to_a: Direction | None = None


class LinkChange(Strict):
    """Something that happens to a link at an instant: new settings (what is left out stays), a delay spike, an outage.

    Times from the moment at which the topology is up; in the lab, from the run's zero.
    """

    at_s: Annotated[float, Field(ge=0, le=1e6)]
    every_s: Annotated[float, Field(ge=0.01, le=1e6)] | None = None
    """It happens again and again, so long apart."""
    link: str
    """Name: the nodes at its ends, `s1-s2`."""
    direction: Literal["a_to_b", "b_to_a", "both"] = "both"
    preset: PresetName | None = None
    """All settings of that kind of link (not its own changes); what stands beside it wins."""
    delay_ms: DelayMs | None = None
    jitter_ms: DelayMs | None = None
    jitter_distribution: Distribution | None = None
    reorder: bool | None = None
    rate_bps: Annotated[int, BeforeValidator(_rate), Field(gt=0, le=400_000_000_000)] | None = None
    """Of the switch ports at its ends, and of the wire in the direction that leaves a host (`bandwidth` of the link)."""
    loss: Share | None = None
    ber: Share | None = None
    errors_in: ErrorsIn | None = None
    spare_retransmissions: bool | None = None
    queue_packets: QueuePackets | None = None
    """Of the wire; a switch port's queue stays as it is."""
    ge_enter: Share | None = None
    ge_leave: Leave | None = None
    ge_loss: Share | None = None
    ge_ber: Share | None = None
    trace: str | None = None
    """File in Mahimahi's format; `none` takes it away."""
    spike_s: Seconds | None = None
    """A delay spike: nothing passes for so long."""
    spike_blocks: SpikeBlocks | None = None
    """What it blocks. `delivery`, which None is: what is due behind the line, then all of it comes at once. `line`: nothing starts on
    the line of what sends into the link (a switch's port; the wire's where a host sends), and packets wait in its queue."""
    outage_s: Seconds | None = None
    """Everything is lost for so long."""

    @model_validator(mode="after")
    def _changes_something(self) -> LinkChange:
        if self.spike_blocks is not None and self.spike_s is None:
            raise ValueError("spike_blocks says what a spike blocks; spike_s is missing")
        about = ("at_s", "every_s", "link", "direction", "spike_blocks")
        what = [name for name in type(self).model_fields if name not in about]
        if all(getattr(self, name) is None for name in what):
            raise ValueError(f"changes nothing; give one of {', '.join(what)}")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The new settings by the names of `Direction` (and `LinkOptions`); `trace` None: taken away."""
        given: dict[str, Any] = {}
        if self.preset is not None:
            given = read_preset(self.preset).model_dump()
        for name in ("delay", "jitter"):
            value_ms = getattr(self, f"{name}_ms")
            if value_ms is not None:
                given[f"{name}_us"] = round(value_ms * 1000)
        errors = ("loss", "ber", "errors_in", "spare_retransmissions", *(f"ge_{n}" for n in _GE))
        same = ("jitter_distribution", "reorder", "queue_packets", *errors)
        given |= {name: getattr(self, name) for name in same if getattr(self, name) is not None}
        if self.trace is not None:
            given["trace"] = None if self.trace == NO_TRACE else self.trace
        return given

    @property
    def bandwidth_bps(self) -> int | None:
        """The new rate of what sends into the link; None: stays."""
        if self.rate_bps is None and self.preset is not None:
            return PRESETS[self.preset].rate_bps
        return self.rate_bps

    @property
    def needs_wire(self) -> bool:
        """Whether a bare veth pair could not do it (a rate at a host's end left aside)."""
        return bool(self.options) or self.spike_s is not None or self.outage_s is not None


_GE = ("enter", "leave", "loss", "ber")


def read_preset(name: str) -> Direction:
    """What a preset does in each direction; its rate, which belongs to the switch, left out."""
    return Direction.model_validate(asdict(PRESETS[name].options))


def with_trace_paths(document: Any, folder: Path) -> Any:
    """A topology document whose traces with relative names are below `folder`; whatever is no document is left for the check."""
    if not isinstance(document, Mapping):
        return document
    changed: dict[str, Any] = {str(key): value for key, value in document.items()}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    for key in ("links", "changes"):
        if isinstance(changed.get(key), list):
            changed[key] = [_with_trace_path(entry, folder) for entry in changed[key]]
    return changed


def _with_trace_path(entry: Any, folder: Path) -> Any:
    if not isinstance(entry, dict):
        return entry
    changed: dict[str, Any] = dict(entry)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(changed.get("trace"), str) and changed["trace"] != NO_TRACE:
        changed["trace"] = str(folder / changed["trace"])
    for way in ("a_to_b", "b_to_a"):
        if way in changed:
            changed[way] = _with_trace_path(changed[way], folder)
    return changed
