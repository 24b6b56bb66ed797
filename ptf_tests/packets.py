# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames for the tests: flows by number, and scapy packets with what the switch should make of them."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import ipaddress
import logging
import struct
import zlib
from dataclasses import dataclass, replace
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # else it warns that this namespace has no route
SWITCH_MAC = "02:00:00:00:00:01"


def host_mac(port: int) -> str:
    return f"08:00:00:00:{port:02x}:01"


def ipv4(port: int, host: int = 1) -> str:
    """Address of a host behind a switch port."""
    return f"10.0.{port}.{host}"


def ipv6(port: int, host: int = 1) -> str:
    return f"fd00:0:0:{port:x}::{host:x}"


@dataclass(frozen=True)
class FiveTuple:
    """A flow, by the addresses of the hosts behind two ports, and its outer VLAN."""

    src: str
    dst: str
    src_port: int = 40000
    dst_port: int = 5001
    protocol: int = 6
    vid: int = 0

    def with_changes(self, **changes: Any) -> FiveTuple:
        return replace(self, **changes)

    def reverse(self) -> FiveTuple:
        return FiveTuple(self.dst, self.src, self.dst_port, self.src_port, self.protocol, self.vid)

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.src

    def address_words(self) -> list[int]:
        """Source and destination in pieces of 32 bits."""
        addresses = ipaddress.ip_address(self.src).packed + ipaddress.ip_address(self.dst).packed
        return list(struct.unpack(f"!{len(addresses) // 4}I", addresses))

    def hash(self) -> int:
        """CRC-32 as the programs compute it: source, destination, protocol, source port, destination port."""
        addresses = ipaddress.ip_address(self.src).packed + ipaddress.ip_address(self.dst).packed
        return zlib.crc32(addresses + struct.pack("!BHH", self.protocol, self.src_port, self.dst_port))


def flow(number: int = 0, to_port: int = 3, from_port: int = 1) -> FiveTuple:
    """TCP flow `number` from the host behind one port to the host behind another."""
    return FiveTuple(ipv4(from_port), ipv4(to_port), 40000 + number)


def flow6(number: int = 0, to_port: int = 3, from_port: int = 1) -> FiveTuple:
    return FiveTuple(ipv6(from_port), ipv6(to_port), 40000 + number)


def frame(
    five_tuple: FiveTuple,
    length: int = 100,
    *,
    dscp: int = 0,
    ttl: int = 64,
    vlan: int | None = None,
    pcp: int = 0,
    dei: int = 0,
    seq: int = 1,
    ack: int = 0,
    flags: str = "A",
    ip_options: bytes = b"",
    fill: int = 0,
    ecn: int = 0,
) -> Any:
    """A frame of `length` bytes as a host sends it; TCP, UDP or (any other protocol) plain IP.

    `fill` is the value of the payload's bytes: it tells frames of one flow apart.
    """
    packet: Any = Ether(src=host_mac(1), dst=SWITCH_MAC)
    if vlan is not None:
        packet /= Dot1Q(vlan=vlan, prio=pcp, dei=dei)
    if five_tuple.is_ipv6:
        packet /= IPv6(src=five_tuple.src, dst=five_tuple.dst, hlim=ttl, tc=dscp << 2 | ecn, nh=five_tuple.protocol)
    else:
        ihl = 5 + len(ip_options) // 4
        packet /= IP(
            src=five_tuple.src, dst=five_tuple.dst, ttl=ttl, tos=dscp << 2 | ecn, proto=five_tuple.protocol, ihl=ihl
        )
        if ip_options:
            packet[IP].options = [Raw(ip_options)]
    if five_tuple.protocol == 6:
        packet /= TCP(sport=five_tuple.src_port, dport=five_tuple.dst_port, seq=seq, ack=ack, flags=flags)
    elif five_tuple.protocol == 17:
        packet /= UDP(sport=five_tuple.src_port, dport=five_tuple.dst_port)
    missing = length - len(packet)
    if missing < 0:
        raise ValueError(f"the headers alone have {len(packet)} bytes, more than {length}")
    if missing:
        packet /= Raw(bytes([fill]) * missing)
    return built(packet)


def data(five_tuple: FiveTuple, seq: int, payload: int, ack: int = 1) -> Any:
    """A TCP segment with `payload` bytes of data."""
    headers = 74 if five_tuple.is_ipv6 else 54
    return frame(five_tuple, headers + payload, seq=seq, ack=ack, flags="PA" if payload else "A")


def built(packet: Any) -> Any:
    """The packet with lengths and checksums filled in, parsed again."""
    return Ether(bytes(packet))


def changed(packet: Any, layer: str, keep_checksum: bool = False, **fields: int) -> Any:
    """The packet with some header fields changed; the IPv4 checksum fits unless it is kept."""
    out = packet.copy()
    for name, value in fields.items():
        setattr(out[layer], name, value)
    if "IP" in out and not keep_checksum:
        del out["IP"].chksum
    return bytes(out)


def forwarded(packet: Any, to_port: int) -> Any:
    """What the switch should send for a packet that it routes to a port."""
    out = packet.copy()
    out[Ether].src = packet[Ether].dst
    out[Ether].dst = host_mac(to_port)
    if IPv6 in out:
        out[IPv6].hlim -= 1
    else:
        out[IP].ttl -= 1
        del out[IP].chksum
    return built(out)


def arp_request(from_port: int, to_port: int) -> Any:
    return built(
        Ether(src=host_mac(from_port), dst="ff:ff:ff:ff:ff:ff") / ARP(psrc=ipv4(from_port), pdst=ipv4(to_port))
    )
