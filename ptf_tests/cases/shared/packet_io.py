# SPDX-License-Identifier: Apache-2.0
"""Packet I/O: what the controller sends leaves unchanged; what an entry sends to it arrives as it came."""

from __future__ import annotations

from base import CPU_PORT, LaneTest
from packets import arp_request, flow, flow6, frame, ipv4


class PacketOut(LaneTest):
    """A packet-out leaves its port byte by byte as it was given, whatever it is."""

    def runTest(self) -> None:
        for payload in (bytes(frame(flow(5), ttl=1)), bytes(arp_request(1, 2)), bytes(range(64))):
            for port in (1, 2):
                self.switch.send_packet_out(payload, port)
                self.receive(payload, port)
        self.receive_nothing()


class PacketInFromL2(LaneTest):
    """ARP that an l2 entry sends to the controller arrives whole, with its port and the entry's reason."""

    def runTest(self) -> None:
        self.insert("l2", {"hdr.ethernet.ether_type": "0x0806/&0xffff"}, "to_cpu", priority=1, reason=42)
        for port in (1, 2):
            self.send(arp_request(port, 3), port)
            packet = self.next_packet_in()
            self.assertEqual(packet.payload, bytes(arp_request(port, 3)))
            self.assertEqual((packet["ingress_port"], packet["reason"]), (port, 42))
        self.assertEqual(self.counter("passed", CPU_PORT)[0], 2)
        self.receive_nothing()


class PacketInFromRoute(LaneTest):
    """A route may lead to the controller; the packet is as it came, its TTL too."""

    def runTest(self) -> None:
        self.insert("ipv4_lpm", {"hdr.ipv4.dst": ipv4(1, 254) + "/32"}, "to_cpu", reason=7)
        self.insert("ipv6_lpm", {"hdr.ipv6.dst": "fd00::ffff/128"}, "to_cpu", reason=8)
        for packet, reason in (
            (frame(flow(1).with_changes(dst=ipv4(1, 254))), 7),
            (frame(flow6(1).with_changes(dst="fd00::ffff")), 8),
        ):
            self.send(packet)
            received = self.next_packet_in()
            self.assertEqual(received.payload, bytes(packet))
            self.assertEqual((received["ingress_port"], received["reason"]), (1, reason))
        self.receive_nothing()
