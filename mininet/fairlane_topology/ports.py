# SPDX-License-Identifier: Apache-2.0
"""The TCP port on which a switch serves P4Runtime: the habitual one, or one below the kernel's ephemeral range when a client holds it.

50050 + i (p4lang/tutorials) lies in the range from which Linux takes the local ports of outgoing connections (EPHEMERAL_START to 60999).
So a connection of any program, and for 60 s its TIME_WAIT, may hold it. That is not worth a failed start: the switch then
listens FALLBACK_BELOW lower, where no outgoing connection is put, and the state file says so. A port on which somebody
listens is another switch, most likely, and refused.
"""

from __future__ import annotations

import socket
from pathlib import Path

BASE_GRPC_PORT = 50050
"""Switch *i* of instance 0 is at this port plus *i*."""
PORTS_PER_INSTANCE = 20
FALLBACK_BELOW = 20_000
"""50051 becomes 30051."""
EPHEMERAL_START = 32_768
"""Of Linux, unless somebody has set net.ipv4.ip_local_port_range."""
HOST_PORTS = range(20_000, 65_536)
"""Of a host's own connections, in the simulator (crate apps, ports) and in Mininet."""
INSTANCE_MAX = (EPHEMERAL_START + FALLBACK_BELOW - BASE_GRPC_PORT) // PORTS_PER_INSTANCE - 1
"""The last instance whose lower ports are all below the ephemeral range."""
_LISTENS = {"tcp": "0A", "udp": "07"}
"""State of a socket that waits for anybody, in /proc/net/<protocol>: TCP_LISTEN, and TCP_CLOSE of a UDP socket without a peer (tcp_states.h)."""


def choose(grpc: str) -> str:
    """The address to serve on where `grpc` (`127.0.0.1:50051`) is wanted. Raises RuntimeError when another process listens there."""
    host, _, text = grpc.rpartition(":")
    port = int(text)
    if can_bind(host, port):
        return grpc
    if listens(port):
        raise RuntimeError(f"another process serves {grpc} already")
    other = port - FALLBACK_BELOW
    if other > 0 and can_bind(host, other):
        return f"{host}:{other}"
    raise RuntimeError(f"an outgoing connection holds {grpc}, and port {other} is taken too")


def can_bind(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def listens(port: int, folder: Path = Path("/proc/self/net"), protocol: str = "tcp") -> bool:
    """Whether a socket of a network namespace (this one, or that of `/proc/<pid>/net`) listens on a local port, on whatever address."""
    for name in (protocol, f"{protocol}6"):
        path = folder / name
        rows = path.read_text().splitlines()[1:] if path.exists() else []
        for fields in (row.split() for row in rows):
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == _LISTENS[protocol]:
                return True
    return False
