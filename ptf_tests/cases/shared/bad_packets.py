# SPDX-License-Identifier: Apache-2.0
"""Bad packets: each is dropped, counted once for its ingress port under its own reason, and never forwarded."""

from __future__ import annotations

from base import (
    REASON_BAD_CHECKSUM,
    REASON_BAD_IHL,
    REASON_BAD_LENGTH,
    REASON_BAD_VERSION,
    REASON_SHORT,
    REASON_TTL,
    LaneTest,
)
from packets import built, changed, flow, flow6, frame


class ShortFrame(LaneTest):
    """A frame that ends inside any header is short."""

    def runTest(self) -> None:
        whole = bytes(frame(flow(to_port=2)))
        for length in (14, 20, 33, 34, 53):  # in the IPv4 header, before TCP, in the TCP header
            self.expect_drop(whole[:length], REASON_SHORT)
        whole6 = bytes(frame(flow6(to_port=2)))
        for length in (14, 53, 54, 73):
            self.expect_drop(whole6[:length], REASON_SHORT)
        tagged = bytes(frame(flow(to_port=2), vlan=3))
        for length in (20, 37):  # below 20 the kernel itself drops a tagged frame
            self.expect_drop(tagged[:length], REASON_SHORT)
        udp = bytes(frame(flow(to_port=2).with_changes(protocol=17)))
        self.expect_drop(udp[:41], REASON_SHORT)


class ShortOptions(LaneTest):
    """A frame that ends inside the IPv4 options is short."""

    def runTest(self) -> None:
        whole = bytes(frame(flow(to_port=2), 120, ip_options=b"\x01" * 39 + b"\x00"))
        self.expect_drop(whole[:60], REASON_SHORT)


class BadVersion(LaneTest):
    """An IP version that is not the EtherType's is refused."""

    def runTest(self) -> None:
        for version in (0, 5, 6, 15):
            self.expect_drop(changed(frame(flow(to_port=2)), "IP", version=version), REASON_BAD_VERSION)
        for version in (0, 4, 7):
            self.expect_drop(changed(frame(flow6(to_port=2)), "IPv6", version=version), REASON_BAD_VERSION)


class BadHeaderLength(LaneTest):
    """An IHL below 5 is refused."""

    def runTest(self) -> None:
        for ihl in (0, 4):
            self.expect_drop(changed(frame(flow(to_port=2)), "IP", ihl=ihl), REASON_BAD_IHL)


class BadChecksum(LaneTest):
    """An IPv4 header with one bit flipped is refused, with and without options."""

    def runTest(self) -> None:
        for options in (b"", b"\x01\x01\x01\x00"):
            packet = frame(flow(to_port=2), ip_options=options)
            for bit in (0, 7, 15):
                wrong = packet["IP"].chksum ^ 1 << bit
                self.expect_drop(changed(packet, "IP", True, chksum=wrong), REASON_BAD_CHECKSUM)
            self.send_and_receive(packet)
        packet = bytearray(bytes(frame(flow(to_port=2), ip_options=b"\x01\x01\x01\x00")))
        packet[14 + 20] ^= 0x80  # in the options
        self.expect_drop(bytes(packet), REASON_BAD_CHECKSUM)


class BadLength(LaneTest):
    """An IP length below the headers or beyond the frame is refused, and a TCP header longer than its packet."""

    def runTest(self) -> None:
        for length in (0, 19, 39, 87, 65535):
            self.expect_drop(changed(frame(flow(to_port=2)), "IP", len=length), REASON_BAD_LENGTH)
        for length in (0, 19, 47, 65535):
            self.expect_drop(changed(frame(flow6(to_port=2)), "IPv6", plen=length), REASON_BAD_LENGTH)
        self.expect_drop(changed(frame(flow(to_port=2), 60), "TCP", True, dataofs=15), REASON_BAD_LENGTH)
        self.send_and_receive(built(frame(flow(to_port=2), 60)))


class TtlSpent(LaneTest):
    """A TTL or hop limit of 0 or 1 ends here; 2 goes on as 1."""

    def runTest(self) -> None:
        for ttl in (0, 1):
            self.expect_drop(frame(flow(to_port=2), ttl=ttl), REASON_TTL)
            self.expect_drop(frame(flow6(to_port=2), ttl=ttl), REASON_TTL)
        self.send_and_receive(frame(flow(to_port=2), ttl=2))
        self.send_and_receive(frame(flow6(to_port=2), ttl=2))
