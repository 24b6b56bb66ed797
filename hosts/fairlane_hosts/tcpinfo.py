# SPDX-License-Identifier: Apache-2.0
"""struct tcp_info (linux/tcp.h) of any kernel length, as a dataclass."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields

from .errors import HostsError

CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
_U8 = ("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "flags")
_FIELDS: tuple[tuple[str, str], ...] = (
    *((name, "B") for name in _U8),
    *(
        (name, "I")
        for name in ("rto_us", "ato_us", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets")
    ),
    *((name, "I") for name in ("last_data_sent_ms", "last_ack_sent_ms", "last_data_recv_ms", "last_ack_recv_ms")),
    *((name, "I") for name in ("pmtu", "rcv_ssthresh", "rtt_us", "rttvar_us", "snd_ssthresh", "snd_cwnd", "advmss")),
    *((name, "I") for name in ("reordering", "rcv_rtt_us", "rcv_space", "total_retrans")),
    *((name, "Q") for name in ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")),
    *((name, "I") for name in ("segs_out", "segs_in", "notsent_bytes", "min_rtt_us", "data_segs_in", "data_segs_out")),
    *((name, "Q") for name in ("delivery_rate", "busy_time_us", "rwnd_limited_us", "sndbuf_limited_us")),
    *((name, "I") for name in ("delivered", "delivered_ce")),
    *((name, "Q") for name in ("bytes_sent", "bytes_retrans")),
    *((name, "I") for name in ("dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd")),
    *((name, "I") for name in ("rcv_wnd", "rehash")),  # 6.2
    *((name, "H") for name in ("total_rto", "total_rto_recoveries")),  # 6.7
)
_LARGEST = 512
_LAST_REQUIRED_FIELD = "snd_wnd"  # 5.15 has all of these


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
    offset, required, values = 0, True, dict[str, int | None]()
    for name, kind in _FIELDS:
        size = struct.calcsize("=" + kind)
        offset = (offset + size - 1) // size * size
        if offset + size <= len(data):
            if name in _NAMES:
                values[name] = int(struct.unpack_from("=" + kind, data, offset)[0])
        elif required:
            raise HostsError(
                "kernel-unsupported",
                f"TCP_INFO of this kernel ends at byte {len(data)}, before tcpi_{name}; want 5.15 or newer",
            )
        elif name in _NAMES:
            values[name] = None
        offset += size
        required = required and name != _LAST_REQUIRED_FIELD
    return TcpInfo(**values)  # pyright: ignore[reportArgumentType]


def read(connection: socket.socket) -> TcpInfo:
    """TCP_INFO of a socket."""
    return parse(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LARGEST))
