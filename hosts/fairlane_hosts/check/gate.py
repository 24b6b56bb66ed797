# SPDX-License-Identifier: Apache-2.0
"""The gate between the two hosts of the self-test: it passes, holds, drops or damages each TCP segment as a rule says, and keeps a log."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import HostsError

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_ETHERNET, _IPV4, _TCP = 14, 0x0800, 6
_FRAME_BYTES = 65_536
_ENA_KIND, _ENA_EXID = 253, 0xEB0A
T = TypeVar("T")


@dataclass(frozen=True)
class GateSegment:
    """One TCP segment that came to the gate. Sequence numbers as on the wire."""

    t_s: float
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


def open_packet_socket(interface: str) -> socket.socket:
    """Everything that comes in at an interface of the caller's namespace."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    opened.bind((interface, 0))
    opened.setblocking(False)
    return opened


def _error_seq(options: bytes) -> int | None:
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        if at + 1 >= len(options) or options[at + 1] < 2:
            return None
        if options[at] == _ENA_KIND and options[at + 1] == 8 and at + 8 <= len(options):
            exid, seq = struct.unpack_from("!HI", options, at + 2)
            if exid == _ENA_EXID:
                return int(seq)
        at += options[at + 1]
    return None


class Gate:
    """Runs in a thread until `close`. `begin` starts a new log and rule; `open` lets everything go."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self._outputs = {True: receiver, False: sender}
        self._inputs = {sender.fileno(): (True, sender), receiver.fileno(): (False, receiver)}
        self._changed = threading.Condition()
        self._log, self._held = list[GateSegment](), list[tuple[bool, bytes]]()
        self._rule: Rule = pass_all
        self._highest: int | None = None
        self._numbers = 0
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)
        self._thread.start()

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
        """Wait until `condition` of the log is not None. Raises HostsError `check` with `what` did not come."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while (found := condition(self._log)) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise HostsError("check", f"{what} did not come within {timeout_s:g} s")
                self._changed.wait(left)
            return found

    def wait_quiet(self, quiet_s: float, timeout_s: float) -> None:
        """Wait until nothing has come for `quiet_s`. Raises HostsError `check` when it does not become quiet."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while time.monotonic() < deadline:
                seen = len(self._log)
                self._changed.wait(quiet_s)
                if len(self._log) == seen:
                    return
        raise HostsError("check", f"segments still come after {timeout_s:g} s")

    def close(self) -> None:
        self._stopping = True
        os.write(self._wake_write, b"x")
        self._thread.join(timeout=5)
        for _, opened in self._inputs.values():
            opened.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        while not self._stopping:
            ready, _, _ = select.select([*self._inputs, self._wake_read], [], [])
            for fd in ready:
                if fd in self._inputs:
                    to_receiver, source = self._inputs[fd]
                    with contextlib.suppress(OSError):
                        self._take(to_receiver, source.recv(_FRAME_BYTES))

    def _send(self, to_receiver: bool, frame: bytes) -> None:
        with contextlib.suppress(OSError):  # the other end is being taken down
            self._outputs[to_receiver].send(frame)

    def _take(self, to_receiver: bool, frame: bytes) -> None:
        with self._changed:
            segment = self._parse(to_receiver, frame)
            if segment is None:
                self._send(to_receiver, frame)
                return
            self._log.append(segment)
            what = self._rule(segment)
            if what == "hold":
                self._held.append((to_receiver, frame))
            elif what != "drop":
                self._send(to_receiver, _damage(frame, segment.length) if what == "corrupt" else frame)
            self._changed.notify_all()

    def _parse(self, to_receiver: bool, frame: bytes) -> GateSegment | None:
        if len(frame) < _ETHERNET + 40 or int.from_bytes(frame[12:14], "big") != _IPV4 or frame[23] != _TCP:
            return None
        ip_header, total = (frame[14] & 0x0F) * 4, int.from_bytes(frame[16:18], "big")
        at = _ETHERNET + ip_header
        _, _, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", frame, at)
        header = (offset >> 4) * 4
        length = total - ip_header - header
        new = False
        if to_receiver and length > 0 and not flags & 0x02:
            end = (seq + length) % (1 << 32)
            new = self._highest is None or 0 < (end - self._highest) % (1 << 32) < (1 << 31)
            if new:
                self._highest, self._numbers = end, self._numbers + 1
        options = frame[at + 20 : at + header]
        now_s = time.monotonic()
        return GateSegment(now_s, to_receiver, seq, ack, length, window, new, self._numbers, _error_seq(options))


def _damage(frame: bytes, length: int) -> bytes:
    damaged = bytearray(frame)
    damaged[-max(1, length // 2)] ^= 0x01
    return bytes(damaged)
