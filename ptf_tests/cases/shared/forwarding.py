# SPDX-License-Identifier: Apache-2.0
"""Forwarding: a packet leaves by the longest prefix, rewritten as a router does, and nothing else leaves."""

from __future__ import annotations

import random

import finsy as fy

from base import REASON_NO_ROUTE, REASON_NON_IP, REASON_ROUTE_DROP, SLOW_PORT, LaneTest
from packets import FiveTuple, arp_request, built, flow, flow6, forwarded, frame, host_mac, ipv4, ipv6


class ForwardIpv4(LaneTest):
    """A TCP packet gets the next hop's MAC, a TTL less and the right checksum."""

    def runTest(self) -> None:
        self.send_and_receive(frame(flow(to_port=2)))
        self.receive_nothing()


class ForwardIpv6(LaneTest):
    """An IPv6 TCP packet gets the next hop's MAC and a hop less."""

    def runTest(self) -> None:
        self.send_and_receive(frame(flow6(to_port=2)))
        self.receive_nothing()


class ForwardOtherProtocols(LaneTest):
    """UDP, ICMP and an unknown protocol are routed like TCP, over IPv4 and IPv6."""

    def runTest(self) -> None:
        for protocol in (17, 1, 200):
            self.send_and_receive(frame(flow(to_port=2).with_changes(protocol=protocol)))
            self.send_and_receive(frame(flow6(to_port=2).with_changes(protocol=protocol)))


class ForwardLongestPrefix(LaneTest):
    """Of two prefixes that match, the longer one decides; without it, the shorter one."""

    def runTest(self) -> None:
        match = {"hdr.ipv4.dst": ipv4(2, 9) + "/32"}
        packet = frame(FiveTuple(ipv4(1), ipv4(2, 9)))
        self.insert("ipv4_lpm", match, "forward", dst_mac=host_mac(SLOW_PORT), port=SLOW_PORT)
        self.send_and_receive(packet, to_port=SLOW_PORT)
        self.switch.write(-fy.P4TableEntry("ipv4_lpm", match=fy.Match(**match)))
        self.send_and_receive(packet, to_port=2)


class ForwardChecksums(LaneTest):
    """The TTL's checksum update is right for any header: 200 random ones."""

    def runTest(self) -> None:
        numbers = random.Random(7)
        for _ in range(200):
            packet = frame(flow(numbers.randrange(20000), to_port=2), ttl=numbers.randrange(2, 256))
            packet["IP"].id = numbers.randrange(65536)
            del packet["IP"].chksum
            self.send_and_receive(built(packet))


class ForwardChecksumExtremes(LaneTest):
    """Headers whose checksum is 0x0000, 0x00FF, 0x0100, 0xFEFF or 0xFFFE before the update keep a right one."""

    def runTest(self) -> None:
        for wanted in (0x0000, 0x00FF, 0x0100, 0xFEFF, 0xFFFE):
            packet = frame(flow(to_port=2))
            # One's complement: the header's sum with identification 0 is fixed, the identification fills it up.
            packet["IP"].id = 0
            del packet["IP"].chksum
            base = ~built(packet)["IP"].chksum & 0xFFFF
            total = ~wanted & 0xFFFF
            packet["IP"].id = (total - base) % 0xFFFF
            packet = built(packet)
            self.assertEqual(packet["IP"].chksum, wanted)
            self.send_and_receive(packet)


class ForwardIpOptions(LaneTest):
    """IPv4 options of every length go through unchanged, and the ports behind them are found."""

    def runTest(self) -> None:
        for words in (1, 2, 5, 10):
            options = b"\x01" * (4 * words - 1) + b"\x00"
            packet = frame(flow(to_port=2), 160, ip_options=options)
            self.assertEqual(packet["IP"].ihl, 5 + words)
            self.send_and_receive(packet)


class ForwardFragments(LaneTest):
    """Every fragment of a packet is routed, the ones without a TCP header too."""

    def runTest(self) -> None:
        for offset, more in ((0, 1), (64, 1), (128, 0)):
            packet = frame(flow(to_port=2), 200)
            packet["IP"].frag = offset
            packet["IP"].flags = more
            del packet["IP"].chksum
            self.send_and_receive(built(packet))


class ForwardVlan(LaneTest):
    """A VLAN tag is kept, over IPv4 and IPv6."""

    def runTest(self) -> None:
        self.send_and_receive(frame(flow(to_port=2), vlan=7, pcp=5))
        self.send_and_receive(frame(flow6(to_port=2), 120, vlan=7, pcp=5))


class ForwardSizes(LaneTest):
    """The smallest and the largest Ethernet frame go through whole; padding behind a short packet is kept."""

    def runTest(self) -> None:
        self.send_and_receive(frame(flow(to_port=2), 60))
        self.send_and_receive(frame(flow(to_port=2), 1514))
        short = frame(flow(to_port=2), 54)
        padded = bytes(short) + b"\0" * 6
        self.send(padded)
        self.receive(bytes(forwarded(short, 2)) + b"\0" * 6, 2)


class NoRoute(LaneTest):
    """A packet without a route is dropped and counted for its ingress port."""

    def runTest(self) -> None:
        self.expect_drop(frame(FiveTuple(ipv4(1), "192.0.2.1")), REASON_NO_ROUTE)
        self.expect_drop(frame(FiveTuple(ipv6(1), "2001:db8::1")), REASON_NO_ROUTE)


class RouteDrop(LaneTest):
    """An entry may say drop."""

    def runTest(self) -> None:
        self.insert("ipv4_lpm", {"hdr.ipv4.dst": ipv4(2, 66) + "/32"}, "drop")
        self.expect_drop(frame(FiveTuple(ipv4(1), ipv4(2, 66))), REASON_ROUTE_DROP)
        self.send_and_receive(frame(flow(to_port=2)))


class NonIpIsDropped(LaneTest):
    """A frame that is not IP is dropped and counted while no entry of l2 wants it."""

    def runTest(self) -> None:
        self.expect_drop(arp_request(1, 2), REASON_NON_IP)


class NonIpByTable(LaneTest):
    """An entry of l2 sends ARP on unchanged; the entry of the higher priority wins."""

    def runTest(self) -> None:
        arp = {"hdr.ethernet.ether_type": "0x0806/&0xffff"}
        self.insert("l2", arp, "l2_forward", priority=1, port=2)
        self.send(arp_request(1, 2))
        self.receive(arp_request(1, 2), 2)
        self.insert("l2", arp | {"standard_metadata.ingress_port": "1/&0x1ff"}, "drop", priority=2)
        self.expect_drop(arp_request(1, 2), REASON_ROUTE_DROP)
