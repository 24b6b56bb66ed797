# SPDX-License-Identifier: GPL-2.0-or-later
"""F-GCRA at a VC's edge: tagging at MCR and PCR, the marks that are written, frames longer than MFS, frames that come marked.

The meters' rates are next to nothing, so that a test's burst meets full buckets of a known size and no refill.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import random
from typing import Any

import finsy as fy
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q

from client import wait_until
from gfr_base import FAST_PORT, MARKED_DSCP, PLAIN_DSCP, REASON_MFS, REASON_PCR, GfrTest, SentFrame
from gfr_oracle import Verdict
from packets import FiveTuple, built, forwarded, frame, ipv4, ipv6

TAG = 14
"""AF13: the DSCP that this edge writes."""
PLAIN, MARKED = (1, 0, Verdict.BETWEEN), (1, 1, Verdict.BETWEEN)
PCR_PLAIN, PCR_MARKED = (1, 0, Verdict.PCR), (1, 1, Verdict.PCR)


class EdgeTest(GfrTest):
    """Port 2 admits all; port 1 is the edge of VC 1."""

    def setUp(self) -> None:
        super().setUp()
        self.scheme("drop_tail", FAST_PORT, qmax=60_000)
        self.share(1, FAST_PORT)

    def edge(self, mfs: int = 2000, set_dscp: int = 1, vc: int = 1) -> None:
        self.insert("vc_edge", {"ingress_port": 1, "vc": vc}, "set_edge", mfs=mfs, mark_dscp=TAG, set_dscp=set_dscp)

    def meter(self, table: str, mbs: int, pbs: int, vc: int = 1) -> None:
        """Full buckets of `mbs` and `pbs` bytes, filled at 1 byte/s."""
        match = {"ingress_port": 1, "vc": vc}
        self.insert(table, match, "police" if table == "vc_police" else "police_marked")
        config = fy.P4MeterConfig(cir=1, cburst=mbs, pir=1, pburst=pbs)
        entry = fy.P4TableEntry(table, match=fy.Match(**match))
        self.switch.write(~fy.P4DirectMeterEntry(table_entry=entry, config=config))

    def pass_through(self, *packets: Any) -> None:
        """Sends packets to port 2 and returns when ingress decided about them."""
        arrived = self.arrivals(FAST_PORT)
        for packet in packets:
            self.dataplane.send(0, 1, bytes(packet))
        wait_until(lambda: self.arrivals(FAST_PORT) == arrived + len(packets), f"{len(packets)} frames handled")

    def burst(self, *frames: SentFrame) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.pass_through(*(one.frame_to(FAST_PORT, fill) for fill, one in enumerate(frames)))

    def frame_of_vc(self, length: int = 100, **options: Any) -> Any:
        values: dict[str, Any] = {"dscp": PLAIN_DSCP} | options
        return frame(FiveTuple(ipv4(1, 1), ipv4(2)), length, **values)

    def out_of_tokens(self) -> None:
        """Port 1 is VC 1's edge, and every frame from now on is tagged."""
        self.edge()
        self.meter("vc_police", mbs=1, pbs=100_000)


class TaggedAtMcr(EdgeTest):
    """What fits into MBS keeps CLP 0, to the byte; the rest is CLP 1."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police", mbs=300, pbs=10_000)
        self.burst(SentFrame(1, 0, 100), SentFrame(1, 0, 100))
        self.burst(SentFrame(1, 0, 101))
        self.assertEqual(self.verdicts(1), {PLAIN: 2, MARKED: 1})
        self.burst(SentFrame(1, 0, 100))
        self.assertEqual(self.verdicts(1), {PLAIN: 3, MARKED: 1})
        self.burst(*[SentFrame(1, 0, 54)] * 4)
        self.assertEqual(self.verdicts(1), {PLAIN: 3, MARKED: 5})


class DroppedAbovePcr(EdgeTest):
    """Green, yellow, red: above PCR a frame is dropped, counted by VC and by reason, and takes nothing from the rest."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police", mbs=300, pbs=500)
        self.burst(*[SentFrame(1, 0, 100)] * 5)
        self.assertEqual(self.verdicts(1), {PLAIN: 3, MARKED: 2})
        self.burst(*[SentFrame(1, 0, 100)] * 2)
        self.assertEqual(self.verdicts(1), {PLAIN: 3, MARKED: 2, PCR_PLAIN: 2})
        self.assertEqual(self.drops(REASON_PCR, FAST_PORT), (2, 200))
        self.assertEqual(self.receive_count(FAST_PORT, timeout_s=0.3), 5)


class TagIsWritten(EdgeTest):
    """A tagged frame leaves with the tag's DSCP, its ECN bits as they were, and a right IPv4 checksum."""

    def runTest(self) -> None:
        self.out_of_tokens()
        numbers = random.Random(3)
        for number in range(24):
            packet = self.frame_of_vc(60 + numbers.randrange(300), dscp=numbers.choice((0, 8, PLAIN_DSCP, 46, 63)))
            packet[IP].id = numbers.choice((0, 0xFFFF, numbers.randrange(1 << 16)))
            packet[IP].tos |= numbers.randrange(4)
            packet[IP].ttl = numbers.randrange(2, 256)
            del packet[IP].chksum
            packet = built(packet)
            self.send(packet)
            expected = packet.copy()
            expected[IP].tos = TAG << 2 | packet[IP].tos & 3
            self.receive(forwarded(built(expected), FAST_PORT), FAST_PORT)
            self.assertEqual(self.verdicts(1)[MARKED], number + 1)


class TagIsWrittenBehindOptions(EdgeTest):
    """The checksum of a header with options stays right."""

    def runTest(self) -> None:
        self.out_of_tokens()
        packet = self.frame_of_vc(140, ip_options=b"\x01" * 7 + b"\x00")
        self.send(packet)
        expected = packet.copy()
        expected[IP].tos = TAG << 2
        self.receive(forwarded(built(expected), FAST_PORT), FAST_PORT)


class TagIsWrittenIpv6(EdgeTest):
    """The tag's DSCP is written into IPv6's traffic class."""

    def runTest(self) -> None:
        match = {"src": ipv6(1, 1) + "/&ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
        self.insert("vc_classify_v6", match, "set_vc", priority=1, vc=1)
        self.out_of_tokens()
        packet = frame(FiveTuple(ipv6(1, 1), ipv6(2)), 120, dscp=PLAIN_DSCP)
        self.send(packet)
        expected = packet.copy()
        expected[IPv6].tc = TAG << 2
        self.receive(forwarded(expected, FAST_PORT), FAST_PORT)
        self.assertEqual(self.verdicts(1), {MARKED: 1})


class DropEligible(EdgeTest):
    """A tagged frame with a VLAN tag leaves with DEI set; one that conforms does not."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police", mbs=104, pbs=100_000)
        packet = self.frame_of_vc(104, vlan=7, pcp=5)
        self.send_and_receive(packet)
        self.send(packet)
        expected = packet.copy()
        expected[Dot1Q].dei = 1
        expected[IP].tos = TAG << 2
        self.receive(forwarded(built(expected), FAST_PORT), FAST_PORT)
        self.assertEqual(self.verdicts(1), {PLAIN: 1, MARKED: 1})


class DscpIsLeftAlone(EdgeTest):
    """With set_dscp 0 a tagged frame keeps its DSCP; DEI is set all the same."""

    def runTest(self) -> None:
        self.edge(set_dscp=0)
        self.meter("vc_police", mbs=1, pbs=100_000)
        self.send_and_receive(self.frame_of_vc())
        packet = self.frame_of_vc(vlan=7)
        self.send(packet)
        expected = packet.copy()
        expected[Dot1Q].dei = 1
        self.receive(forwarded(expected, FAST_PORT), FAST_PORT)
        self.assertEqual(self.verdicts(1), {MARKED: 2})


class ConformingIsUntouched(EdgeTest):
    """A conforming frame leaves as a router sends it, nothing else written."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police", mbs=100_000, pbs=100_000)
        for options in ({}, {"vlan": 9, "pcp": 3}, {"dscp": 46}):
            self.send_and_receive(self.frame_of_vc(**options))
        self.assertEqual(self.verdicts(1), {PLAIN: 3})


class LongerThanMfs(EdgeTest):
    """A frame of MFS passes, one byte more is dropped, counted, and takes no tokens; marked or not."""

    def runTest(self) -> None:
        self.edge(mfs=200)
        self.meter("vc_police", mbs=400, pbs=10_000)
        self.burst(*[SentFrame(1, 0, 201)] * 3, SentFrame(1, 1, 201))
        self.assertEqual(self.verdicts(1), {(1, 0, Verdict.MFS): 3, (1, 1, Verdict.MFS): 1})
        self.assertEqual(self.drops(REASON_MFS, FAST_PORT), (4, 4 * 201))
        self.burst(SentFrame(1, 0, 200), SentFrame(1, 0, 200), SentFrame(1, 0, 200))
        after = self.verdicts(1)
        self.assertEqual((after[PLAIN], after[MARKED]), (2, 1))
        self.assertEqual(self.receive_count(FAST_PORT, timeout_s=0.3), 3)


class CameMarked(EdgeTest):
    """A frame that comes marked stays marked, takes no MCR tokens, and is held to PCR on its own."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police", mbs=200, pbs=10_000)
        self.meter("vc_police_marked", mbs=300, pbs=300)
        self.burst(*[SentFrame(1, 1, 100)] * 4)
        self.assertEqual(self.verdicts(1), {MARKED: 3, PCR_MARKED: 1})
        self.burst(*[SentFrame(1, 0, 100)] * 3)
        self.assertEqual(self.verdicts(1), {MARKED: 4, PCR_MARKED: 1, PLAIN: 2})


class CameMarkedKeepsItsDscp(EdgeTest):
    """A frame that comes marked leaves with the mark it came with."""

    def runTest(self) -> None:
        self.edge()
        self.meter("vc_police_marked", mbs=10_000, pbs=10_000)
        self.send_and_receive(self.frame_of_vc(dscp=MARKED_DSCP))
        self.assertEqual(self.verdicts(1), {MARKED: 1})


class MarkFromDei(EdgeTest):
    """The mark may come in the VLAN tag's DEI."""

    def runTest(self) -> None:
        self.insert("clp_mark", {"dei": "1/&0x1"}, "set_clp", priority=2, clp=1)
        self.send_and_receive(self.frame_of_vc(vlan=7, dei=1))
        self.send_and_receive(self.frame_of_vc(vlan=7))
        self.assertEqual(self.verdicts(1), {MARKED: 1, PLAIN: 1})


class NotAnEdge(EdgeTest):
    """Where the port is no edge of the VC the mark is believed and nothing is metered."""

    def runTest(self) -> None:
        self.meter("vc_police", mbs=1, pbs=1)
        self.meter("vc_police_marked", mbs=1, pbs=1)
        self.edge(vc=2, mfs=60)
        self.burst(*[SentFrame(1, 0, 1000)] * 3, *[SentFrame(1, 1, 1000)] * 2)
        self.assertEqual(self.verdicts(1), {PLAIN: 3, MARKED: 2})


class EdgeWithoutMeters(EdgeTest):
    """An edge without meters holds to MFS and believes the mark."""

    def runTest(self) -> None:
        self.edge(mfs=300)
        self.burst(*[SentFrame(1, 0, 300)] * 2, SentFrame(1, 1, 300), SentFrame(1, 0, 301))
        self.assertEqual(self.verdicts(1), {PLAIN: 2, MARKED: 1, (1, 0, Verdict.MFS): 1})


class MetersAreApart(EdgeTest):
    """Each VC has its own tokens."""

    def runTest(self) -> None:
        self.share(2, FAST_PORT)
        for vc in (1, 2):
            self.edge(vc=vc)
            self.meter("vc_police", mbs=200, pbs=10_000, vc=vc)
        self.burst(*[SentFrame(1, 0, 100)] * 5, *[SentFrame(2, 0, 100)] * 3)
        self.assertEqual(self.verdicts(1), {PLAIN: 2, MARKED: 3})
        self.assertEqual(self.verdicts(2), {(2, 0, Verdict.BETWEEN): 2, (2, 1, Verdict.BETWEEN): 1})
