# SPDX-License-Identifier: Apache-2.0
"""What the self-test reads of struct tcp_info (linux/tcp.h); `fairlane-traffic` reads the rest (switch/crates/flows)."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from .errors import HostsError

_LAYOUT = struct.Struct("=8xI12xI40xI8xI16xI16xQQ")
"""The fields of `TcpInfo`, and the bytes between them."""
_REQUIRED_BYTES = 232
"""What 5.15 has, the oldest kernel whose senders are supported."""


class TcpInfo(NamedTuple):
    """Some of the fields. Windows in packets; times in the unit that the name says."""

    rto_us: int
    unacked: int
    rtt_us: int
    snd_cwnd: int
    total_retrans: int
    bytes_acked: int
    bytes_received: int


def parse(data: bytes) -> TcpInfo:
    """Parse what getsockopt(TCP_INFO) gave. Raises HostsError `kernel-unsupported` when it is shorter than Linux 5.15's."""
    if len(data) < _REQUIRED_BYTES:
        text = f"TCP_INFO of this kernel has {len(data)} bytes, not {_REQUIRED_BYTES}; want 5.15 or newer"
        raise HostsError("kernel-unsupported", text)
    return TcpInfo(*_LAYOUT.unpack_from(data))


def read(connection: socket.socket) -> TcpInfo:
    """TCP_INFO of a socket."""
    return parse(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))
