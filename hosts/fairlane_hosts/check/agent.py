# SPDX-License-Identifier: Apache-2.0
"""The process of one host of the self-test: sockets on request, one JSON object a line, until its standard input ends."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairlane_hosts import apply, tcpinfo
from fairlane_hosts.errors import HostsError

MSS_BYTES = 1000
CONNECT_TIMEOUT_S = 5.0
_PIECE = 65_536


def _discard(connection: socket.socket) -> None:
    with contextlib.suppress(OSError), connection:
        while True:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            if not connection.recv(_PIECE):
                return


def _accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_discard, args=(connection,), daemon=True).start()


def _counters() -> dict[str, int]:
    """The namespace's TcpExt counters."""
    lines = [line.split() for line in Path("/proc/self/net/netstat").read_text().splitlines() if "TcpExt" in line]
    return {name: int(value) for name, value in zip(lines[0][1:], lines[1][1:], strict=True)}


class Agent:
    """At most one connection at a time as a sender; any number as a receiver."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None

    def listen(self) -> dict[str, Any]:
        """On a port of its own; its connections run the programs that its host has now."""
        listener = socket.create_server(("", 0))
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        return {"port": listener.getsockname()[1]}

    def connect(self, to: str, port: int, cc: str | None) -> dict[str, Any]:
        self.close()
        connection = socket.socket()
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, MSS_BYTES)
        if cc is not None:
            apply.use_on_socket(connection, cc)
        connection.connect((to, port))
        connection.settimeout(None)
        self._connection = connection
        return {"cc": apply.congestion_control_of(connection)}

    def send(self, bytes: int) -> dict[str, Any]:
        connection = self._connection
        assert connection is not None

        def run() -> None:
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * bytes)

        threading.Thread(target=run, daemon=True).start()
        return {}

    def info(self) -> dict[str, Any]:
        assert self._connection is not None
        return {**asdict(tcpinfo.read(self._connection)), "netstat": _counters()}

    def close(self) -> dict[str, Any]:
        """With a reset: what was not sent yet is not sent."""
        if self._connection is not None:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.close()
            self._connection = None
        return {}


def main() -> int:
    agent = Agent()
    actions = {"listen": agent.listen, "connect": agent.connect, "send": agent.send, "info": agent.info}
    actions["close"] = agent.close
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        try:
            answer = actions[request.pop("op")](**request)
        except (HostsError, OSError) as error:
            answer = {"error": error.message if isinstance(error, HostsError) else str(error)}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
