# SPDX-License-Identifier: GPL-2.0-or-later
"""Which VC a frame is of, what belongs to none, ports without a scheme, and the counters of all of it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import finsy as fy

from base import SLOW_PORT
from client import wait_until
from gfr_base import FAST_PORT, NO_VC_SLOT, ONE_CELL, GfrTest, SentFrame
from gfr_oracle import Verdict, cells
from packets import FiveTuple, arp_request, frame, ipv4, ipv6

NONE = NO_VC_SLOT + FAST_PORT
PACKET_OUT_HEADER = 2
"""Bytes; counters have it with the frame, cells do not."""


class VcTest(GfrTest):
    """Port 2 admits all; VCs 11, 12, 13 have their number as slot."""

    def setUp(self) -> None:
        super().setUp()
        self.scheme("drop_tail", FAST_PORT, qmax=60_000)
        for vc in (11, 12, 13):
            self.share(vc, FAST_PORT)

    def classify(self, vc: int, priority: int = 10, table: str = "vc_classify", **match: str) -> None:
        self.insert(table, match, "set_vc", priority=priority, vc=vc)

    def slot_of(self, packet: Any, port: int = 1) -> int:
        """The slot that one frame for port 2 was counted in."""
        slots = (11, 12, 13, NONE)
        before = self.verdicts(*slots)
        self.send(packet, port)
        wait_until(lambda: self.verdicts(*slots) != before, "one frame counted")
        ((slot, _, _),) = (self.verdicts(*slots) - before).elements()
        return slot

    def packet(self, host: int = 50, from_port: int = 1, **options: Any) -> Any:
        return frame(FiveTuple(ipv4(from_port, host), ipv4(2)), 104, **options)


class ByVlan(VcTest):
    """A VC may be a VLAN."""

    def runTest(self) -> None:
        self.classify(11, vid="7/&0xfff")
        self.assertEqual(self.slot_of(self.packet(vlan=7)), 11)
        self.assertEqual(self.slot_of(self.packet(vlan=7, pcp=6, dei=1)), 11)
        self.assertEqual(self.slot_of(self.packet(vlan=8)), NONE)
        self.assertEqual(self.slot_of(self.packet()), NONE)


class ByPrefix(VcTest):
    """A VC may be a prefix of the source, of the destination, or both; the higher priority wins."""

    def runTest(self) -> None:
        self.classify(11, src="10.0.1.32/&255.255.255.224")
        self.classify(12, priority=20, src="10.0.1.48/&255.255.255.240", dst="10.0.2.0/&255.255.255.0")
        self.classify(13, priority=5, dst="10.0.2.0/&255.255.255.0")
        self.assertEqual(self.slot_of(self.packet(33)), 11)
        self.assertEqual(self.slot_of(self.packet(50)), 12)
        self.assertEqual(self.slot_of(self.packet(64)), 13)


class ByPrefixIpv6(VcTest):
    """IPv6 VCs have a table of their own."""

    def runTest(self) -> None:
        ones = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00"
        self.classify(12, table="vc_classify_v6", src=f"{ipv6(1, 0)}/&{ones}", dscp="9/&0x3f")
        self.assertEqual(self.slot_of(frame(FiveTuple(ipv6(1, 5), ipv6(2)), 104, dscp=9)), 12)
        self.assertEqual(self.slot_of(frame(FiveTuple(ipv6(1, 5), ipv6(2)), 104)), NONE)
        self.assertEqual(self.slot_of(frame(FiveTuple(ipv6(1, 0x105), ipv6(2)), 104, dscp=9)), NONE)


class ByDscpAndPort(VcTest):
    """A VC may be a DSCP, at one port or at all."""

    def runTest(self) -> None:
        self.classify(11, dscp="46/&0x3f")
        self.classify(12, priority=20, dscp="40/&0x38", ingress_port="3/&0x1ff")
        self.assertEqual(self.slot_of(self.packet(dscp=46)), 11)
        self.assertEqual(self.slot_of(self.packet(from_port=3, dscp=46), port=3), 12)
        self.assertEqual(self.slot_of(self.packet(from_port=3, dscp=34), port=3), NONE)


class WithoutShare(VcTest):
    """A VC without a share at the port is treated as none there, marked, and not policed."""

    def runTest(self) -> None:
        self.classify(14, src="10.0.1.50/&255.255.255.255")
        self.insert("vc_edge", {"ingress_port": 1, "vc": 14}, "set_edge", mfs=60, mark_dscp=1, set_dscp=1)
        self.send_and_receive(self.packet())
        self.assertEqual(self.verdicts(NONE), {(NONE, 1, Verdict.BETWEEN): 1})


class OfNoVc(VcTest):
    """Non-IP frames and packet-outs fill the buffer like others; they are of no VC."""

    def runTest(self) -> None:
        self.insert("l2", {"hdr.ethernet.ether_type": "0x0806/&0xffff"}, "l2_forward", priority=1, port=FAST_PORT)
        arp = arp_request(1, 2)
        self.send(arp)
        self.receive(arp, FAST_PORT)
        packet_out = bytes(self.packet())
        self.switch.send_packet_out(packet_out, FAST_PORT)
        self.receive(packet_out, FAST_PORT)
        self.assertEqual(self.verdicts(NONE), {(NONE, 1, Verdict.BETWEEN): 2})
        self.assertEqual(
            self.counter("admitted", FAST_PORT), (2, len(bytes(arp)) + len(packet_out) + PACKET_OUT_HEADER)
        )


class OfNoVcIsRefused(VcTest):
    """What is of no VC is refused like others, and counted."""

    def runTest(self) -> None:
        self.scheme("drop_tail", FAST_PORT, qmax=1)
        arp = arp_request(1, 2)
        self.insert("l2", {"hdr.ethernet.ether_type": "0x0806/&0xffff"}, "l2_forward", priority=1, port=FAST_PORT)
        self.send(arp)  # 42 bytes: one cell
        self.receive(arp, FAST_PORT)
        self.switch.send_packet_out(bytes(self.packet()), FAST_PORT)  # three cells
        wait_until(lambda: self.drops(12, FAST_PORT) == (1, 104 + PACKET_OUT_HEADER), "the packet-out refused")
        self.assertEqual(self.verdicts(NONE), {(NONE, 1, Verdict.BETWEEN): 1, (NONE, 1, Verdict.QMAX): 1})


class UnmanagedPort(VcTest):
    """Without a scheme a port has no rule: everything passes and is counted, nothing is looked up or policed."""

    def runTest(self) -> None:
        self.share(1)
        self.insert("vc_edge", {"ingress_port": 1, "vc": 1}, "set_edge", mfs=60, mark_dscp=1, set_dscp=1)
        for length in (60, 100, 300):
            self.send_and_receive(frame(FiveTuple(ipv4(2, 1), ipv4(1)), length), to_port=1, from_port=2)
        self.assertEqual(self.counter("passed", 1), (3, 460))
        self.assertEqual(self.counter("admitted", 1), (0, 0))
        self.dataplane.send(0, 1, SentFrame(1).frame_to(SLOW_PORT))
        wait_until(lambda: self.counter("passed", SLOW_PORT) == (1, ONE_CELL), "one frame passed")
        self.assertTrue(self.receive_any(SLOW_PORT, timeout_s=3.0))
        self.assertEqual(self.verdicts(1), {})
        self.assertEqual(self.arrived(1, SLOW_PORT), (0, 0))
        self.assert_no_occupancy(1)

    def arrived(self, vc: int, port: int) -> tuple[int, int]:
        entry = fy.P4TableEntry("vc_share", match=fy.Match(egress_port=port, vc=vc))
        (answer,) = self.switch.read(fy.P4DirectCounterEntry("vc_share", table_entry=entry))
        return answer.packet_count, answer.byte_count


class ArrivalsAreCounted(UnmanagedPort):
    """The entry's own counter has what arrived, refused and policed frames too."""

    def runTest(self) -> None:
        self.scheme("drop_tail", FAST_PORT, qmax=3)
        self.insert("vc_edge", {"ingress_port": 1, "vc": 1}, "set_edge", mfs=250, mark_dscp=1, set_dscp=1)
        self.share(1, FAST_PORT)
        lengths = (54, 100, 200, 251)  # 1, 2, 5 cells, too long
        for length in lengths:
            self.dataplane.send(0, 1, SentFrame(1, 0, length).frame_to(FAST_PORT))
        wait_until(lambda: self.arrivals(FAST_PORT) == 4, "4 frames handled")
        self.assertEqual(self.arrived(1, FAST_PORT), (4, sum(lengths)))
        kinds = {(1, 0, Verdict.BETWEEN): 2, (1, 0, Verdict.QMAX): 1, (1, 0, Verdict.MFS): 1}
        self.assertEqual(self.verdicts(1), kinds)
        self.assertEqual(self.counter("vc_verdicts", 1 << 5 | Verdict.BETWEEN), (2, 154))


class CellsOfEverySize(VcTest):
    """c = ceil((length - 14 + 8) / 48), at least 1, for every length at which it changes and the one before."""

    def runTest(self) -> None:
        self.needs_embedded("it cannot write registers")
        self.share(1, FAST_PORT)
        for count in range(1, 31):
            longest = 48 * count + 6
            for length in (longest, longest + 1):
                if not 54 <= length <= 1514:
                    continue
                c = cells(length)
                self.assertEqual(c, count if length == longest else count + 1)
                self.scheme("drop_tail", FAST_PORT, qmax=1000)
                self.assertEqual(self.meets(SentFrame(1, 0, length), 1000 - c, 0), Verdict.BETWEEN, f"{length} bytes")
                self.assertEqual(self.meets(SentFrame(1, 0, length), 1001 - c, 0), Verdict.QMAX, f"{length} bytes")


class QueuePerVc(GfrTest):
    """per_vc_queue 1: each VC is in its entry's queue (strict priority here: the larger first); 0: all in one."""

    def runTest(self) -> None:
        self.needs_embedded("it has no more queues than priorities, and FIFO schemes only")
        for vc in (1, 2, 3):
            self.share(vc)
        sent = [SentFrame(1), SentFrame(3), SentFrame(2), SentFrame(1), SentFrame(2)]
        for per_vc_queue, order in ((1, [3, 2, 2, 1, 1]), (0, [1, 3, 2, 1, 2])):
            self.scheme("drop_tail", qmax=1000, per_vc_queue=per_vc_queue)
            self.hold_line(SentFrame(0, 1, 100))
            for fill, one in enumerate(sent):
                self.dataplane.send(0, 1, one.frame_to(SLOW_PORT, fill))
            self.count_sent(len(sent))
            self.set_rate(1_000_000)
            came: list[int] = []
            while isinstance(
                got := self.dataplane.poll(port_number=SLOW_PORT, timeout=1.0), self.dataplane.PollSuccess
            ):
                came.append(got.packet[29])  # last byte of the source address
            self.assertEqual(came, [99, *order])
            self.slow_port_is_idle()
            self.assert_no_occupancy(1, 2, 3)
