# SPDX-License-Identifier: Apache-2.0
"""What the packet bed saw: every TCP segment of both directions as it came to the forwarder, with what became of it.

All the delay is in the forwarder, so a data segment's `t_s` is when the sender sent it, and an ACK's `delivered_s` is
when the sender got it. Times are seconds since the first segment. Sequence and acknowledgement numbers are bytes of
data: the first byte is 0 (so the SYN has -1, and an ACK of everything sent equals the bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
_FLAG_LETTERS = ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"), (ACK, "A"))
DATA, BACK = "data", "ack"


@dataclass
class Options:
    """The TCP options of a segment; SACK blocks as raw numbers until the trace makes them relative."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    sack: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    timestamps: tuple[int, int] | None = None
    experiment: bytes | None = None
    """Kind 253 (RFC 6994): what stands behind kind and length."""
    error_seq: int | None = None
    """What an ENA option names: a byte of data, relative as all numbers."""
    length: int = 0
    """Bytes, padding included."""


def parse_options(data: bytes) -> Options:
    """Options of a TCP header; what is malformed ends the list."""
    found, at = Options(length=len(data)), 0
    while at < len(data):
        kind = data[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= len(data) or data[at + 1] < 2 or at + data[at + 1] > len(data):
            break
        body = data[at + 2 : at + data[at + 1]]
        at += data[at + 1]
        if kind == 2 and len(body) == 2:
            found.mss = int.from_bytes(body, "big")
        elif kind == 3 and len(body) == 1:
            found.window_scale = body[0]
        elif kind == 4:
            found.sack_permitted = True
        elif kind == 5:
            found.sack = [struct.unpack_from("!II", body, i) for i in range(0, len(body) - 7, 8)]  # pyright: ignore[reportAttributeAccessIssue]
        elif kind == 8 and len(body) == 8:
            found.timestamps = struct.unpack("!II", body)  # pyright: ignore[reportAttributeAccessIssue]
        elif kind == 253:
            found.experiment = body
    return found


@dataclass
class Segment:
    """One TCP segment at the forwarder."""

    t_s: float
    direction: str
    """`data`: from the sender; `ack`: from the receiver."""
    seq: int
    ack: int
    length: int
    """Payload bytes."""
    flags: int
    window_bytes: int
    options: Options
    checksum_ok: bool
    """As it came, before the script touched it."""
    number: int = 0
    """The n-th data segment by first transmission, or the n-th ACK; 0 for SYN, RST and the like."""
    repeated: int = 0
    """The k-th retransmission of that data segment; 0: first transmission."""
    dropped: str = ""
    """`script`, `loss`, `outage`, `queue`, or empty when it was delivered."""
    corrupted: bool = False
    delivered_s: float | None = None
    connection: tuple[int, int] = (0, 0)
    """Ports of the sender and of the receiver."""

    @property
    def end(self) -> int:
        return self.seq + self.length

    @property
    def at_sender_s(self) -> float:
        """When an ACK reached the sender. Fails for one that did not."""
        assert self.delivered_s is not None, f"it was not delivered: {self}"
        return self.delivered_s

    @property
    def flag_names(self) -> str:
        return "".join(letter for bit, letter in _FLAG_LETTERS if self.flags & bit)

    def __str__(self) -> str:
        delivered = "" if self.delivered_s is None else f" -> {self.delivered_s:.4f}"
        what = f"#{self.number}" + (f" rtx{self.repeated}" if self.repeated else "") if self.length else ""
        sack = f" sack {self.options.sack}" if self.options.sack else ""
        more = f" 253:{self.options.experiment.hex()}" if self.options.experiment else ""
        fate = (f" DROPPED ({self.dropped})" if self.dropped else "") + (" CORRUPTED" if self.corrupted else "")
        sums = "" if self.checksum_ok else " BAD CHECKSUM"
        numbers = f"seq {self.seq} len {self.length}" if self.direction == DATA else f"ack {self.ack}"
        where = "  data" if self.direction == DATA else "        ack"
        text = f"{self.t_s:9.4f}{delivered:13s}{where} [{self.flag_names}] {numbers} {what} win {self.window_bytes}"
        return f"{text}{sack}{more}{fate}{sums}"


@dataclass
class Trace:
    """The segments of one transfer in the order in which they came, and how the transfer ended."""

    segments: list[Segment]
    complete: bool
    """Every byte was acknowledged and the sink closed."""
    elapsed_s: float
    cc: str
    """The kernel's name of the congestion control that the socket really used."""
    flow: dict[str, object] = field(default_factory=dict[str, object])
    """The sender's row of the summary (`fairlane-traffic send`)."""
    samples: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    """The sender's TCP_INFO samples."""
    late_s: float = 0.0
    """By how much the forwarder was late at worst: more than a timeout, and the machine was too busy for a verdict."""

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    @property
    def data(self) -> list[Segment]:
        """Segments with data, retransmissions too."""
        return [s for s in self.segments if s.direction == DATA and s.length]

    @property
    def acks(self) -> list[Segment]:
        """The receiver's segments without SYN, FIN and RST."""
        return [s for s in self.segments if s.direction == BACK and not s.flags & (SYN | FIN | RST)]

    @property
    def retransmissions(self) -> list[Segment]:
        return [s for s in self.data if s.repeated]

    @property
    def drops(self) -> list[Segment]:
        return [s for s in self.segments if s.dropped]

    @property
    def corrupted(self) -> list[Segment]:
        return [s for s in self.segments if s.corrupted]

    @property
    def bad_checksums(self) -> list[Segment]:
        """Segments that came to the forwarder with a wrong checksum: an offload that is not off."""
        return [s for s in self.segments if not s.checksum_ok]

    def between(self, from_s: float, to_s: float) -> Trace:
        """What came in [from_s, to_s)."""
        inside = [s for s in self.segments if from_s <= s.t_s < to_s]
        return replace(self, segments=inside)

    def after(self, segment: Segment) -> list[Segment]:
        """Data segments sent later than this segment came (an ACK: than it reached the sender)."""
        from_s = segment.at_sender_s if segment.direction == BACK else segment.t_s
        return [s for s in self.data if s.t_s > from_s]

    def sent(self, number: int, repeated: int = 0) -> Segment:
        """The n-th data segment, or its k-th retransmission. Fails with the trace when it was not sent."""
        found = [s for s in self.data if (s.number, s.repeated) == (number, repeated)]
        assert found, f"data segment {number}, retransmission {repeated}, was not sent:\n{self.dump()}"
        return found[0]

    def got(self) -> list[Segment]:
        """The ACKs that reached the sender undamaged, in that order."""
        return sorted(
            (s for s in self.acks if s.delivered_s is not None and not s.corrupted), key=lambda s: s.at_sender_s
        )

    def dupacks(self, at: int) -> list[Segment]:
        """Duplicate ACKs for byte `at` that reached the sender: the second and later ones of this number."""
        return [s for s in self.got() if s.ack == at][1:]

    def rounds(self) -> list[list[Segment]]:
        """Data segments in groups: what was sent between one delivered ACK and the next, empty groups left out."""
        instants = [s.at_sender_s for s in self.got()]
        groups, current, at = list[list[Segment]](), list[Segment](), 0
        for segment in self.data:
            moved = False
            while at < len(instants) and instants[at] <= segment.t_s:
                at, moved = at + 1, True
            if moved and current:
                groups.append(current)
                current = []
            current.append(segment)
        return [*groups, current] if current else groups

    @property
    def first_flight(self) -> list[Segment]:
        """What was sent before the first ACK of data reached the sender."""
        first = next((s.at_sender_s for s in self.got() if s.ack > 0), float("inf"))
        return [s for s in self.data if s.t_s < first]

    def outstanding(self, t_s: float) -> int:
        """Bytes sent and not acknowledged at `t_s`, as the sender sees it."""
        sent = max((s.end for s in self.data if s.t_s <= t_s), default=0)
        acked = max((s.ack for s in self.got() if s.at_sender_s <= t_s), default=0)
        return max(0, sent - acked)

    def flights(self, mss: int) -> list[tuple[float, int]]:
        """(t_s, segments outstanding) just before each ACK reached the sender: the window while it is full."""
        sends, ends, high = [s.t_s for s in self.data], list[int](), 0
        for segment in self.data:
            high = max(high, segment.end)
            ends.append(high)
        result, at, acked = list[tuple[float, int]](), 0, 0
        for ack in self.got():
            t_s = ack.at_sender_s
            while at < len(sends) and sends[at] < t_s:
                at += 1
            result.append((t_s, ((ends[at - 1] if at else 0) - acked + mss - 1) // mss))
            acked = max(acked, ack.ack)
        return result

    def dump(self, segments: Sequence[Segment] | None = None) -> str:
        """One line a segment, for eyes and for the message of a failed test."""
        return "\n".join(str(segment) for segment in (self.segments if segments is None else segments))
