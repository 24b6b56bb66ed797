# SPDX-License-Identifier: Apache-2.0
"""The link emulator from Python: its options, its start, and the client of its control socket.

with start_wire([WireLink("s1-s2", "w0a", "w0b", LinkOptions(delay_us=5000))], folder=run_folder) as wire:
    wire.client.set("s1-s2", delay_us=100_000)
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from fairlane_switch.control import ControlClient
from fairlane_switch.link_model import LinkOptions as LinkOptions
from fairlane_switch.link_series import form_of
from fairlane_switch.process import STOP_TIMEOUT_S
from fairlane_switch.switch import Running, start_in_namespace

Direction = Literal["a_to_b", "b_to_a", "both"]
SpikeBlocks = Literal["delivery", "line"]
"""What a delay spike blocks: what is due behind the line, or the line itself, before which packets wait."""


End = Literal["a", "b"]
CAPTURE_LOOK_S = 0.02
SNAP_BYTES = 128
"""Of each frame of a capture, where nothing else is asked for: all headers of TCP over IPv4 and IPv6."""


@dataclass(frozen=True)
class WireLink:
    """An emulated link between two interfaces."""

    name: str
    """As the control socket names it, such as `s1-s2`."""
    interface_a: str
    """Interface at end a."""
    interface_b: str
    """Interface at end b."""
    a_to_b: LinkOptions = field(default_factory=LinkOptions)
    """What frames from a to b meet."""
    b_to_a: LinkOptions = field(default_factory=LinkOptions)
    """What frames from b to a meet."""

    def encode(self) -> dict[str, Any]:
        """As in `links.json`."""
        return {
            "name": self.name,
            "a": {"interface": self.interface_a},
            "b": {"interface": self.interface_b},
            "a_to_b": self.a_to_b.model_dump(),
            "b_to_a": self.b_to_a.model_dump(),
        }

    @classmethod
    def decode(cls, link: dict[str, Any]) -> WireLink:
        """The reverse of `encode`; takes the answer of `get` as well."""
        return cls(
            name=link["name"],
            interface_a=link["a"]["interface"],
            interface_b=link["b"]["interface"],
            a_to_b=LinkOptions(**link["a_to_b"]),
            b_to_a=LinkOptions(**link["b_to_a"]),
        )


@dataclass(frozen=True)
class DirectionStats:
    """Counts of one direction since the start. `offered = delivered + dropped_queue_full + dropped_loss + dropped_outage + queued + in_flight`."""

    offered_packets: int
    offered_bytes: int
    delivered_packets: int
    delivered_bytes: int
    corrupted_packets: int
    """Frames delivered with flipped bits."""
    flipped_bits: int
    """Bits flipped in frames delivered."""
    dropped_queue_full: int
    dropped_loss: int
    dropped_outage: int
    dropped_no_memory: int
    """Frames that found the frame memory full, before the link (not in `offered`)."""
    dropped_unsent: int
    """Frames delivered by the link that the interface did not take (in `delivered` all the same)."""
    queued_packets: int
    in_flight_packets: int
    late_us_p50: float
    """How late frames left after they were due, µs."""
    late_us_p99: float
    late_us_max: float
    bad_state_packets: int = 0
    """Frames that met the bad state of the Gilbert-Elliott chain."""
    duplicated_packets: int = 0
    """Copies; they are in `offered` too."""


@dataclass(frozen=True)
class EndStats:
    """State of the interface at one end."""

    interface: str
    present: bool
    down_events: int
    """How often it went down or away."""
    dropped_ring_full: int
    """Frames lost before the link because the wire was not scheduled in time, or because the interface went or its MTU grew."""
    dropped_truncated: int
    """Frames longer than the MTU."""
    dropped_unsegmented: int
    """Frames with segmentation left to the device: offloads are on where they must be off."""


@dataclass(frozen=True)
class LinkStats:
    """What happened on a link."""

    name: str
    a: EndStats
    b: EndStats
    a_to_b: DirectionStats
    b_to_a: DirectionStats


@dataclass(frozen=True)
class CaptureState:
    """How far a capture is."""

    packets: int
    lost: int
    """Frames that came faster than the disk takes them."""
    done: bool
    error: str | None
    """Why it ended early."""


_STATS = TypeAdapter(LinkStats)
"""Keys that a newer wire adds are left out, those that an older one has not keep their default."""


class WireClient(ControlClient):
    """A connection to the control socket of the process that has the links."""

    who = "wire"

    def set(self, link: str, *, direction: Direction = "both", **settings: Any) -> None:
        """Change what is given of `LinkOptions`, from now on; frames on their way are not lost.

        Raises:
            ControlError: nothing is changed then.
        """
        values = {name: form_of(value) for name, value in settings.items()}
        self.request({"op": "set", "link": link, "direction": direction, **values})

    def spike(
        self, link: str, duration_us: float, *, direction: Direction = "both", blocks: SpikeBlocks = "delivery"
    ) -> None:
        """Hold all deliveries for `duration_us`, then release them at once, in order; or let nothing start on the wire's line."""
        request = {"op": "spike", "link": link, "direction": direction, "duration_us": duration_us}
        self.request(request if blocks == "delivery" else {**request, "blocks": blocks})

    def outage(self, link: str, duration_us: float, *, direction: Direction = "both") -> None:
        """Lose every frame that enters the medium within `duration_us`."""
        self.request({"op": "outage", "link": link, "direction": direction, "duration_us": duration_us})

    def capture(
        self,
        link: str,
        file: Path,
        *,
        direction: Direction = "both",
        at: End = "a",
        seconds: float | None = None,
        packets: int | None = None,
        snap_bytes: int = SNAP_BYTES,
    ) -> None:
        """Begin to write the frames that an end of a link sees into a pcapng file, which the process of the links creates.

        It ends after `seconds` or `packets`, when it is stopped, and when nobody has asked for its state for ten seconds.
        """
        request = {"op": "capture", "link": link, "file": str(file.absolute()), "direction": direction, "at": at}
        duration_us = None if seconds is None else seconds * 1e6
        self.request({**request, "duration_us": duration_us, "packets": packets, "snap_bytes": snap_bytes})

    def capture_state(self, file: Path, *, stop: bool = False) -> CaptureState:
        """How far the capture into a file is, which may be told to stop; one that is done is forgotten with that."""
        told = self.request({"op": "capture_state", "file": str(file.absolute()), "stop": stop})
        return CaptureState(told["packets"], told["lost"], told["done"], told["error"])

    def end_capture(self, file: Path) -> CaptureState:
        """Stop it, and wait until its file is complete."""
        while not (state := self.capture_state(file, stop=True)).done:
            time.sleep(CAPTURE_LOOK_S)
        return state

    def links(self) -> list[WireLink]:
        """All links with their settings as they are now."""
        return [WireLink.decode(link) for link in self.request({"op": "get"})["links"]]

    def stats(self) -> dict[str, LinkStats]:
        """Counts of all links, by name."""
        return {link["name"]: _STATS.validate_python(link) for link in self.request({"op": "stats"})["links"]}


@dataclass(frozen=True)
class Wire(Running):
    """A running wire. A context manager: leaving it stops the wire."""

    client: WireClient
    control: Path

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Stop it; returns its exit code, 0 when all is well."""
        self.client.close()
        return super().stop(timeout_s)


def start_wire(
    links: Sequence[WireLink],
    *,
    folder: Path,
    seed: int = 1,
    netns: str | None = None,
    arguments: Sequence[str] = (),
    timeout_s: float = 10.0,
) -> Wire:
    """Start the wire for `links`, ready when this returns. Root, or CAP_NET_RAW, is needed.

    `folder` gets `links.json` and the control socket `wire.sock`. `netns` is the network namespace that the
    interfaces are in. `arguments` go to `fairlane-switch network` as they are.
    Raises BinaryNotFoundError; ProcessFailedError with the wire's own words when the links are wrong or an interface is missing.
    """
    config, control = folder / "links.json", folder / "wire.sock"
    config.write_text(json.dumps({"links": [link.encode() for link in links]}, indent=1) + "\n")
    words = ["network", "--config", str(config), "--control", str(control), "--seed", str(seed), *arguments]
    process = start_in_namespace(words, netns, timeout_s)
    try:
        return Wire(process, WireClient(control), control)
    except BaseException:
        process.stop()
        raise
