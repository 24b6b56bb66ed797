# SPDX-License-Identifier: Apache-2.0
"""What is between the two hosts of a packet bed: a forwarder, and the self-test's, which passes, holds, drops or damages by a rule."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import HostsError

_SOL_PACKET, _PACKET_IGNORE_OUTGOING, _SO_RCVBUFFORCE = 263, 23, 33
_RECEIVE_BUFFER_BYTES = 16 << 20
_ETH_P_ALL, ETHERNET_BYTES, _IPV4, _TCP, _SYN = 3, 14, 0x0800, 6, 0x02
_FRAME_BYTES, _BATCH = 65_536, 64
_STOP_S = 0.1
_ENA_OPTION = bytes((253, 8, 0xEB, 0x0A))
T = TypeVar("T")


def open_packet_socket(interface: str) -> socket.socket:
    """Everything that comes in at an interface of the caller's namespace; what we send is not seen."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
    opened.bind((interface, _ETH_P_ALL))
    opened.setblocking(False)
    return opened


def find_tcp(frame: bytes) -> tuple[int, int] | None:
    """Where TCP begins in a frame, and where the packet ends; None: it is no TCP over IPv4."""
    if len(frame) < ETHERNET_BYTES + 40 or int.from_bytes(frame[12:14], "big") != _IPV4 or frame[23] != _TCP:
        return None
    return ETHERNET_BYTES + (frame[14] & 0x0F) * 4, ETHERNET_BYTES + int.from_bytes(frame[16:18], "big")


class Forwarder:
    """Runs in a thread between two packet sockets until `close`; `_take` gets what comes in. A subclass starts it when it is made."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self._sides = {False: sender, True: receiver}
        self._changed = threading.Condition()
        """The lock that the thread has while it works."""
        self._failure: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="packet bed", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping = True
        self._thread.join(timeout=5)
        for opened in self._sides.values():
            opened.close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                with self._changed:
                    wait_s = self._deliver()
                select.select(list(self._sides.values()), [], [], min(_STOP_S, wait_s))
                with self._changed:
                    self._receive()
        except BaseException as error:
            self._failure = error

    def _receive(self) -> None:
        for side, source in self._sides.items():
            with contextlib.suppress(OSError):  # nothing more, or the end is being taken down
                for _ in range(_BATCH):
                    self._take(not side, source.recv(_FRAME_BYTES))

    def _send(self, to_receiver: bool, frame: bytes) -> None:
        with contextlib.suppress(OSError):
            self._sides[to_receiver].send(frame)

    def _take(self, to_receiver: bool, frame: bytes) -> None:
        self._send(to_receiver, frame)

    def _deliver(self) -> float:
        """Send what is due. Returns seconds until more is."""
        return _STOP_S


@dataclass(frozen=True)
class GateSegment:
    """One TCP segment that came to the gate. Sequence numbers as on the wire."""

    to_receiver: bool
    seq: int
    ack: int
    length: int
    """Bytes of payload."""
    window: int
    """As on the wire, not scaled."""
    new: bool
    """Its data was not seen before."""
    number: int
    """The n-th segment with new data, from 1; of others: how many there were before."""
    error_seq: int | None
    """What an ENA option names."""


Rule = Callable[[GateSegment], str]
"""`pass`, `hold`, `drop` or `corrupt` (a bit of the payload)."""


def pass_all(segment: GateSegment) -> str:
    del segment
    return "pass"


class Gate(Forwarder):
    """`begin` starts a new log and rule; `open` lets everything go."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self._log, self._held = list[GateSegment](), list[tuple[bool, bytes]]()
        self._rule: Rule = pass_all
        self._highest: int | None = None
        self._numbers = 0
        super().__init__(sender, receiver)

    def begin(self, rule: Rule = pass_all) -> None:
        """Forget the logged and delayed segments; `rule` decides from now on, and a connection's data segments are counted from 1."""
        with self._changed:
            self._log.clear()
            self._held.clear()
            self._rule, self._highest, self._numbers = rule, None, 0

    def open(self) -> None:
        """Release the delayed segments in their order, and pass everything from now on."""
        with self._changed:
            self._rule = pass_all
            for to_receiver, frame in self._held:
                self._send(to_receiver, frame)
            self._held.clear()

    def log(self) -> list[GateSegment]:
        with self._changed:
            return list(self._log)

    def wait(self, condition: Callable[[Sequence[GateSegment]], T | None], timeout_s: float, what: str) -> T:
        """Wait until `condition` of the log is true; its value. Raises HostsError `check`: `what` did not come."""
        with self._changed:
            found = self._changed.wait_for(lambda: condition(self._log), timeout_s)
        if found is None:
            raise HostsError("check", f"{what} did not come within {timeout_s:g} s")
        return found

    def wait_quiet(self, quiet_s: float, timeout_s: float) -> None:
        """Wait until nothing has come for `quiet_s`. Raises HostsError `check` when it does not become quiet."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while time.monotonic() < deadline:
                if not self._changed.wait(quiet_s):
                    return
        raise HostsError("check", f"segments still come after {timeout_s:g} s")

    def _take(self, to_receiver: bool, frame: bytes) -> None:
        segment = self._parse(to_receiver, frame)
        what = "pass"
        if segment is not None:
            self._log.append(segment)
            what = self._rule(segment)
            self._changed.notify_all()
            if what == "corrupt":
                damaged = bytearray(frame)
                damaged[-max(1, segment.length // 2)] ^= 0x01
                frame = bytes(damaged)
        if what == "hold":
            self._held.append((to_receiver, frame))
        elif what != "drop":
            self._send(to_receiver, frame)

    def _parse(self, to_receiver: bool, frame: bytes) -> GateSegment | None:
        place = find_tcp(frame)
        if place is None:
            return None
        at, end_of_packet = place
        _, _, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", frame, at)
        payload = at + (offset >> 4) * 4
        length, new = end_of_packet - payload, False
        if to_receiver and length > 0 and not flags & _SYN:
            end = (seq + length) % (1 << 32)
            new = self._highest is None or 0 < (end - self._highest) % (1 << 32) < (1 << 31)
            if new:
                self._highest, self._numbers = end, self._numbers + 1
        _, found, named = frame[at + 20 : payload].partition(_ENA_OPTION)
        error_seq = int.from_bytes(named[:4], "big") if found else None
        return GateSegment(to_receiver, seq, ack, length, window, new, self._numbers, error_seq)
