# SPDX-License-Identifier: Apache-2.0
"""Frames for `fairlane trace`: made of a short text, of hexadecimal digits, or taken from a pcap file."""

from __future__ import annotations

import ipaddress
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range, unknown_name

EXAMPLE = "tcp:10.0.1.1:4000>10.0.2.2:5001,len=1000"
_PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1}
_OPTIONS = ("len", "ttl", "dscp", "ecn", "flags", "seq", "ack", "vlan", "smac", "dmac")
_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32, "E": 64, "C": 128}
_END = r"(?P<{0}>\[[0-9A-Fa-f:.]+\]|[0-9.]+)(:(?P<{0}_port>\d+))?"
_PACKET = re.compile(rf"^(?P<protocol>[a-z]+):{_END.format('src')}>{_END.format('dst')}(?P<options>(,[^,]*)*)$")
FRAME_BYTES_MAX = 9216

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _bad(text: str, why: str) -> FairlaneError:
    return FairlaneError(ErrorCode.BAD_INPUT, f"--packet {text!r}: {why}; e.g. {EXAMPLE}")


@dataclass(frozen=True)
class _Fields:
    """Numbers of the headers; lengths in bytes, `length` is that of the IP packet."""

    length: int | None = None
    ttl: int = 64
    dscp: int = 0
    ecn: int = 0
    flags: int = _FLAGS["A"]
    seq: int = 1
    ack: int = 1
    vlan: int | None = None
    smac: bytes = bytes.fromhex("080000000111")
    dmac: bytes = bytes.fromhex("080000000100")


def packet(text: str) -> bytes:
    """An Ethernet frame with right checksums for `PROTOCOL:SRC[:PORT]>DST[:PORT][,OPTION=VALUE]…`.

    PROTOCOL is tcp, udp or icmp (an echo request); an IPv6 address stands in brackets; `len` is the length of the IP
    packet. Raises BAD_INPUT, OUT_OF_RANGE, UNKNOWN_NAME.
    """
    found = _PACKET.match(text.replace(" ", ""))
    if not found:
        raise _bad(text, "must be PROTOCOL:SRC:PORT>DST:PORT[,OPTION=VALUE…]")
    name = found["protocol"]
    if name not in _PROTOCOLS:
        raise unknown_name("protocol", name, _PROTOCOLS)
    src, dst = (_address(text, found[end]) for end in ("src", "dst"))
    if src.version != dst.version:
        raise _bad(text, "one address is IPv4, the other one IPv6")
    ports = tuple(_number(text, f"{end} port", found[f"{end}_port"] or "0", 0, 65_535) for end in ("src", "dst"))
    return _build(name, src, dst, (ports[0], ports[1]), _fields(text, found["options"]))


def _address(text: str, value: str) -> _Address:
    try:
        return ipaddress.ip_address(value.strip("[]"))
    except ValueError:
        raise _bad(text, f"{value} is no IP address") from None


def _number(text: str, what: str, value: str, low: int, high: int) -> int:
    if not value.isdecimal():
        raise _bad(text, f"{what} {value!r} is no number")
    if not low <= int(value) <= high:
        raise out_of_range(f"--packet: {what}", value, low, high)
    return int(value)


def _fields(text: str, options: str) -> _Fields:
    given: dict[str, str] = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        if key not in _OPTIONS:
            raise unknown_name("option of --packet", key, _OPTIONS)
        if not equals or key in given:
            raise _bad(text, f"{key} stands twice" if key in given else f"{key} needs a value")
        given[key] = value

    def number(key: str, default: int, high: int) -> int:
        return _number(text, key, given[key], 0, high) if key in given else default

    def mac(key: str, default: bytes) -> bytes:
        if key not in given:
            return default
        digits = given[key].replace(":", "")
        if not re.fullmatch(r"[0-9A-Fa-f]{12}", digits):
            raise _bad(text, f"{key} {given[key]!r} is no MAC address")
        return bytes.fromhex(digits)

    flags = 0
    for letter in given.get("flags", "A").upper():
        if letter not in _FLAGS:
            raise unknown_name("TCP flag", letter, _FLAGS)
        flags |= _FLAGS[letter]
    return _Fields(
        length=_number(text, "len", given["len"], 20, FRAME_BYTES_MAX - 18) if "len" in given else None,
        ttl=number("ttl", 64, 255),
        dscp=number("dscp", 0, 63),
        ecn=number("ecn", 0, 3),
        flags=flags,
        seq=number("seq", 1, 2**32 - 1),
        ack=number("ack", 1, 2**32 - 1),
        vlan=number("vlan", 0, 4095) if "vlan" in given else None,
        smac=mac("smac", _Fields.smac),
        dmac=mac("dmac", _Fields.dmac),
    )


def _build(name: str, src: _Address, dst: _Address, ports: tuple[int, int], f: _Fields) -> bytes:
    ip_bytes = 20 if src.version == 4 else 40
    header_bytes = 20 if name == "tcp" else 8
    least = ip_bytes + header_bytes
    if f.length is not None and f.length < least:
        raise out_of_range("--packet: len", f.length, least, FRAME_BYTES_MAX - 18, "bytes")
    payload = bytes((f.length or least) - least)
    size = header_bytes + len(payload)
    protocol = 58 if name == "icmp" and src.version == 6 else _PROTOCOLS[name]
    if name == "tcp":
        header = struct.pack("!HHIIBBHHH", *ports, f.seq, f.ack, 0x50, f.flags, 65_535, 0, 0)
        at = 16
    elif name == "udp":
        header, at = struct.pack("!HHHH", *ports, size, 0), 6
    else:
        header, at = struct.pack("!BBHHH", 8 if src.version == 4 else 128, 0, 0, ports[0], ports[1]), 2
    pseudo = b""
    if name != "icmp" or src.version == 6:
        pseudo = src.packed + dst.packed + struct.pack("!II", size, protocol)
    total = _checksum(pseudo + header + payload)
    header = header[:at] + struct.pack("!H", total or (0xFFFF if name == "udp" else 0)) + header[at + 2 :]
    tos = f.dscp << 2 | f.ecn
    if src.version == 4:
        kind = 0x0800
        ip = struct.pack("!BBHHHBBH", 0x45, tos, 20 + size, 0, 0x4000, f.ttl, protocol, 0) + src.packed + dst.packed
        ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    else:
        kind = 0x86DD
        ip = struct.pack("!IHBB", 6 << 28 | tos << 20, size, protocol, f.ttl) + src.packed + dst.packed
    tag = b"" if f.vlan is None else struct.pack("!HH", 0x8100, f.vlan)
    return f.dmac + f.smac + tag + struct.pack("!H", kind) + ip + header + payload


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def from_hex(text: str) -> bytes:
    """The bytes of hexadecimal digits; spaces, colons and line ends between them do not matter. Raises BAD_INPUT."""
    digits = re.sub(r"[\s:]", "", text).removeprefix("0x")
    if not digits or len(digits) % 2 or not re.fullmatch(r"[0-9A-Fa-f]+", digits):
        raise FairlaneError(ErrorCode.BAD_INPUT, "--hex: must be an even number of hexadecimal digits, at least two")
    if len(digits) // 2 > FRAME_BYTES_MAX:
        raise out_of_range("--hex: length", len(digits) // 2, 1, FRAME_BYTES_MAX, "bytes")
    return bytes.fromhex(digits)


def from_pcap(text: str) -> bytes:
    """Frame number N (from 1, the first by default) of `FILE[#N]`, a pcap file of Ethernet frames. Raises BAD_FILE, OUT_OF_RANGE."""
    name, mark, number = text.rpartition("#")
    path = Path(name if mark else text)
    if mark and (not number.isdecimal() or int(number) < 1):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"--pcap {text}: {number!r} is no number of a frame; the first is 1")
    wanted = int(number) if mark else 1
    try:
        data = path.read_bytes()
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"--pcap {path}: cannot be read: {ex.strerror}") from None
    magic = data[:4]
    order = {
        b"\xd4\xc3\xb2\xa1": "<",
        b"\x4d\x3c\xb2\xa1": "<",
        b"\xa1\xb2\xc3\xd4": ">",
        b"\xa1\xb2\x3c\x4d": ">",
    }.get(magic)
    if magic == b"\x0a\x0d\x0d\x0a":
        raise FairlaneError(
            ErrorCode.BAD_FILE, f"--pcap {path}: this is pcapng; make a pcap of it with `editcap -F pcap IN OUT`"
        )
    if order is None or len(data) < 24:
        raise FairlaneError(ErrorCode.BAD_FILE, f"--pcap {path}: no pcap file")
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    if link & 0xFFFF != 1:
        raise FairlaneError(ErrorCode.BAD_FILE, f"--pcap {path}: its frames are not Ethernet's but of link type {link}")
    at, seen = 24, 0
    while at + 16 <= len(data):
        captured, original = struct.unpack_from(f"{order}II", data, at + 8)
        frame = data[at + 16 : at + 16 + captured]
        at += 16 + captured
        seen += 1
        if seen == wanted:
            if len(frame) < captured or captured < original or not frame:
                raise FairlaneError(
                    ErrorCode.BAD_FILE,
                    f"--pcap {path}: frame {wanted} has {len(frame)} of its {original} bytes: capture whole frames",
                )
            return frame
    raise out_of_range(f"--pcap {path}: frame", wanted, 1, seen)
