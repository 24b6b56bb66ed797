# SPDX-License-Identifier: Apache-2.0
"""What the P4 programs of this tree share (`p4src/include/sizes.p4`): ports, routes, the counters of what was sent and dropped, and why.

A program of others may have none of it: who reads a counter asks first whether it is there.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

PORTS = 512
QUEUES_MAX = 4096
"""Of a port of the embedded switch."""
CPU_PORT = 510
"""Frames from and to the controller; ports of the network are below."""
UNLIMITED = 0xFFFF_FFFF

ETHERNET_HEADER_BYTES = 14
VLAN_TAG_BYTES = 4
DEFAULT_MTU = 1500
"""Ethernet's, of a link whose own is not known."""
AAL5_TRAILER_BYTES = 8
CELL_PAYLOAD_BYTES = 48
CELL_LINE_BYTES = 53

TABLE_ROUTE = {4: "ipv4_lpm", 6: "ipv6_lpm"}
ACTION_FORWARD = "forward"
COUNTER_PASSED = "passed"
COUNTER_ADMITTED = "admitted"
COUNTER_DROPS = "drops"

SwitchName = Annotated[str, Field(min_length=1)]
PortNumber = Annotated[int, Field(ge=1, lt=CPU_PORT)]

PACKET_REASONS: dict[int, tuple[str, str]] = {
    1: ("short", "the frame ends inside a header"),
    2: ("bad_version", "EtherType and IP version disagree"),
    3: ("bad_ihl", "IPv4 header length below 20 bytes"),
    4: ("bad_length", "the IP or TCP length does not fit header or frame"),
    5: ("bad_checksum", "IPv4 header checksum wrong"),
    6: ("ttl", "TTL or hop limit used up"),
    7: ("non_ip", "not IP, and no entry in table l2"),
    8: ("no_route", "no route to the destination"),
    9: ("route_drop", "a table entry says drop"),
    10: ("parser", "the parser rejected it"),
}
"""Low 4 bits of an index of `drops` for faults of the packet: name and meaning. Decisions about a queue are each program's own."""


def drops_index(port: int, reason: int) -> int:
    """Index of the counter `drops`: port ++ reason (9 + 4 bits)."""
    return port << 4 | reason


def longest_frame_bytes(mtu: int | None) -> int:
    """Bytes of the longest frame of a link with this MTU; 0 or None: it is not known."""
    return (mtu or DEFAULT_MTU) + ETHERNET_HEADER_BYTES
