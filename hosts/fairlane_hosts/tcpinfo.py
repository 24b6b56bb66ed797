# SPDX-License-Identifier: Apache-2.0
"""struct tcp_info (linux/tcp.h) of any kernel length, as a dataclass."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from .errors import HostsError

CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
_LAYOUT = {  # names of struct tcp_info by kind and order; everything lies on its own boundary
    "8B": "state ca_state retransmits probes backoff options wscale flags",
    "24I": "rto_us ato_us snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent_ms last_ack_sent_ms last_data_recv_ms "
    "last_ack_recv_ms pmtu rcv_ssthresh rtt_us rttvar_us snd_ssthresh snd_cwnd advmss reordering rcv_rtt_us rcv_space total_retrans",
    "4Q": "pacing_rate max_pacing_rate bytes_acked bytes_received",
    "6I": "segs_out segs_in notsent_bytes min_rtt_us data_segs_in data_segs_out",
    "4Q ": "delivery_rate busy_time_us rwnd_limited_us sndbuf_limited_us",
    "2I": "delivered delivered_ce",
    "2Q": "bytes_sent bytes_retrans",
    "4I": "dsack_dups reord_seen rcv_ooopack snd_wnd",
    "2I ": "rcv_wnd rehash",  # 6.2
    "2H": "total_rto total_rto_recoveries",  # 6.7
}
_STRUCT = struct.Struct("=" + "".join(_LAYOUT))
_ALL_NAMES = " ".join(_LAYOUT.values()).split()
_REQUIRED_BYTES = 232
"""5.15 has all of these."""
_LATER = {"rcv_wnd": 236, "total_rto": 242}
"""Ends of fields that newer kernels have."""
_LARGEST = 512


@dataclass(frozen=True)
class TcpInfo:
    """The fields that fairlane uses. Windows in packets; times in the unit that the name says; None: the kernel has it not."""

    state: int
    ca_state: int
    rto_us: int
    snd_mss: int
    unacked: int
    lost: int
    retrans: int
    rtt_us: int
    rttvar_us: int
    snd_ssthresh: int
    snd_cwnd: int
    reordering: int
    total_retrans: int
    bytes_acked: int
    bytes_received: int
    segs_out: int
    notsent_bytes: int
    min_rtt_us: int
    data_segs_in: int
    data_segs_out: int
    delivered: int
    rwnd_limited_us: int
    bytes_retrans: int
    rcv_mss: int
    snd_wnd: int
    rcv_wnd: int | None
    total_rto: int | None

    @property
    def ca_state_name(self) -> str:
        return CA_STATES[self.ca_state] if self.ca_state < len(CA_STATES) else str(self.ca_state)


_NAMES = frozenset(field.name for field in dataclass_fields(TcpInfo))


def parse(data: bytes) -> TcpInfo:
    """Parse what getsockopt(TCP_INFO) gave. Raises HostsError `kernel-unsupported` when a needed field is missing."""
    if len(data) < _REQUIRED_BYTES:
        text = f"TCP_INFO of this kernel has {len(data)} bytes, not {_REQUIRED_BYTES}; want 5.15 or newer"
        raise HostsError("kernel-unsupported", text)
    values = _STRUCT.unpack(data[: _STRUCT.size].ljust(_STRUCT.size, b"\0"))
    found: dict[str, Any] = {name: value for name, value in zip(_ALL_NAMES, values, strict=True) if name in _NAMES}
    found.update({name: None for name, end in _LATER.items() if len(data) < end})
    return TcpInfo(**found)


def read(connection: socket.socket) -> TcpInfo:
    """TCP_INFO of a socket."""
    return parse(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LARGEST))
