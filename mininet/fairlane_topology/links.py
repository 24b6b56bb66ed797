# SPDX-License-Identifier: Apache-2.0
"""What a topology file may say of a link: its two directions, a preset, and what changes over time. Values only; nothing is started.

The settings of a direction are those of `fairlane_switch.link_model`, which is made of the Rust code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fairlane_controller.documents import is_array, is_table
from fairlane_controller.errors import FairlaneError, short
from fairlane_controller.state.run_state import LinkEnd as LinkEnd
from fairlane_controller.switch.shared import CPU_PORT as CPU_PORT
from fairlane_controller.units import parse_rate, parse_time
from fairlane_switch.link_control import Change
from fairlane_switch.link_model import LinkOptions, LinkSettings
from fairlane_switch.link_presets import PRESETS
from fairlane_switch.link_series import FILE_KEYS, Varying, native, times_in
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
"""The folder of topology files."""
_ENDPOINT = re.compile(r"^(h[0-9]{1,4}|s[1-9][0-9]{0,3}(?=-p))(?:-p([0-9]{1,3}))?$")


def _endpoint(text: object) -> LinkEnd:
    match = _ENDPOINT.match(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{short(repr(text))} is not an endpoint; write a host (h1) or a switch port (s1-p3)")
    node, port = match.group(1), match.group(2)
    if node.startswith("h"):
        return LinkEnd(node, 0)
    if not 1 <= int(port) < CPU_PORT:
        raise ValueError(f"port {port} is out of range; allowed: 1 to {CPU_PORT - 1}")
    return LinkEnd(node, int(port))


def _with_unit(parse: Callable[[str], float], scale: float) -> BeforeValidator:
    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return round(parse(value) * scale)
        except FairlaneError as error:
            raise ValueError(error.message) from None

    return BeforeValidator(read)


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise ValueError(f"there is no preset {short(repr(name))}; there are {', '.join(PRESETS)}")
    return name


Rate = Annotated[int, _with_unit(parse_rate, 1), Field(ge=0, le=400_000_000_000), Varying("rate_bps")]
"""Bit/s, a text such as `10Mbit`, or a function of time (docs/links.md), for which its mean stands."""
DelayUs = Annotated[int | float, _with_unit(parse_time, 1e6), Field(ge=0, le=60_000_000), Varying("delay_us")]
JitterUs = Annotated[int | float, _with_unit(parse_time, 1e6), Field(ge=0, le=60_000_000), Varying("jitter_us")]
Mtu = Annotated[int, Field(ge=576, le=9000)]
Seconds = Annotated[float, Field(gt=0, le=600)]
PresetName = Annotated[str, AfterValidator(_preset)]


class Strict(BaseModel):
    """A part of a file in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Direction(LinkOptions):
    """One direction of a link, in the file with units: `"delay": "5ms"`, `"jitter": "100us"`, `"rate": "10Mbit"`."""

    delay_us: DelayUs = Field(default=0, validation_alias="delay")
    jitter_us: JitterUs = Field(default=0, validation_alias="jitter")
    rate_bps: Rate = Field(default=0, validation_alias="rate")
    ge_good_us: DelayUs = Field(default=0, validation_alias="ge_good")
    ge_bad_us: DelayUs = Field(default=0, validation_alias="ge_bad")
    dama_frame_us: DelayUs = Field(default=0, validation_alias="dama_frame")
    dama_delay_us: DelayUs = Field(default=0, validation_alias="dama_delay")

    @property
    def is_plain(self) -> bool:
        """True when a bare veth pair does the same."""
        times = self.delay_us, self.jitter_us, self.ge_good_us, self.ge_bad_us, self.dama_frame_us
        chances = self.loss, self.ber, self.ge_enter, self.duplicate
        return not (any(times) or any(chances) or self.rate_bps)

    def problem(self) -> tuple[str, str] | None:
        """A key of `LinkOptions` and what is wrong with it, alone or beside the others; None: what has the links takes them."""
        return native().link_problem(self.model_dump_json())


class Link(Direction):
    """A link between two endpoints (`h1`, `s1-p3`); its own values hold for both directions, `a_to_b` and `b_to_a` override them. Of a checked topology
    these two, the MTU, and `emulated` are final.
    """

    a: Annotated[LinkEnd, BeforeValidator(_endpoint)]
    b: Annotated[LinkEnd, BeforeValidator(_endpoint)]
    bandwidth_bps: Rate = Field(default=0, validation_alias="bandwidth")
    """Rate of the switch ports at its ends, and of the wire in the direction that leaves a host."""
    mtu: Mtu = 0
    """Longest IP packet on it, bytes. Left out: the host's at one of its ends, else the largest of all hosts'."""
    preset: PresetName | None = None
    """A kind of link (docs/links.md); what stands beside it wins."""
    emulated: bool = False
    """The wire is there also while it has nothing to do, for changes by command. Switches in one process have it at all their links."""
    capture: bool = False
    """Its frames cross the kernel, where tcpdump sees them, also between two switches in one process."""
    a_to_b: Direction = Direction()
    b_to_a: Direction = Direction()
    _number: int = PrivateAttr(default=1)

    @model_validator(mode="before")
    @classmethod
    def _as_in_the_tutorials(cls, entry: Any) -> Any:
        """`[node, node, latency, bandwidth]`: p4lang/tutorials write bare numbers, milliseconds and Mbit/s."""
        if not is_array(entry):
            return entry
        if not 2 <= len(entry) <= 4:
            raise ValueError("a link is [node, node], [node, node, latency] or [node, node, latency, bandwidth]")
        numbers = [_scaled(item, unit) for item, unit in zip(entry[2:], (1_000, 1_000_000), strict=False)]
        return dict(zip(("a", "b", "delay", "bandwidth"), [*entry[:2], *numbers], strict=False))

    def resolved(self) -> Link:
        """The link with its preset's values where it has none of its own, and its final directions: a host's wire has the bandwidth as its rate."""
        values, preset = {name: getattr(self, name) for name in Link.model_fields}, None
        if self.preset is not None:
            preset = Link.model_validate({"a": "h0", "b": "h0", **PRESETS[self.preset].link})
            values |= {name: getattr(preset, name) for name in preset.model_fields_set - self.model_fields_set}
        for name, sender in (("a_to_b", self.a), ("b_to_a", self.b)):
            own = getattr(self, name)
            way = {key: values[key] for key in Direction.model_fields}
            if preset is not None:
                of_preset = getattr(preset, name)
                way |= {key: getattr(of_preset, key) for key in of_preset.model_fields_set - self.model_fields_set}
            way |= {key: getattr(own, key) for key in own.model_fields_set}
            if sender.port == 0 and not way["rate_bps"]:
                way["rate_bps"] = values["bandwidth_bps"]
            values[name] = Direction.model_construct(**way)
        return self.model_copy(update=values)

    def numbered(self, number: int) -> Link:
        """The link as the `number`th, from 1, of those between its nodes."""
        copy = self.model_copy()
        copy._number = number
        return copy

    @property
    def name(self) -> str:
        """The nodes at its ends, `s1-s2`; a second link from `s1` to `s2` is `s1-s2-2`."""
        nodes = f"{self.a.node}-{self.b.node}"
        return nodes if self._number == 1 else f"{nodes}-{self._number}"

    @property
    def at_host(self) -> bool:
        """Whether a host is at one of its ends."""
        return 0 in (self.a.port, self.b.port)

    @property
    def is_emulated(self) -> bool:
        """Whether the wire is on it."""
        return self.emulated or not (self.a_to_b.is_plain and self.b_to_a.is_plain)


class LinkChange(LinkSettings):
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
    rate_bps: Annotated[Rate, Field(gt=0)] | None = None
    """Of the switch ports at its ends, and of the wire in the direction that leaves a host (`bandwidth` of the link)."""
    spike_s: Seconds | None = None
    """A delay spike: nothing passes for so long."""
    spike_blocks: Literal["delivery", "line"] | None = None
    """What it blocks. `delivery`, which None is: what is due behind the line, then all of it comes at once. `line`: nothing starts on
    the line of what sends into the link (a switch's port; the wire's where a host sends), and packets wait in its queue."""
    outage_s: Seconds | None = None
    """Everything is lost for so long."""

    @model_validator(mode="after")
    def _changes_something(self) -> LinkChange:
        if self.spike_blocks is not None and self.spike_s is None:
            raise ValueError("spike_blocks says what a spike blocks; spike_s is missing")
        what = ["preset", *LinkSettings.model_fields, "spike_s", "outage_s"]
        if all(getattr(self, name) is None for name in what):
            raise ValueError(f"changes nothing; give one of {', '.join(what)}")
        return self

    @property
    def change(self) -> Change:
        """What happens, in the wire's names and units."""
        preset = PRESETS[self.preset] if self.preset is not None else None
        given = ((name, getattr(self, name)) for name in LinkSettings.model_fields if name != "rate_bps")
        changed = times_in("us", {name: value for name, value in given if value is not None})
        rate_bps = preset.rate_bps if preset and self.rate_bps is None else self.rate_bps
        spike_us, outage_us = (self.spike_s or 0) * 1e6, (self.outage_s or 0) * 1e6
        return Change(self.direction, changed, preset, rate_bps, spike_us, self.spike_blocks or "delivery", outage_us)


def with_file_paths(document: Any, folder: Path) -> Any:
    """A topology document whose files of series with relative names are below `folder`."""
    if is_array(document):
        return [with_file_paths(entry, folder) for entry in document]
    if not is_table(document):
        return document
    return {
        key: str(folder / value) if key in FILE_KEYS and isinstance(value, str) else with_file_paths(value, folder)
        for key, value in document.items()
    }


def _scaled(value: Any, unit: int) -> Any:
    if isinstance(value, str) and re.fullmatch(r"[0-9.]+", value):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value < 1e300
    return round(float(value) * unit) if is_number else value
