# SPDX-License-Identifier: GPL-2.0-or-later
# pyright: basic
"""Frames for traces: made of a text, with scapy as the judge of every field and checksum; of digits; of pcap files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch import frames
from scapy.compat import raw
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

MACS = {"dst": "08:00:00:00:01:00", "src": "08:00:00:00:01:11"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "tcp:10.0.1.1:4000>10.0.2.2:5001,len=1000",
            Ether(**MACS) / IP(src="10.0.1.1", dst="10.0.2.2", id=0, flags="DF")
            / TCP(sport=4000, dport=5001, seq=1, ack=1, flags="A", window=65535) / bytes(960),
        ),
        (
            "tcp:10.0.1.1:1>10.0.2.2:2,flags=66,ttl=1,dscp=10,ecn=2,seq=7,ack=9,vlan=5",
            Ether(**MACS) / Dot1Q(vlan=5)
            / IP(src="10.0.1.1", dst="10.0.2.2", id=0, flags="DF", ttl=1, tos=42)
            / TCP(sport=1, dport=2, seq=7, ack=9, flags="SE", window=65535),
        ),
        (
            "udp:10.0.1.1:53>10.0.2.2:53,len=61",
            Ether(**MACS) / IP(src="10.0.1.1", dst="10.0.2.2", id=0, flags="DF") / UDP(sport=53, dport=53) / bytes(33),
        ),
        (
            "udp:[2001:db8::1]:7>[2001:db8::2]:8,dscp=1,ttl=3",
            Ether(**MACS) / IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=3, tc=4) / UDP(sport=7, dport=8),
        ),
        ("icmp:10.0.1.1>10.0.2.2", Ether(**MACS) / IP(src="10.0.1.1", dst="10.0.2.2", id=0, flags="DF") / ICMP(type=8)),
        (
            "icmp:[2001:db8::1]>[2001:db8::2]",
            Ether(**MACS) / IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=64) / ICMPv6EchoRequest(id=0, seq=0),
        ),
    ],
)  # fmt: skip
def test_a_text_is_the_packet_that_scapy_makes(text: str, wanted: Packet) -> None:
    assert frames.packet(text) == raw(wanted)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("tcp 10.0.1.1", ErrorCode.BAD_INPUT, "must be PROTOCOL:SRC:PORT>DST:PORT"),
        ("tco:10.0.1.1:1>10.0.1.2:2", ErrorCode.UNKNOWN_NAME, "did you mean 'tcp'"),
        ("tcp:10.0.1.256:1>10.0.1.2:2", ErrorCode.BAD_INPUT, "'10.0.1.256' does not appear to be an IPv4"),
        ("tcp:10.0.1.1:1>[::1]:2", ErrorCode.BAD_INPUT, "one address is IPv4, the other one IPv6"),
        ("tcp:10.0.1.1:1>10.0.1.2:70000", ErrorCode.OUT_OF_RANGE, "between 0 and 65535"),
        ("tcp:10.0.1.1:1>10.0.1.2:2,len=39", ErrorCode.OUT_OF_RANGE, "between 40 and"),
        ("tcp:10.0.1.1:1>10.0.1.2:2,len=x", ErrorCode.BAD_INPUT, "len 'x' is no number"),
        ("tcp:10.0.1.1:1>10.0.1.2:2,ttl=²", ErrorCode.BAD_INPUT, "ttl '²' is no number"),
        ("tcp:10.0.1.1:1>10.0.1.2:2,tll=3", ErrorCode.UNKNOWN_NAME, "did you mean 'ttl'"),
    ],
)
def test_a_mistake_is_said(text: str, code: ErrorCode, said: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        frames.packet(text)
    assert caught.value.code is code
    assert said in caught.value.message


def test_a_pcap_file(tmp_path: Path) -> None:
    path = tmp_path / "two#.pcap"
    packets = [Ether(**MACS) / IP(dst="10.0.0.1") / bytes(n) for n in (1, 2)]
    cast("Any", wrpcap)(str(path), packets)
    assert frames.from_pcap(f"{path}#1") == raw(packets[0])
    assert frames.from_pcap(f"{path}#2") == raw(packets[1])
    for text, said in (
        (f"{path}#3", "between 1 and 2"),
        (f"{path}#0", "frame 0 is out of range"),
        (f"{tmp_path}/no.pcap", "cannot be read"),
    ):
        with pytest.raises(FairlaneError) as caught:
            frames.from_pcap(text)
        assert said in caught.value.message
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FairlaneError, match="capture whole frames"):
        frames.from_pcap(f"{cut}#2")
    (tmp_path / "ng.pcap").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    with pytest.raises(FairlaneError, match="editcap -F pcap"):
        frames.from_pcap(str(tmp_path / "ng.pcap"))
    (tmp_path / "text.pcap").write_bytes(b"hello")
    with pytest.raises(FairlaneError, match="must be a pcap file"):
        frames.from_pcap(str(tmp_path / "text.pcap"))
