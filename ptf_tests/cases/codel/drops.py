# SPDX-License-Identifier: GPL-2.0-or-later
"""CoDel's drops and marks beside RFC 8289's pseudo-code. A frame takes 200 ms: the k-th of a burst has waited k * 200 ms."""

from __future__ import annotations

from aqm_base import ECT, FRAME_BYTES, REASON_AQM, SERVICE_US, AqmTest
from base import SLOW_PORT
from codel_oracle import Codel, Waiting

TARGET_US, INTERVAL_US, MAX_PACKET_BYTES = 300_000, 500_000, 150


class CodelTest(AqmTest):
    """A managed slow port."""

    def manage(self, ecn: int = 1) -> None:
        values = {"target_us": TARGET_US, "interval_us": INTERVAL_US, "max_packet_bytes": MAX_PACKET_BYTES, "ecn": ecn}
        self.insert("codel_port", {"egress_port": SLOW_PORT}, "set_codel", **values)

    def expected(self, count: int, ect: bool = False) -> tuple[list[int], Codel]:
        """What leaves of a burst by the RFC, and the oracle after it: here a drop takes no time of the line."""
        codel = Codel(TARGET_US, INTERVAL_US, MAX_PACKET_BYTES)
        codel.queue.extend(Waiting(0, FRAME_BYTES, name, ect) for name in range(count))
        out: list[int] = []
        for now in range(0, count * SERVICE_US, SERVICE_US):
            packet = codel.deque(now)
            out += [packet.name] if packet is not None else []
        return out, codel


class DropsOfTheRfc(CodelTest):
    """A burst loses the packets that the RFC's deque() drops, and no time with them."""

    def runTest(self) -> None:
        self.needs_embedded("BMv2's queue waits a service time also behind a packet that egress drops")
        out, codel = self.expected(16)
        assert len(codel.dropped) >= 3
        self.manage()
        found = self.fills(self.burst_of(16))
        assert found == out, (found, out)
        assert self.drops(REASON_AQM)[0] == len(codel.dropped)
        assert self.counter("sent", SLOW_PORT)[0] == len(out)
        assert self.register("drop_count", SLOW_PORT) == codel.count
        assert self.register("last_count", SLOW_PORT) == codel.lastcount


class FirstDropOfTheRfc(CodelTest):
    """The first packet that is dropped is the RFC's, on every target."""

    def runTest(self) -> None:
        _, codel = self.expected(12)
        self.manage()
        found = self.fills(self.burst_of(12))
        missing = [name for name in range(12) if name not in found]
        assert missing[0] == codel.dropped[0].name, (found, codel.dropped)
        assert self.drops(REASON_AQM)[0] == len(missing)


class MarksInsteadOfDrops(CodelTest):
    """Packets that say ECT are marked where they would be dropped, and leave; the IPv4 checksum stays right."""

    def runTest(self) -> None:
        out, codel = self.expected(12, ect=True)
        assert len(codel.marked) >= 2
        self.manage()
        frames = self.burst_of(12, ecn=ECT)
        assert self.fills(frames) == out == list(range(12))
        self.check_marks(frames, [packet.name for packet in codel.marked])
        assert self.counter("marked", SLOW_PORT)[0] == len(codel.marked)
        assert self.drops(REASON_AQM)[0] == 0


class NoMarksUnlessAsked(CodelTest):
    """With ecn=0 a packet that says ECT is dropped like any other."""

    def runTest(self) -> None:
        _, codel = self.expected(10)
        self.manage(ecn=0)
        frames = self.burst_of(10, ecn=ECT)
        self.check_marks(frames, [])
        missing = [name for name in range(10) if name not in self.fills(frames)]
        assert missing[0] == codel.dropped[0].name


class ShortQueue(CodelTest):
    """A queue that holds no more than one full packet behind the one that leaves loses nothing, however long that waits."""

    def runTest(self) -> None:
        values = {"target_us": 1_000, "interval_us": 1_000, "max_packet_bytes": 4 * FRAME_BYTES, "ecn": 0}
        self.insert("codel_port", {"egress_port": SLOW_PORT}, "set_codel", **values)
        assert self.fills(self.burst_of(6)) == list(range(6))


class WithoutAnEntry(CodelTest):
    """A port without an entry drops nothing."""

    def runTest(self) -> None:
        assert self.fills(self.burst_of(9)) == list(range(9))
