# SPDX-License-Identifier: GPL-2.0-or-later
"""Marks instead of drops: with `ecn` a packet that says ECT is marked above its flow's threshold, refused above twice that.

The first frame of a burst is on the wire at once (threshold.py): of a flow with Qthresh 3 the frames 1 to 3 wait unmarked,
4 to 6 marked."""

from __future__ import annotations

import struct
from typing import ClassVar

from aqm_base import CE, ECT, ECT1, AqmTest
from base import REASON_PORT_FULL, SLOW_PORT
from packets import SWITCH_MAC, flow, flow6, frame, host_mac
from qthresh_base import REASON_QTHRESH, QthreshTest

QTHRESH = 3
MARKED = [4, 5, 6]
MPLS = 0x8847


class MarksTest(AqmTest, QthreshTest):
    """A limited port with a threshold of 3 packets that marks."""

    WAITING_REGISTER = QthreshTest.WAITING_REGISTER
    REFUSALS: ClassVar[tuple[int, ...]] = QthreshTest.REFUSALS

    def manage(self, ecn: int = 1, packets: int = 50) -> None:
        self.limit_port(packets=packets, ecn=ecn)
        self.set_qthresh(QTHRESH)

    def check_counts(self, *, marked: int, refused: int, reason: int = REASON_QTHRESH) -> None:
        """Of packets of 100 bytes."""
        self.assertEqual(self.counter("marked", SLOW_PORT), (marked, 100 * marked))
        self.assertEqual(self.all_drops(), {(SLOW_PORT, reason): refused} if refused else {})


class MarksAboveThreshold(MarksTest):
    """What comes while Qthresh packets wait is marked and leaves: ECT(0), ECT(1), IPv4, IPv6, behind a VLAN tag; checksums stay right."""

    def runTest(self) -> None:
        self.manage()
        for ecn in (ECT, ECT1):
            self.check_marks(self.burst_of(7, ecn), MARKED)
        self.check_marks(self.burst_of(7, ECT, flow6()), MARKED)
        self.check_marks(self.burst_of(7, ECT, dscp=46, vlan=5), MARKED)
        self.check_counts(marked=12, refused=0)
        self.assertEqual(self.admitted(), (28, 2800))


class RefusesAboveTwiceTheThreshold(MarksTest):
    """A flow that ignores marks has at most twice its threshold waiting; what is refused is counted as a drop, not as a mark."""

    def runTest(self) -> None:
        self.manage()
        self.add_flow(flow(), 1)
        frames = self.burst_of(12, ECT)
        self.assertEqual(self.fills(frames), list(range(7)))
        self.check_marks(frames, MARKED)
        self.check_counts(marked=3, refused=5)
        self.assertEqual(self.counter("flow_drops", 1), (5, 500))
        self.assert_no_occupancy(1)


class OthersAreRefused(MarksTest):
    """A packet that does not say ECT is refused at the threshold, also beside a flow that is marked."""

    def runTest(self) -> None:
        self.manage()
        self.check_marks(self.burst_of(7), [])
        self.check_counts(marked=0, refused=3)
        self.bursts((flow(1), 6), (flow(2), 6, {"ecn": ECT}))
        self.drain(1 + 3 + 6)
        self.check_counts(marked=3, refused=3 + 2)


class NoMarksUnlessAsked(MarksTest):
    """Without `ecn` a packet that says ECT is refused like any other, and none is marked."""

    def runTest(self) -> None:
        self.manage(ecn=0)
        frames = self.burst_of(7, ECT)
        self.assertEqual(self.fills(frames), [0, 1, 2, 3])
        self.check_marks(frames, [])
        self.check_counts(marked=0, refused=3)


class CeStays(MarksTest):
    """A packet that was marked before is one that may be marked: it counts above the threshold only, and stays as it is."""

    def runTest(self) -> None:
        self.manage()
        self.check_marks(self.burst_of(7, CE), list(range(7)))
        self.check_counts(marked=3, refused=0)


class NoMarkIsRefused(MarksTest):
    """A packet for which the port has no room is refused, not marked."""

    def runTest(self) -> None:
        self.manage(packets=4)
        self.check_marks(self.burst_of(7, ECT), [4])
        self.check_counts(marked=1, refused=2, reason=REASON_PORT_FULL)


class DropTailMarksNothing(MarksTest):
    """Without a threshold there is nothing to be above."""

    def runTest(self) -> None:
        self.limit_port(ecn=1)
        self.check_marks(self.burst_of(7, ECT), [])
        self.check_counts(marked=0, refused=0)


class TunnelsAreRefused(QthreshTest):
    """A frame that is not IP says no ECT, whatever is in it: an MPLS tunnel is held to its threshold."""

    def runTest(self) -> None:
        self.limit_port(ecn=1)
        self.set_qthresh(QTHRESH)
        self.insert("l2", {"hdr.ethernet.ether_type": f"{MPLS}/&0xffff"}, "l2_forward", priority=1, port=SLOW_PORT)
        macs = bytes.fromhex((SWITCH_MAC + host_mac(1)).replace(":", ""))
        label = struct.pack("!HI", MPLS, 100 << 12 | 0x1FF)
        tunnelled = (macs + label + bytes(frame(flow(), ecn=ECT))[14:])[:100]
        self.burst(flow(), 1)
        for _ in range(5):
            self.dataplane.send(0, 1, tunnelled)
        self.count_sent(5)
        self.drain(1 + 3)
        self.assertEqual(self.drops(REASON_QTHRESH)[0], 2)
        self.assertEqual(self.counter("marked", SLOW_PORT), (0, 0))
