# SPDX-License-Identifier: Apache-2.0
"""The link emulator from Python: its options, its start, and the client of its control socket.

with start_wire([WireLink("s1-s2", "w0a", "w0b", LinkOptions(delay_us=5000))], folder=run_folder) as wire:
    wire.client.set("s1-s2", delay_us=100_000)
"""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from fairlane_controller.state.files import reason

from fairlane_switch.process import ManagedProcess, find_binary

_RARE = ("errors_in", "spare_retransmissions", "ge_enter", "ge_leave", "ge_loss", "ge_ber", "trace")
Direction = Literal["a_to_b", "b_to_a", "both"]
SpikeBlocks = Literal["delivery", "line"]
"""What a delay spike blocks: what is due behind the line, or the line itself, before which packets wait."""
JitterDistribution = Literal["uniform", "normal"]
ErrorsIn = Literal["frame", "payload"]


@dataclass(frozen=True)
class LinkOptions:
    """Settings of one direction of a link. The default is a perfect line."""

    delay_us: float = 0
    """Propagation delay, µs (0 to 60,000,000)."""
    jitter_us: float = 0
    """Half width (uniform) or standard deviation (normal) of the delay, µs; not above `delay_us`."""
    jitter_distribution: JitterDistribution = "uniform"
    """How the delay deviates from its mean."""
    reorder: bool = False
    """Lets a frame with a small delay overtake."""
    rate_bps: int = 0
    """Rate of the line in bit/s of Ethernet frame; 0 is unlimited (else 1,000 to 400,000,000,000)."""
    loss: float = 0.0
    """Probability that a frame is lost."""
    ber: float = 0.0
    """Probability that a bit of those that `errors_in` names is flipped."""
    errors_in: ErrorsIn = "frame"
    """Where bits are flipped: behind the Ethernet header, or behind the TCP or UDP header alone, so that pure ACKs are never hit."""
    spare_retransmissions: bool = False
    """What a TCP flow sends again on this link is not hit."""
    queue_packets: int = 1000
    """Frames that may wait for the line (1 to 1,000,000); without meaning while `rate_bps` is 0 and there is no trace."""
    ge_enter: float = 0.0
    """Gilbert-Elliott: probability per frame of entering the bad state; 0: there is none. `loss` and `ber` hold in the good one."""
    ge_leave: float = 1.0
    """Probability per frame of leaving it (1e-6 to 1): bursts last 1 / `ge_leave` frames on average."""
    ge_loss: float = 1.0
    """Probability that a frame is lost in it."""
    ge_ber: float = 0.0
    """Probability that a bit is flipped in it."""
    trace: str | None = None
    """File in Mahimahi's format that takes the place of the rate, which is 0 then: a time in ms a line, 1,500 bytes each."""

    def encode(self) -> dict[str, Any]:
        """As in `links.json`; what is rarely set only where it is."""
        plain = LinkOptions()
        return {
            name: value for name, value in asdict(self).items() if name not in _RARE or value != getattr(plain, name)
        }

    @classmethod
    def decode(cls, settings: dict[str, Any]) -> LinkOptions:
        """The reverse of `encode`. Raises TypeError for an unknown key."""
        return cls(**settings)


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
            "a_to_b": self.a_to_b.encode(),
            "b_to_a": self.b_to_a.encode(),
        }

    @classmethod
    def decode(cls, link: dict[str, Any]) -> WireLink:
        """The reverse of `encode`; takes the answer of `get` as well."""
        return cls(
            name=link["name"],
            interface_a=link["a"]["interface"],
            interface_b=link["b"]["interface"],
            a_to_b=LinkOptions.decode(link["a_to_b"]),
            b_to_a=LinkOptions.decode(link["b_to_a"]),
        )


@dataclass(frozen=True)
class DirectionStats:
    """Counts of one direction since the start. `offered = delivered + dropped_* + queued + in_flight`, less what `dropped_unsent` counts."""

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


@dataclass(frozen=True)
class EndStats:
    """State of the interface at one end."""

    interface: str
    present: bool
    down_events: int
    """How often it went down or away."""
    dropped_ring_full: int
    """Frames lost before the link because the wire was not scheduled in time."""
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


class WireError(RuntimeError):
    """The wire refused a request, and has changed nothing. `request` is what was asked, `reason` its own words."""

    def __init__(self, request: dict[str, Any], reason: str) -> None:
        self.request = request
        self.reason = reason
        super().__init__(f"{request['op']}: {reason}")


class WireUnreachableError(RuntimeError):
    """Nobody answers at the control socket `path`."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"no wire answers at {path}: {reason}")


class WireClient:
    """A connection to a wire's control socket; made anew when the wire has ended it, as it does with those that are idle."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        """Connect. Raises WireUnreachableError; every later request may raise it too, when the wire is gone."""
        self.path = path
        self._timeout_s = timeout_s
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(self._timeout_s)
        try:
            self._socket.connect(str(self.path))
        except OSError as error:
            self._socket.close()
            raise WireUnreachableError(self.path, reason(error)) from error
        self._answers = self._socket.makefile("rb")

    def close(self) -> None:
        """Disconnect."""
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return its answer. Raises WireError when it is refused."""
        text = json.dumps(request).encode() + b"\n"
        try:
            line = self._exchange(text)
            if not line:  # the connection had ended before: nothing was carried out
                self.close()
                self._connect()
                line = self._exchange(text)
        except OSError as error:
            raise WireUnreachableError(self.path, str(error) or type(error).__name__) from error
        if not line:
            raise WireUnreachableError(self.path, "it has closed the connection")
        answer = json.loads(line)
        if not answer["ok"]:
            raise WireError(request, answer["error"])
        return answer

    def _exchange(self, text: bytes) -> bytes:
        """The line that answers; empty when the other end has closed the connection."""
        try:
            self._socket.sendall(text)
            return self._answers.readline()
        except ConnectionError:
            return b""

    def set(
        self,
        link: str,
        *,
        direction: Direction = "both",
        delay_us: float | None = None,
        jitter_us: float | None = None,
        jitter_distribution: JitterDistribution | None = None,
        reorder: bool | None = None,
        rate_bps: int | None = None,
        loss: float | None = None,
        ber: float | None = None,
        errors_in: ErrorsIn | None = None,
        spare_retransmissions: bool | None = None,
        queue_packets: int | None = None,
        ge_enter: float | None = None,
        ge_leave: float | None = None,
        ge_loss: float | None = None,
        ge_ber: float | None = None,
        trace: str | None = None,
    ) -> None:
        """Change what is given, from now on; frames on their way are not lost. See LinkOptions. Raises WireError, and changes nothing then.

        `change` also takes a trace away.
        """
        changes = {
            "delay_us": delay_us,
            "jitter_us": jitter_us,
            "jitter_distribution": jitter_distribution,
            "reorder": reorder,
            "rate_bps": rate_bps,
            "loss": loss,
            "ber": ber,
            "errors_in": errors_in,
            "spare_retransmissions": spare_retransmissions,
            "queue_packets": queue_packets,
            "ge_enter": ge_enter,
            "ge_leave": ge_leave,
            "ge_loss": ge_loss,
            "ge_ber": ge_ber,
            "trace": trace,
        }
        self.change(link, {key: value for key, value in changes.items() if value is not None}, direction=direction)

    def change(self, link: str, settings: Mapping[str, Any], *, direction: Direction = "both") -> None:
        """As `set`, with the settings as the socket has them: `{"trace": None}` takes the trace away."""
        self.request({"op": "set", "link": link, "direction": direction, **settings})

    def spike(
        self, link: str, duration_us: float, *, direction: Direction = "both", blocks: SpikeBlocks = "delivery"
    ) -> None:
        """Hold all deliveries for `duration_us`, then release them at once, in order; or let nothing start on the wire's line."""
        request = {"op": "spike", "link": link, "direction": direction, "duration_us": duration_us}
        self.request(request if blocks == "delivery" else {**request, "blocks": blocks})

    def outage(self, link: str, duration_us: float, *, direction: Direction = "both") -> None:
        """Lose every frame that enters the medium within `duration_us`."""
        self.request({"op": "outage", "link": link, "direction": direction, "duration_us": duration_us})

    def links(self) -> list[WireLink]:
        """All links with their settings as they are now."""
        return [WireLink.decode(link) for link in self.request({"op": "get"})["links"]]

    def stats(self) -> dict[str, LinkStats]:
        """Counts of all links, by name."""
        links = self.request({"op": "stats"})["links"]
        return {
            link["name"]: LinkStats(
                name=link["name"],
                a=_decode(EndStats, link["a"]),
                b=_decode(EndStats, link["b"]),
                a_to_b=_decode(DirectionStats, link["a_to_b"]),
                b_to_a=_decode(DirectionStats, link["b_to_a"]),
            )
            for link in links
        }


def _decode(kind: type[Any], values: dict[str, Any]) -> Any:
    """A dataclass from a mapping; keys that a newer wire adds are left out, those that an older one has not keep their default."""
    return kind(**{one.name: values[one.name] for one in fields(kind) if one.name in values})


@dataclass
class Wire:
    """A running wire. A context manager: leaving it stops the wire."""

    process: ManagedProcess
    client: WireClient
    control: Path

    def stop(self) -> int:
        """Stop it; returns its exit code, 0 when all is well."""
        self.client.close()
        return self.process.stop()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_wire(
    links: Sequence[WireLink],
    *,
    folder: Path | None = None,
    seed: int = 1,
    netns: str | None = None,
    arguments: Sequence[str] = (),
    timeout_s: float = 10.0,
) -> Wire:
    """Start the wire for `links`, ready when this returns. Root, or CAP_NET_RAW, is needed.

    `folder` gets `links.json` and the control socket `wire.sock` (None: a new temporary folder). `netns` is the network
    namespace that the interfaces are in. `arguments` go to `fairlane-wire` as they are.
    Raises BinaryNotFoundError; ProcessFailedError with the wire's own words when the links are wrong or an interface is missing.
    """
    home = Path(tempfile.mkdtemp(prefix="fairlane-wire-")) if folder is None else folder
    config, control = home / "links.json", home / "wire.sock"
    config.write_text(json.dumps({"links": [link.encode() for link in links]}, indent=1) + "\n")
    command = [find_binary("fairlane-wire"), "--config", config, "--control", control, "--seed", str(seed), *arguments]
    prefix = [] if netns is None else ["ip", "netns", "exec", netns]
    process = ManagedProcess.start(command, ready="fairlane-wire: ready", timeout_s=timeout_s, prefix=prefix)
    try:
        return Wire(process, WireClient(control), control)
    except BaseException:
        process.stop()
        raise
