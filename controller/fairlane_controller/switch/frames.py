# SPDX-License-Identifier: Apache-2.0
"""Frames for `fairlane trace`: made of a short text, or taken from a pcap file."""

from __future__ import annotations

import ipaddress
import re
import struct
from pathlib import Path

from fairlane_controller.errors import FairlaneError, bad_file, bad_input, find_by_name, out_of_range

EXAMPLE = "tcp:10.0.1.1:4000>10.0.2.2:5001,len=1000"
FRAME_BYTES_MAX = 9216
PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1}
_HEADER_BYTES = {"tcp": 20, "udp": 8, "icmp": 8}
_DEFAULTS = {"ttl": 64, "dscp": 0, "ecn": 0, "flags": 0x10, "seq": 1, "ack": 1}
OPTION_MAX = {"len": FRAME_BYTES_MAX - 18, "ttl": 255, "dscp": 63, "ecn": 3, "flags": 255, "seq": 2**32 - 1, "ack": 2**32 - 1, "vlan": 4095}  # fmt: skip
"""The numbers of a packet's headers, with their highest values. `len` is the length of the IP packet in bytes."""
_END = r"(?P<{0}>\[[0-9A-Fa-f:.]+\]|[0-9.]+)(:(?P<{0}_port>\d+))?"
_PACKET = re.compile(rf"^(?P<protocol>[a-z]+):{_END.format('src')}>{_END.format('dst')}(?P<options>(,[^,]*)*)$")
_MACS = bytes.fromhex("080000000100 080000000111")
_PCAP_ORDERS = {"d4c3b2a1": "<", "4d3cb2a1": "<", "a1b2c3d4": ">", "a1b23c4d": ">"}
"""Byte orders by the file's first four bytes (draft-ietf-opsawg-pcap)."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _bad(text: str, why: str) -> FairlaneError:
    return bad_input(f"--packet {text!r}: {why}; e.g. {EXAMPLE}")


def packet(text: str) -> bytes:
    """An Ethernet frame with right checksums for `PROTOCOL:SRC[:PORT]>DST[:PORT][,OPTION=VALUE]…`.

    Args:
        text: PROTOCOL is tcp, udp or icmp (an echo request); an IPv6 address stands in brackets; options are those of `OPTION_MAX`.

    Raises:
        FairlaneError: BAD_INPUT, OUT_OF_RANGE, UNKNOWN_NAME.
    """
    found = _PACKET.match(text.replace(" ", ""))
    if not found:
        raise _bad(text, "must be PROTOCOL:SRC:PORT>DST:PORT[,OPTION=VALUE…]")
    find_by_name("protocol", found["protocol"], PROTOCOLS)
    try:
        src, dst = (ipaddress.ip_address(found[end].strip("[]")) for end in ("src", "dst"))
    except ValueError as ex:
        raise _bad(text, str(ex)) from None
    if src.version != dst.version:
        raise _bad(text, "one address is IPv4, the other one IPv6")
    options = dict(_DEFAULTS)
    for option in filter(None, found["options"].split(",")):
        key, _, value = option.partition("=")
        options[key] = _number(text, key, value, find_by_name("option of --packet", key, OPTION_MAX))
    ports = [_number(text, f"{end} port", found[f"{end}_port"] or "0", 65_535) for end in ("src", "dst")]
    return _build(found["protocol"], src, dst, ports, options)


def _number(text: str, what: str, value: str, high: int) -> int:
    if not value.isdecimal():
        raise _bad(text, f"{what} {value!r} is no number")
    if int(value) > high:
        raise out_of_range(f"--packet: {what}", value, 0, high)
    return int(value)


def _build(name: str, src: _Address, dst: _Address, ports: list[int], options: dict[str, int]) -> bytes:
    is_ipv4 = src.version == 4
    least = (20 if is_ipv4 else 40) + _HEADER_BYTES[name]
    length = options.get("len", least)
    if length < least:
        raise out_of_range("--packet: len", length, least, OPTION_MAX["len"], "bytes")
    payload = bytes(length - least)
    size = _HEADER_BYTES[name] + len(payload)
    protocol = 58 if name == "icmp" and not is_ipv4 else PROTOCOLS[name]
    if name == "tcp":
        header = struct.pack("!HHIIBBHHH", *ports, options["seq"], options["ack"], 0x50, options["flags"], 65_535, 0, 0)
    elif name == "udp":
        header = struct.pack("!HHHH", *ports, size, 0)
    else:
        header = struct.pack("!BBHHH", 8 if is_ipv4 else 128, 0, 0, *ports)
    pseudo = src.packed + dst.packed + struct.pack("!II", size, protocol) if protocol != 1 else b""
    total = _checksum(pseudo + header + payload) or (0xFFFF if name == "udp" else 0)
    header = _with_checksum(header, {"tcp": 16, "udp": 6, "icmp": 2}[name], total)
    tos = options["dscp"] << 2 | options["ecn"]
    if is_ipv4:
        ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + size, 0, 0x4000, options["ttl"], protocol, 0) + src.packed + dst.packed  # fmt: skip
        ip = _with_checksum(ip, 10, _checksum(ip))
    else:
        ip = struct.pack("!IHBB", 6 << 28 | tos << 20, size, protocol, options["ttl"]) + src.packed + dst.packed
    tag = struct.pack("!HH", 0x8100, options["vlan"]) if "vlan" in options else b""
    return _MACS + tag + struct.pack("!H", 0x0800 if is_ipv4 else 0x86DD) + ip + header + payload


def _with_checksum(header: bytes, at: int, checksum: int) -> bytes:
    return header[:at] + struct.pack("!H", checksum) + header[at + 2 :]


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def from_pcap(text: str) -> bytes:
    """Frame number N (from 1, the first by default) of `FILE[#N]`, a pcap file of Ethernet frames. Raises BAD_FILE, OUT_OF_RANGE."""
    name, mark, number = text.rpartition("#")
    path, wanted = (Path(name), number) if mark else (Path(text), "1")
    try:
        data = path.read_bytes()
    except OSError as ex:
        raise bad_file(f"--pcap {path}: cannot be read: {ex.strerror}") from None
    order = _PCAP_ORDERS.get(data[:4].hex())
    if order is None or len(data) < 24 or struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF != 1:
        why = "must be a pcap file of Ethernet frames; of pcapng make one with `editcap -F pcap IN OUT`"
        raise bad_file(f"--pcap {path}: {why}")
    frames, at = list[bytes](), 24
    while at + 16 <= len(data):
        captured, original = struct.unpack_from(f"{order}II", data, at + 8)
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
        if str(len(frames)) == wanted:
            if len(frames[-1]) < original or not original:
                why = f"frame {wanted} has {len(frames[-1])} of its {original} bytes: capture whole frames"
                raise bad_file(f"--pcap {path}: {why}")
            return frames[-1]
    raise out_of_range(f"--pcap {path}: frame", wanted, 1, len(frames))
