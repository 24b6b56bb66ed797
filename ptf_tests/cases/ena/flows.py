# SPDX-License-Identifier: Apache-2.0
"""What ena.p4 knows of flows: from their SYN or their middle on, window scales, whose place it is, how one ends."""

from __future__ import annotations

from typing import Any

from ena_base import HOST_SIDE, TO_RECEIVER, EnaTest, data, receiver_ack, timestamps
from packets import flow

LINUX_SYN: tuple[Any, ...] = (
    ("MSS", 1460), ("SAckOK", b""), ("Timestamp", (700, 300)), ("NOP", None), ("WScale", 7),
)  # fmt: skip
OTHER_SYNS: tuple[tuple[Any, ...], ...] = (
    (("MSS", 1460), ("NOP", None), ("WScale", 7), ("NOP", None), ("NOP", None), ("Timestamp", (700, 300)), ("SAckOK", b""), ("EOL", None)),
    (("MSS", 1460), ("NOP", None), ("NOP", None), ("SAckOK", b""), ("NOP", None), ("NOP", None), ("Timestamp", (700, 300)), ("NOP", None), ("WScale", 7)),
    (("WScale", 7), ("Timestamp", (700, 300))),
    ((254, bytes(10)), ("NOP", None), ("Timestamp", (700, 300)), ("WScale", 7), ("NOP", None)),
)  # fmt: skip


class AfterTheSyn(EnaTest):
    """The first segments after a SYN-ACK can be named: its window, not scaled, is scaled in the ACK; SYN counts one."""

    def runTest(self) -> None:
        for number, options in enumerate((LINUX_SYN, *OTHER_SYNS)):
            five_tuple = flow(number, HOST_SIDE)
            syn = receiver_ack(1000, seq=4999, flags="SA", window=64000, options=options, five_tuple=five_tuple)
            self.hears(syn)
            self.answers(data(1000, five_tuple=five_tuple), 1000, seq=5000, window=500, ts=(700, 300))
            self.answers(data(64999, five_tuple=five_tuple), 1000, window=500, ts=(700, 300))
            self.ignores(data(65000, five_tuple=five_tuple))


class WindowScale(EnaTest):
    """The window of an ACK counts 2^scale times as much: of the receiver's SYN, at most 14, none without the option."""

    def runTest(self) -> None:
        for number, (scale, shift) in enumerate(((0, 0), (3, 3), (7, 7), (14, 14), (15, 14), (255, 14), (None, 0))):
            five_tuple = flow(number, HOST_SIDE)
            options = () if scale is None else (("WScale", scale),)
            self.hears(receiver_ack(1000, seq=4999, flags="SA", options=options, five_tuple=five_tuple))
            self.hears(receiver_ack(1000, window=10, five_tuple=five_tuple))
            self.answers(data(1000 + (10 << shift) - 1, five_tuple=five_tuple), 1000, window=10)
            self.ignores(data(1000 + (10 << shift), five_tuple=five_tuple))


class ReceiverThatConnects(EnaTest):
    """Where the receiver opened the connection, its SYN has the scale and its first ACK the rest."""

    def runTest(self) -> None:
        self.hears(receiver_ack(0, seq=4999, flags="S", options=LINUX_SYN))
        self.ignores(data(1000))
        first = 3_000_000_000  # far from 0: the SYN's ACK number says nothing
        self.hears(receiver_ack(first, window=10, options=tuple(timestamps(701, 301))))
        self.answers(data(first + 1279), first, window=10, ts=(701, 301))
        self.ignores(data(first + 1280))


class InItsMiddle(EnaTest):
    """A flow whose SYN was not seen is known from its receiver's next ACK on; its window is taken at its largest."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, window=1))
        self.answers(data(1000 + (1 << 14) - 1), 1000, window=1)
        self.ignores(data(1000 + (1 << 14)))


class NewConnection(EnaTest):
    """A SYN with the same ports begins anew: other numbers, no names."""

    def runTest(self) -> None:
        self.hears(receiver_ack(900_000, window=9))
        self.answers(data(900_000), 900_000, window=9)
        self.hears(receiver_ack(1000, seq=70, flags="SA"))
        self.hears(receiver_ack(1000, seq=71, window=400))
        self.answers(data(1100), 1000, seq=71, window=400)


class ZeroWindow(EnaTest):
    """With a window of 0 the receiver waits for nothing."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, window=0))
        self.ignores(data(1000))


class OneFlowAPlace(EnaTest):
    """A flow whose place another one has is let alone, and counted; the other keeps all that is known of it."""

    def runTest(self) -> None:
        other = next(
            five_tuple
            for number in range(1, 20_000)
            if (five_tuple := flow(number, HOST_SIDE)).hash() % 4096 == TO_RECEIVER.hash() % 4096
        )
        self.hears(receiver_ack(1000))
        self.answers(data(1100), 1000)
        self.hears(receiver_ack(1000, five_tuple=other))
        self.ignores(data(1000, five_tuple=other))
        self.marks(receiver_ack(1000), 1100)
        self.counts(corrupted=1, notified=2, no_place=1)


class SeveralFlows(EnaTest):
    """Flows know nothing of each other."""

    def runTest(self) -> None:
        flows = [flow(number, HOST_SIDE) for number in range(6)]
        for number, five_tuple in enumerate(flows):
            self.hears(receiver_ack(1000 * number, window=100 + number, five_tuple=five_tuple))
        for number, five_tuple in enumerate(flows):
            if number % 2:
                segment = data(1000 * number + 10, five_tuple=five_tuple)
                self.answers(segment, 1000 * number, window=100 + number)
        for number, five_tuple in enumerate(flows):
            ack = receiver_ack(1000 * number, window=100 + number, five_tuple=five_tuple)
            if number % 2:
                self.marks(ack, 1000 * number + 10)
            else:
                self.hears(ack)
