# SPDX-License-Identifier: Apache-2.0
"""Programs of the user's (`command` applications) on Mininet's hosts: started at their instants; what their connections have sent is read
from sock_diag(7), as the guest of the kernel runtime does.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from fairlane_hosts.apply import run_in_namespace
from fairlane_hosts.tcpinfo import TcpInfo, parse

from fairlane_lab.measures import Samples
from fairlane_lab.scenario import Flow, Place, program_failure

SOCK_DIAG_BY_FAMILY, INET_DIAG_INFO, DUMP, DONE = 20, 2, 0x301, 3
_MESSAGE, _SOCKET, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=4xHH16s16s4xQ20x"), struct.Struct("=HH")
"""nlmsghdr; of inet_diag_msg the ports, the addresses, the cookie; rtattr."""
END_S = 5.0


class Program(threading.Thread):
    """What one flow runs: the receiver's program from before the run on, the sender's from the flow's start to its end."""

    def __init__(
        self,
        name: str,
        flow: Flow,
        place: Place,
        words: Mapping[str, list[str]],
        start: Callable[[str, str, list[str]], subprocess.Popen[bytes]],
    ) -> None:
        """`words` are the programs by role (`scenario.command_words`); `start` starts one, of a name and a host."""
        super().__init__(daemon=True)
        self.name, self.flow, self.place = name, flow, place
        self._words, self._start_program = words, start
        self._processes: list[subprocess.Popen[bytes]] = []
        self._over = threading.Event()
        self._acked: dict[int, int] = {}
        self._window = 0.0, 0.0
        self.points: list[tuple[float, float]] = []
        """(CLOCK_MONOTONIC s, bytes acknowledged on all connections so far)."""
        self.ran_s: tuple[float, float] | None = None
        """When the sender's program started and ended by itself, well; CLOCK_MONOTONIC s."""
        self.code: int | None = None

    def listen(self) -> None:
        """Start the receiver's program."""
        if self._words["receiver"]:
            self._run("receiver", self.flow.receiver)

    def send(self, namespace: Path, start_s: float, end_s: float, sample_s: float) -> None:
        """The sender's program from `start_s` to `end_s` (CLOCK_MONOTONIC), read every `sample_s` in its host's namespace."""
        self._window, self._sample_s = (start_s, end_s), sample_s
        self._diag = run_in_namespace(
            namespace,
            lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4),  # NETLINK_SOCK_DIAG
        )
        self.start()

    def run(self) -> None:
        """The thread."""
        with self._diag:
            self._follow()

    def _follow(self) -> None:
        start_s, end_s = self._window
        if self._over.wait(max(0.0, start_s - time.monotonic())):
            return
        process = self._run("sender", self.flow.sender)
        started_s = time.monotonic()
        while not self._over.is_set() and time.monotonic() < end_s:
            with suppress(subprocess.TimeoutExpired):
                self.code = process.wait(min(self._sample_s, max(0.0, end_s - time.monotonic())))
                self.ran_s = (started_s, time.monotonic()) if self.code == 0 else None
            self._sample()
            if self.code is not None:
                return

    def failure(self, folder: Path) -> str | None:
        """Why the run is spoilt, if one of its programs has failed by now; what they have said is in `folder`."""
        codes = [process.poll() for process in self._processes]
        said = [file.read_text(errors="replace").strip() for file in sorted(folder.glob(f"{self.name}-*.log"))]
        found = (code if code > 0 else 256 - code for code in codes if code)
        return next((program_failure(self.name, code, " ".join(filter(None, said))) for code in found), None)

    def end(self) -> None:
        """End its programs and what they have started."""
        self._over.set()
        if self.is_alive():
            self.join(END_S)
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def received(self, zero_s: float) -> Samples:
        """Bytes acknowledged so far, over the run's time."""
        return Samples.of([(t_s - zero_s, count) for t_s, count in self.points])

    def _run(self, role: str, host: str) -> subprocess.Popen[bytes]:
        process = self._start_program(f"{self.name}-{role}", host, self._words[role])
        self._processes.append(process)
        return process

    def _sample(self) -> None:
        now_s = time.monotonic()
        self._acked |= dict(self._connections())
        self.points.append((now_s, float(sum(self._acked.values()))))

    def _connections(self) -> Iterator[tuple[int, int]]:
        """(cookie, bytes acknowledged) of each connection from this host to the flow's port."""
        # inet_diag_req_v2: family, protocol, attributes wanted, all states, any socket
        body = struct.pack("=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0xFFFFFFFF)
        self._diag.send(_MESSAGE.pack(_MESSAGE.size + len(body), SOCK_DIAG_BY_FAMILY, DUMP, 0, 0) + body)
        wanted = self.place.port, socket.inet_aton(self.place.receiver)
        while True:
            answer = self._diag.recv(1 << 17)
            for kind, message in _parts(answer, _MESSAGE, 0):
                if kind == DONE:
                    return
                _, remote_port, _, remote, cookie = _SOCKET.unpack_from(message)
                if (socket.ntohs(remote_port), remote[:4]) != wanted:
                    continue
                for what, value in _parts(message, _ATTRIBUTE, _SOCKET.size):
                    if what == INET_DIAG_INFO:
                        info: TcpInfo = parse(value)
                        yield cookie, info.bytes_acked


def _parts(data: bytes, head: struct.Struct, at: int) -> Iterator[tuple[int, bytes]]:
    """(kind, body) of netlink's messages or attributes in `data` from `at` on."""
    while at + head.size <= len(data):
        length, kind = head.unpack_from(data, at)[:2]
        yield kind, data[at + head.size : at + length]
        at += max(4, length + 3 & ~3)
