# SPDX-License-Identifier: Apache-2.0
"""Strays: corrupted packets whose flow cannot be read are named by the gap that they leave, and drops are not."""

from __future__ import annotations

from base import REASON_BAD_CHECKSUM, REASON_BAD_IHL, REASON_BAD_LENGTH, REASON_BAD_VERSION
from ena_base import REASON_CORRUPTED, SATELLITE, EnaTest, data, flipped, notification, receiver_ack, timestamps
from packets import flow

PORTS_BYTE, SEQUENCE_BYTE, OFFSET_BYTE = 34, 38, 46
"""Of a frame: the source port's first byte, the sequence number's most significant one, the data offset's."""


class StrayTest(EnaTest):
    """The receiver waits for 1000; one segment of 100 bytes has come."""

    def setUp(self) -> None:
        super().setUp()
        self.hears(receiver_ack(1000, seq=4999, flags="SA"))
        self.passes(data(1000))
        self.hears(receiver_ack(1100))

    def stray(self, frame: bytes, reason: int = REASON_CORRUPTED) -> None:
        """The frame comes over the link, and is dropped under its reason."""
        self.expect_drop(frame, reason, SATELLITE)


class HitInTheSegment(StrayTest):
    """A bit of the ports, or one of the sequence number that leads out of the window: the gap is the stray's."""

    def runTest(self) -> None:
        for count, (byte, bit) in enumerate(
            ((PORTS_BYTE, 7), (PORTS_BYTE + 3, 0), (SEQUENCE_BYTE, 7), (SEQUENCE_BYTE, 0)), 1
        ):
            first = 1000 + 200 * count - 100
            self.stray(flipped(data(first).packet(), byte, bit))
            self.passes(data(first + 100))
            self.marks(receiver_ack(first), first)
            self.passes(data(first))  # it comes again
            self.hears(receiver_ack(first + 200))
            self.counts(corrupted=count, strays=count, notified=count)


class HitInTheIpHeader(StrayTest):
    """A bit anywhere in the IPv4 header, which a receiver never sees: dropped under its own reason, and named."""

    def runTest(self) -> None:
        hits = (
            (14, 7, REASON_BAD_VERSION), (14, 2, REASON_BAD_IHL), (15, 0, REASON_BAD_CHECKSUM), (16, 0, REASON_BAD_CHECKSUM),
            (19, 1, REASON_BAD_CHECKSUM), (23, 0, REASON_BAD_CHECKSUM), (25, 3, REASON_BAD_CHECKSUM), (26, 5, REASON_BAD_CHECKSUM),
            (33, 0, REASON_BAD_CHECKSUM),
        )  # fmt: skip
        for count, (byte, bit, reason) in enumerate(hits, 1):
            first = 1000 + 200 * count - 100
            self.stray(flipped(data(first).packet(), byte, bit), reason)
            self.passes(data(first + 100))
            self.marks(receiver_ack(first), first)
            self.passes(data(first))
            self.hears(receiver_ack(first + 200))
        self.counts(corrupted=len(hits), strays=len(hits), notified=len(hits))


class HitInTheDataOffset(StrayTest):
    """A data offset below 5 is answered like any other; one beyond the packet is a stray."""

    def runTest(self) -> None:
        self.send(flipped(data(1100).packet(), OFFSET_BYTE, 6), SATELLITE)  # 5 -> 1
        self.receive(notification(data(1100), 1100), SATELLITE)
        self.passes(data(1200))
        self.marks(receiver_ack(1100), 1100)
        self.stray(flipped(data(1300, 10).packet(), OFFSET_BYTE, 7), REASON_BAD_LENGTH)  # 5 -> 13
        self.passes(data(1310))
        self.passes(data(1100))
        self.marks(receiver_ack(1300), 1300)


class WithOptions(StrayTest):
    """A stray's payload is what its flow's header leaves of it."""

    def runTest(self) -> None:
        stamps = tuple(timestamps(1, 2))
        self.stray(flipped(data(1100, 512, options=stamps).packet(), PORTS_BYTE))
        self.passes(data(1100 + 512, 300, options=stamps))
        self.marks(receiver_ack(1100), 1100)


class AnotherGap(StrayTest):
    """A gap of another length, or without a stray, is a drop: it is not named, and the stray waits."""

    def runTest(self) -> None:
        self.passes(data(1200))  # 100 were dropped
        self.hears(receiver_ack(1100))
        self.stray(flipped(data(1300).packet(), PORTS_BYTE))
        self.passes(data(1500))  # 200 are missing
        self.hears(receiver_ack(1100))
        other = flow(1, 2)
        self.hears(receiver_ack(9000, five_tuple=other, flags="SA"))
        self.passes(data(9100, five_tuple=other))  # a gap of the stray's length: it is taken for this one's
        self.marks(receiver_ack(9000, five_tuple=other), 9000)
        self.passes(data(1700))
        self.hears(receiver_ack(1100))
        self.counts(corrupted=1, strays=1, notified=1)


class AnswersFirst(StrayTest):
    """The first ACK after the gap names the stray, and those behind it the lowest again."""

    def runTest(self) -> None:
        self.answers(data(1100), 1100)
        self.stray(flipped(data(1200).packet(), PORTS_BYTE))
        self.marks(receiver_ack(1100), 1100)
        self.passes(data(1300))
        self.marks(receiver_ack(1100), 1200)
        self.marks(receiver_ack(1100), 1100)
        self.passes(data(1100))
        self.marks(receiver_ack(1200), 1200)
        # A full ACK leaves it to the next one; one that is passed is not told any more.
        self.stray(flipped(data(1400).packet(), PORTS_BYTE))
        self.passes(data(1500))
        self.passes(receiver_ack(1200, options=tuple([("NOP", None)] * 40)))
        self.marks(receiver_ack(1200, window=9000), 1400)
        self.stray(flipped(data(1600).packet(), PORTS_BYTE))
        self.passes(data(1700))
        self.answers(data(1800), 1200, window=9000)
        self.marks(receiver_ack(1750), 1800)


class OnceOnly(StrayTest):
    """One stray explains one gap."""

    def runTest(self) -> None:
        self.stray(flipped(data(1100).packet(), PORTS_BYTE))
        self.passes(data(1200))
        self.passes(data(1400))
        self.marks(receiver_ack(1100), 1100)
        self.passes(data(1100))
        self.hears(receiver_ack(1300))


class Retransmissions(StrayTest):
    """What comes again leaves no gap, and does not move the edge back."""

    def runTest(self) -> None:
        self.passes(data(1100))
        self.passes(data(1000))
        self.stray(flipped(data(1200).packet(), PORTS_BYTE))
        self.passes(data(1100))
        self.hears(receiver_ack(1200))
        self.passes(data(1300))
        self.marks(receiver_ack(1200), 1200)


class AfterACorruptedOne(StrayTest):
    """A corrupted segment that had to come moves the edge, so what follows it leaves no gap."""

    def runTest(self) -> None:
        self.stray(flipped(data(1100).packet(), PORTS_BYTE))
        self.passes(data(1200))
        self.answers(data(1300), 1100)
        self.passes(data(1400))
        self.marks(receiver_ack(1100), 1100)
        self.passes(data(1100))
        self.marks(receiver_ack(1300), 1300)
        self.counts(corrupted=2, strays=1, notified=3)
