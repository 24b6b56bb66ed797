# SPDX-License-Identifier: GPL-2.0-or-later
"""EnaTest: what every PTF test of ena.p4 starts from: a sender over the satellite link, a receiver on this side.

    sender 10.0.1.1 ══ satellite ══ port 1 [switch] port 2 ── receiver 10.0.2.1

A test says what the receiver has said, sends a corrupted segment of the sender, and looks at each byte of the ACK.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import finsy as fy
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from base import LaneTest
from client import wait_until
from packets import SWITCH_MAC, FiveTuple, built, flow, forwarded, host_mac

SATELLITE, HOST_SIDE = 1, 2
REASON_CORRUPTED = 13
ENA_KIND, ENA_EXID = 253, 0xEB0A
MODULO = 1 << 32
Option = tuple[Any, Any]
TO_RECEIVER = flow(to_port=HOST_SIDE, from_port=SATELLITE)


def ena_option(sequence: int) -> Option:
    """The option as docs/concepts/ena.md has it."""
    return (ENA_KIND, struct.pack("!HI", ENA_EXID, sequence))


def timestamps(value: int, echo: int) -> list[Option]:
    return [("NOP", None), ("NOP", None), ("Timestamp", (value, echo))]


def sack(*blocks: tuple[int, int]) -> list[Option]:
    return [("NOP", None), ("NOP", None), ("SAck", tuple(edge for block in blocks for edge in block))]


@dataclass(frozen=True)
class Segment:
    """A TCP segment, from the sender unless `five_tuple` says otherwise."""

    five_tuple: FiveTuple = TO_RECEIVER
    seq: int = 1000
    ack: int = 5000
    flags: str = "A"
    window: int = 500
    payload: bytes = b""
    options: tuple[Option, ...] = ()
    ttl: int = 64
    dscp: int = 0
    ecn: int = 0
    vlan: int | None = None
    ip_options: bytes = b""
    more_fragments: bool = False

    def packet(self) -> Any:
        """As it comes to the switch, its checksums right."""
        port = SATELLITE if self.five_tuple.src.startswith("10.0.1.") else HOST_SIDE
        out: Any = Ether(src=host_mac(port), dst=SWITCH_MAC)
        if self.vlan is not None:
            out /= Dot1Q(vlan=self.vlan, prio=3)
        ip = IP(src=self.five_tuple.src, dst=self.five_tuple.dst, ttl=self.ttl, tos=self.dscp << 2 | self.ecn, id=7)
        if self.more_fragments:
            ip.flags = "MF"
        if self.ip_options:
            ip.options = [Raw(self.ip_options)]
        tcp = TCP(
            sport=self.five_tuple.src_port,
            dport=self.five_tuple.dst_port,
            seq=self.seq % MODULO,
            ack=self.ack % MODULO,
            flags=self.flags,
            window=self.window,
            options=list(self.options),
        )
        out = out / ip / tcp
        return built(out / Raw(self.payload) if self.payload else out)

    def changed(self, **changes: Any) -> Segment:
        return replace(self, **changes)


def data(seq: int, length: int = 100, **options: Any) -> Segment:
    """A segment of the sender with `length` bytes of payload."""
    return Segment(seq=seq, payload=bytes(index % 251 for index in range(length)), flags="PA", **options)


def receiver_ack(ack: int, seq: int = 5000, **options: Any) -> Segment:
    """A pure ACK of the receiver."""
    return Segment(five_tuple=options.pop("five_tuple", TO_RECEIVER).reverse(), seq=seq, ack=ack, **options)


def flipped(frame: Any, byte: int, bit: int = 0) -> bytes:
    """The frame with one bit changed; a negative byte counts from the end."""
    out = bytearray(bytes(frame))
    out[byte] ^= 1 << bit
    return bytes(out)


def notification(
    corrupted: Segment, ack: int, *, seq: int = 5000, window: int = 500, ts: tuple[int, int] | None = None
) -> Any:
    """The ACK that the switch should make of a corrupted segment."""
    back = corrupted.five_tuple.reverse()
    out: Any = Ether(src=SWITCH_MAC, dst=host_mac(SATELLITE))
    if corrupted.vlan is not None:
        out /= Dot1Q(vlan=corrupted.vlan, prio=3)
    options = [ena_option(corrupted.seq % MODULO), *(timestamps(*ts) if ts else [])]
    out /= IP(src=back.src, dst=back.dst, ttl=64, id=0, flags="DF", tos=corrupted.dscp << 2)
    out /= TCP(
        sport=back.src_port,
        dport=back.dst_port,
        seq=seq % MODULO,
        ack=ack % MODULO,
        flags="A",
        window=window,
        options=options,
    )
    return built(out)


def marked(ack: Segment, name: int) -> Any:
    """What the switch should send of an ACK that it marks: the option in front of all others."""
    with_option = ack.changed(options=(ena_option(name % MODULO), *ack.options))
    return forwarded(with_option.packet(), SATELLITE)


class EnaTest(LaneTest):
    """Port 1 is the far side of the satellite link; the receiver has begun with a SYN-ACK where a test says so."""

    def setUp(self) -> None:
        super().setUp()
        self.insert("far_side_in", {"ingress_port": SATELLITE}, "check_segments")
        self.insert("far_side_out", {"egress_port": SATELLITE}, "mark_acks")

    # ---- what passes ---------------------------------------------------------------------------------

    def passes(self, segment: Segment) -> None:
        """The segment is routed and not touched."""
        from_satellite = segment.five_tuple.dst.startswith("10.0.2.")
        to_port, from_port = (HOST_SIDE, SATELLITE) if from_satellite else (SATELLITE, HOST_SIDE)
        self.send_and_receive(segment.packet(), to_port, from_port)

    def hears(self, segment: Segment) -> None:
        """The receiver's segment goes on to the sender, nothing being missing."""
        self.passes(segment)

    def marks(self, ack: Segment, name: int) -> None:
        """The receiver's ACK goes on to the sender with the name."""
        self.send(ack.packet(), HOST_SIDE)
        self.receive(marked(ack, name), SATELLITE)

    # ---- what is corrupted -----------------------------------------------------------------------------

    def answers(self, corrupted: Segment, ack: int, **expected: Any) -> None:
        """The segment, with its last bit flipped, becomes exactly the ACK that names it, and nothing else."""
        self.send(flipped(corrupted.packet(), -1), SATELLITE)
        self.receive(notification(corrupted, ack, **expected), SATELLITE)

    def ignores(self, corrupted: Segment | bytes) -> None:
        """The segment, with its last bit flipped, is dropped and counted, and nobody hears of it."""
        before = self.ena_counters()
        frame = corrupted if isinstance(corrupted, bytes) else flipped(corrupted.packet(), -1)
        self.expect_drop(frame, REASON_CORRUPTED, SATELLITE)
        self.assertEqual(self.ena_counters(), before)

    # ---- what a controller reads -----------------------------------------------------------------------

    COUNTERS = ("ena_corrupted", "ena_strays", "ena_notified", "ena_no_room", "ena_no_place")

    def ena_counters(self, port: int = SATELLITE) -> dict[str, int]:
        """{counter: packets} of a port."""
        entries = self.switch.read(*[fy.P4CounterEntry(name, index=port) for name in self.COUNTERS])
        return {name: entry.packet_count for name, entry in zip(self.COUNTERS, entries, strict=True)}

    def counts(self, **expected: int) -> None:
        """The satellite port's counters become exactly these; what is not named is 0."""
        wanted = dict.fromkeys(self.COUNTERS, 0) | {f"ena_{name}": value for name, value in expected.items()}
        wait_until(lambda: self.ena_counters() == wanted, f"{wanted}, there is {self.ena_counters()}")
