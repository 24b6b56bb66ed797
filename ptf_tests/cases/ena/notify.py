# SPDX-License-Identifier: Apache-2.0
"""Corrupted segments behind the satellite link: which of them become an ACK, and each byte of it."""

from __future__ import annotations

from base import REASON_BAD_CHECKSUM, REASON_BAD_LENGTH
from ena_base import HOST_SIDE, SATELLITE, EnaTest, Segment, data, flipped, notification, receiver_ack, timestamps
from packets import flow, flow6, forwarded, frame


class GoodSegments(EnaTest):
    """A good segment passes untouched, of a known flow and of an unknown one, of any length."""

    def runTest(self) -> None:
        self.passes(data(1000))
        self.hears(receiver_ack(1000))
        for length in (1, 2, 99, 512, 1401, 1460):
            self.passes(data(1000, length))
            self.passes(data(1000, length, options=tuple(timestamps(1, 2))))
        self.passes(data(1000, 0))
        self.counts()


class CorruptedSegment(EnaTest):
    """A corrupted segment of a known flow becomes the receiver's ACK with the segment's name; nothing else comes out."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, seq=77, window=321))
        self.answers(data(1000), 1000, seq=77, window=321)
        self.receive_nothing()
        self.counts(corrupted=1, notified=1)
        self.assertEqual(self.all_drops(), {})


class AnyBit(EnaTest):
    """One bit wrong anywhere in the payload, or in what the ACK does not take from the segment, is found."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        segment = data(1000, 201)
        good = bytes(segment.packet())
        expected = notification(segment, 1000)
        # In the TCP header from byte 34: ACK number, flags, window, checksum, urgent pointer; then the payload.
        for byte in (42, 45, 48, 50, 51, 52, 53, 54, 55, 153, len(good) - 1):
            for bit in (0, 6):
                self.send(flipped(good, byte, bit), SATELLITE)
                self.receive(expected, SATELLITE)
        self.passes(segment)


class AnyLength(EnaTest):
    """Payloads of one byte to a full frame, odd and even, with options and with a VLAN tag."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, options=tuple(timestamps(70, 80)), window=60000))
        for length in (6, 7, 512, 1447, 1448):
            segment = data(1000, length, options=tuple(timestamps(1, 2)), dscp=10, ecn=1)
            self.answers(segment, 1000, ts=(70, 80), window=60000)
        self.answers(data(1000, 64, vlan=5), 1000, ts=(70, 80), window=60000)


class Jumbo(EnaTest):
    """Segments of jumbo frames are verified to their last byte."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, window=60000))
        for length in (8948, 8949, 8960):
            self.passes(data(1000, length))
            self.answers(data(1000, length), 1000, window=60000)
            self.send(flipped(data(1000, length).packet(), 60), SATELLITE)
            self.receive(notification(data(1000, length), 1000, window=60000), SATELLITE)


class Timestamps(EnaTest):
    """An ACK that is made carries the receiver's newest timestamps while the flow has them."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, options=tuple(timestamps(0xFFFFFFF0, 20))))
        self.answers(data(1000), 1000, ts=(0xFFFFFFF0, 20))
        # They go on in ACKs that are marked themselves.
        self.marks(receiver_ack(1000, options=tuple(timestamps(5, 21))), 1000)
        self.answers(data(1200), 1000, ts=(5, 21))
        self.marks(receiver_ack(1000), 1000)
        self.answers(data(1300), 1000)


class NewestAck(EnaTest):
    """ACK and sequence number, window and timestamps are the newest that the receiver said; an overtaken ACK is old."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, seq=5000, window=10))
        self.hears(receiver_ack(1500, seq=5000, window=900))
        self.hears(Segment(five_tuple=receiver_ack(0).five_tuple, seq=5000, ack=1600, payload=b"x" * 50, window=901))
        self.hears(receiver_ack(1400, seq=5000, window=33))
        self.answers(data(1600), 1600, seq=5050, window=901)


class WithoutPayload(EnaTest):
    """A corrupted ACK has nothing to repeat: it is dropped, not answered."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        for segment in (data(1000, 0, options=tuple(timestamps(1, 2))), data(1000, 0, options=tuple(timestamps(3, 3)))):
            self.ignores(segment)


class CorruptedIpHeader(EnaTest):
    """With a bad IPv4 header no address can be believed, whatever TCP's checksum says: dropped under its own reason."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        good = bytes(data(1000).packet())
        for byte in (15, 18, 22, 24, 26, 33):
            self.expect_drop(flipped(good, byte), REASON_BAD_CHECKSUM, SATELLITE)
            self.expect_drop(flipped(flipped(good, byte), -1), REASON_BAD_CHECKSUM, SATELLITE)
        self.counts()


class CorruptedLengths(EnaTest):
    """A TCP header that does not fit its packet is refused before anything is read behind it."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        short = bytes(data(1000, 10).packet())
        self.expect_drop(flipped(short, 46, 7), REASON_BAD_LENGTH, SATELLITE)  # data offset 13
        # Data offset 7 instead of 5: payload is taken for options, and the segment is named all the same.
        self.send(flipped(data(1000).packet(), 46, 5), SATELLITE)
        self.receive(notification(data(1000), 1000), SATELLITE)


class UnknownFlow(EnaTest):
    """A corrupted segment of a flow that nobody answered yet is dropped and counted, and nobody hears of it."""

    def runTest(self) -> None:
        self.ignores(data(1000))
        self.hears(receiver_ack(1000))
        self.ignores(data(1000, five_tuple=flow(1, HOST_SIDE)))
        # A port with a bit wrong: another flow.
        self.ignores(flipped(data(1000).packet(), 35))
        self.answers(data(1000), 1000)


class OutsideTheWindow(EnaTest):
    """Only a sequence number in [newest ACK, newest ACK + window) is believed."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, seq=4999, flags="SA", options=(("WScale", 0),)))
        self.hears(receiver_ack(10_000, window=4000))
        for seq in (9_999, 14_000, 14_001, 10_000 + (1 << 31), 0):
            self.ignores(data(seq))
        for seq in (13_999, 10_000):
            self.answers(data(seq), 10_000, window=4000)


class AroundZero(EnaTest):
    """Sequence numbers that pass 2^32 are in order, in window and lowest as any others."""

    def runTest(self) -> None:
        start = (1 << 32) - 150
        self.hears(receiver_ack(start, seq=(1 << 32) - 1, window=500))
        self.hears(Segment(five_tuple=receiver_ack(0).five_tuple, seq=(1 << 32) - 1, ack=start, payload=b"ab"))
        self.answers(data(50), start, seq=1)
        self.answers(data(start + 100), start, seq=1)
        self.marks(receiver_ack(start + 100, seq=1), start + 100)
        self.marks(receiver_ack(20, seq=1), 50)
        self.hears(receiver_ack(51, seq=1))


class OtherPorts(EnaTest):
    """What comes in at a port that is no far side is a router's: corrupted segments pass."""

    def runTest(self) -> None:
        back = flow(0, SATELLITE, HOST_SIDE)
        self.send_corrupted(Segment(five_tuple=back, seq=5000, ack=1000, payload=b"x" * 99), HOST_SIDE, SATELLITE)
        # Nothing was learned from it.
        self.ignores(data(1000))
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        self.switch.write(-self._entry("far_side_in", {"ingress_port": SATELLITE}, "check_segments", 0, {}))
        self.send_corrupted(data(1000), SATELLITE, HOST_SIDE)

    def send_corrupted(self, segment: Segment, from_port: int, to_port: int) -> None:
        bad = flipped(segment.packet(), -1)
        self.send(bad, from_port)
        self.receive(flipped(forwarded(segment.packet(), to_port), -1), to_port)


class NotJudged(EnaTest):
    """Fragments, IPv4 with options, IPv6, UDP and padded frames pass whatever their checksum: nobody can judge it here."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        odd = (
            data(1000, more_fragments=True).packet(),
            data(1000, ip_options=b"\x01\x01\x01\x00").packet(),
            frame(flow6(to_port=HOST_SIDE), 120),
            frame(flow(to_port=HOST_SIDE).with_changes(protocol=17), 120),
        )
        for packet in odd:
            self.send(flipped(packet, -1), SATELLITE)
            self.receive(flipped(forwarded(packet, HOST_SIDE), -1), HOST_SIDE)
        padded = bytes(data(1000, 3).packet()) + b"\x00\x00\x55"
        self.send(padded, SATELLITE)
        self.receive(bytes(forwarded(data(1000, 3).packet(), HOST_SIDE)) + b"\x00\x00\x55", HOST_SIDE)
        self.counts()
