# SPDX-License-Identifier: Apache-2.0
"""ACKs on their way to the sender: which get the option, where its 8 bytes come from, and when it ends."""

from __future__ import annotations

from typing import Any

from ena_base import SATELLITE, EnaTest, Segment, data, ena_option, flipped, receiver_ack, sack, timestamps
from packets import forwarded

BLOCKS = ((3000, 3100), (4000, 4100), (5000, 5100), (6000, 6100))


class UntilItPasses(EnaTest):
    """ACKs are marked while ack <= name, and not from the first that covers it."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1200), 1000)
        self.marks(receiver_ack(1000), 1200)
        self.marks(receiver_ack(1199), 1200)
        self.marks(receiver_ack(1200), 1200)
        self.hears(receiver_ack(1201))
        self.hears(receiver_ack(1300))
        self.counts(corrupted=1, notified=4)


class LowestFirst(EnaTest):
    """Of several corrupted segments the lowest is named, whatever the order in which they came."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        for seq, lowest in ((1200, 1200), (1400, 1200), (1300, 1200), (1100, 1100)):
            self.answers(data(seq), 1000)
            self.marks(receiver_ack(1000), lowest)
        self.marks(receiver_ack(1100), 1100)
        self.marks(receiver_ack(1101), 1200)
        self.marks(receiver_ack(1250), 1300)
        # Two at a time are passed.
        self.hears(receiver_ack(1450))
        self.answers(data(1460), 1450)


class SameTwice(EnaTest):
    """A retransmission that is corrupted again is answered again, and kept once."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        for _ in range(40):
            self.answers(data(1100), 1000)
        self.answers(data(1200), 1000)
        self.marks(receiver_ack(1100), 1100)
        self.marks(receiver_ack(1101), 1200)
        self.hears(receiver_ack(1201))


class RepairedOnes(EnaTest):
    """What came again, and good, is not named any more, though a lower hole holds the receiver's ACK back."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        for seq in (1100, 1200, 1300):
            self.answers(data(seq), 1000)
        self.passes(data(1100))
        self.marks(receiver_ack(1000), 1200)
        self.passes(data(1300))
        self.marks(receiver_ack(1000), 1200)
        self.passes(data(1150))  # of no name
        self.marks(receiver_ack(1000), 1200)
        self.passes(data(1200))
        self.hears(receiver_ack(1000))
        # Corrupted once more, after it was forgotten and before.
        self.answers(data(1200), 1000)
        self.marks(receiver_ack(1000), 1200)
        self.answers(data(1400), 1000)
        self.passes(data(1400))
        self.answers(data(1400), 1000)
        self.passes(data(1200))
        self.marks(receiver_ack(1000), 1400)


class ManyNames(EnaTest):
    """32 names are kept, of more the lowest 31; the others are answered at once all the same."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, window=60000))
        for i in range(40):
            self.answers(data(1000 + 100 * ((7 * i) % 40), 20), 1000, window=60000)
        for place in range(31):
            self.marks(receiver_ack(1000 + 100 * place, window=60000), 1000 + 100 * place)


class ManyAtOnce(EnaTest):
    """An ACK that covers many names forgets eight of them, the next one the rest."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000, window=60000))
        for place in range(12):
            self.answers(data(1000 + 100 * place, 20), 1000, window=60000)
        self.hears(receiver_ack(1000 + 100 * 10 + 50, window=60000))  # eleven are covered: one is open
        self.marks(receiver_ack(1000 + 100 * 10 + 50, window=60000), 2100)


class WithRoom(EnaTest):
    """Any options that leave 8 bytes of the 40 stay as they are, in order, behind the new one."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        stamps, ends = tuple(timestamps(1, 2)), (("EOL", None),)
        for options in (
            (),
            stamps,
            (*stamps, *sack(*BLOCKS[:1])),
            (*stamps, *sack(*BLOCKS[:2])),
            tuple(sack(*BLOCKS[:3])),
            (("Timestamp", (8, 9)), *ends),
            ((254, b"\x00\x01\x02"), ("NOP", None)),
            tuple([("NOP", None)] * 32),
        ):
            self.marks(receiver_ack(1000, options=options), 1000)


class LastBlock(EnaTest):
    """A full option area with SACK gives its last block: three beside timestamps, four without."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        for blocks, others in ((3, timestamps(1, 2)), (4, [])):
            ack = receiver_ack(1000, options=(*others, *sack(*BLOCKS[:blocks])))
            less = ack.changed(options=(ena_option(1000), *others, *sack(*BLOCKS[: blocks - 1])))
            self.assertEqual(len(ack.packet()), len(less.packet()))
            self.send(ack.packet(), 2)
            self.receive(forwarded(less.packet(), SATELLITE), SATELLITE)
        # Nothing missing: nothing is taken.
        for options in ((*timestamps(1, 2), *sack(*BLOCKS[:3])), tuple(sack(*BLOCKS))):
            self.hears(receiver_ack(1001, options=options))
        self.counts(corrupted=1, notified=3)


class NoRoom(EnaTest):
    """An ACK whose options fill the header in another way passes as it is, and is counted."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        full: tuple[Any, ...] = (
            tuple([("NOP", None)] * 36),
            tuple([("NOP", None)] * 40),
            (*sack(*BLOCKS[:3]), *timestamps(1, 2)),
            ((254, bytes(38)),),
        )
        for options in full:
            self.passes(receiver_ack(1000, options=options))
        self.counts(corrupted=1, notified=1, no_room=4)


class NotMarked(EnaTest):
    """Data, SYN, RST and ACKs that name something already pass as they are; a FIN without data is an ACK too."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        back = receiver_ack(0).five_tuple
        self.passes(Segment(five_tuple=back, seq=5000, ack=1000, payload=b"x" * 40))
        self.passes(Segment(five_tuple=back, seq=5000, ack=1000, payload=b"x" * 1460))
        self.passes(receiver_ack(1000, seq=5040, flags="R"))
        self.passes(receiver_ack(1000, seq=5040, flags="RA"))
        for others in ((), (("NOP", None), ("NOP", None), ("NOP", None), ("NOP", None)), tuple(timestamps(1, 2))):
            self.passes(receiver_ack(1000, seq=6460, options=(*others, ena_option(1000))))
        self.passes(receiver_ack(1000, seq=6460, options=(*timestamps(1, 2), *sack(*BLOCKS[:2]), ena_option(1000))))
        self.marks(receiver_ack(1000, seq=6460, flags="FA"), 1000)
        self.counts(corrupted=1, notified=2)


class CorruptedAck(EnaTest):
    """An ACK that comes corrupted is not marked and nothing is learned from it: its checksum stays wrong."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        ack = receiver_ack(1500, options=tuple(timestamps(1, 2)))
        self.send(flipped(ack.packet(), -1), 2)
        self.receive(flipped(forwarded(ack.packet(), SATELLITE), -1), SATELLITE)
        self.marks(receiver_ack(1000), 1000)


class Padded(EnaTest):
    """Padding behind a short ACK stays behind it: lengths and checksums are the packet's."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        ack = receiver_ack(1000)
        with_option = forwarded(ack.changed(options=(ena_option(1000),)).packet(), SATELLITE)
        self.send(bytes(ack.packet()) + bytes(6), 2)
        self.receive(bytes(with_option) + bytes(6), SATELLITE)


class OtherWay(EnaTest):
    """ACKs for a port that is no far side are not looked at."""

    def runTest(self) -> None:
        self.hears(receiver_ack(1000))
        self.answers(data(1000), 1000)
        self.switch.write(-self._entry("far_side_out", {"egress_port": SATELLITE}, "mark_acks", 0, {}))
        self.passes(receiver_ack(1000))
