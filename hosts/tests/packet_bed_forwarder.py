# SPDX-License-Identifier: Apache-2.0
"""The packet bed's forwarder: a thread between two packet sockets that queues, delays, damages by a script and keeps what it saw.

    sender --> [number, script] --> [queue, rate] --> [delay, hold] --> receiver     and the same way back

Queue and rate are computed from arrival times, so a busy machine makes the bed late, never faster or lossier.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from fairlane_hosts.check.gate import ETHERNET_BYTES, Forwarder, find_tcp
from packet_bed_script import Director, Fate, Numbering, Script
from packet_bed_trace import ACK, BACK, DATA, FIN, RST, SYN, Segment, parse_options

_TCP = 6
_MODULUS = 1 << 32


@dataclass(frozen=True)
class Path:
    """One direction of the bed."""

    rate_bps: int | None
    """None: no limit."""
    delay_ns: int
    queue_packets: int
    """Most packets that wait, the one on the line not counted."""


def checksum_is_right(ip: memoryview, tcp_at: int, total: int) -> bool:
    """Whether the TCP checksum of an IPv4 packet is right: pseudo header and segment add up to a multiple of 0xffff."""
    segment = bytes(ip[tcp_at:total])
    if len(segment) % 2:
        segment += b"\0"
    pseudo = bytes(ip[12:20]) + struct.pack("!BBH", 0, _TCP, total - tcp_at)
    return int.from_bytes(pseudo + segment, "big") % 0xFFFF == 0


@dataclass
class _Line:
    """One direction at work: the bottleneck's queue and the delay line behind it."""

    path: Path
    free_ns: int = 0
    """When the bottleneck has sent what it took."""
    waiting: deque[int] = field(default_factory=deque[int])
    """When the transmission of each packet that waits begins."""
    delayed: deque[tuple[int, bytes, Segment | None]] = field(
        default_factory=deque[tuple[int, bytes, "Segment | None"]]
    )

    def offer(self, now_ns: int, frame: bytes, segment: Segment | None) -> bool:
        """Queue a frame; false when the queue is full."""
        path, waiting = self.path, self.waiting
        while waiting and waiting[0] <= now_ns:
            waiting.popleft()
        leave_ns = now_ns
        if path.rate_bps is not None:
            if len(waiting) >= path.queue_packets:
                return False
            start_ns = max(now_ns, self.free_ns)
            if start_ns > now_ns:
                waiting.append(start_ns)
            self.free_ns = leave_ns = start_ns + len(frame) * 8 * 1_000_000_000 // path.rate_bps
        self.delayed.append((leave_ns + path.delay_ns, frame, segment))
        return True


@dataclass
class _Connection:
    data_isn: int
    """The sender's initial sequence number + 1: the first byte of data is 0."""
    back_isn: int = 0
    numbering: Numbering = field(default_factory=Numbering)
    scales: dict[str, int] = field(default_factory=lambda: {DATA: 0, BACK: 0})


def _relative(number: int, base: int) -> int:
    """Signed distance modulo 2^32."""
    return (number - base + (_MODULUS >> 1)) % _MODULUS - (_MODULUS >> 1)


class ScriptedForwarder(Forwarder):
    """Runs until `close`; `record(script)` starts a new trace, `recorded()` takes it."""

    def __init__(self, sender: socket.socket, receiver: socket.socket, forward: Path, back: Path) -> None:
        self._lines = {DATA: _Line(forward), BACK: _Line(back)}
        self._segments = list[Segment]()
        self._connections: dict[tuple[int, int], _Connection] = {}
        self._director = Director(Script())
        self._origin_ns: int | None = None
        self._latest_ns = 0
        super().__init__(sender, receiver)

    def record(self, script: Script) -> None:
        """Forget what was seen; the script holds from now on."""
        with self._changed:
            self._segments, self._connections, self._origin_ns, self._latest_ns = [], {}, None, 0
            self._director = Director(script)

    def recorded(self) -> list[Segment]:
        """What was seen since `record`. Raises what ended the thread, if something did."""
        if self._failure is not None:
            raise self._failure
        with self._changed:
            return list(self._segments)

    @property
    def late_s(self) -> float:
        """By how much the latest segment since `record` was delivered too late: how busy the machine was."""
        return self._latest_ns / 1e9

    def set_path(self, direction: str, path: Path) -> None:
        """Another rate, delay or queue from now on."""
        with self._changed:
            self._lines[direction].path = path

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # not allowed: only less exact
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        super()._run()

    def _deliver(self) -> float:
        now_ns = time.monotonic_ns()
        for direction, line in self._lines.items():
            while line.delayed:
                due_ns, frame, segment = line.delayed[0]
                due_ns = self._director.release_ns(due_ns)
                if due_ns > now_ns:
                    break
                line.delayed.popleft()
                self._latest_ns = max(self._latest_ns, now_ns - due_ns)
                self._send(direction == DATA, frame)
                if segment is not None and self._origin_ns is not None:
                    segment.delivered_s = (time.monotonic_ns() - self._origin_ns) / 1e9
                self._receive()  # what this one has caused comes before the next is delivered
        # Only now: a delivery on one line has put frames on the other.
        due = [self._director.release_ns(line.delayed[0][0]) for line in self._lines.values() if line.delayed]
        return max(0.0, (min(due) - time.monotonic_ns()) / 1e9) if due else super()._deliver()

    def _take(self, to_receiver: bool, frame: bytes) -> None:
        now_ns, direction = time.monotonic_ns(), DATA if to_receiver else BACK
        line = self._lines[direction]
        parsed = self._parse(now_ns, direction, frame)
        if parsed is None:  # not TCP over IPv4, or of a connection from before: passes
            line.offer(now_ns, frame, None)
            return
        segment, tcp_at, header = parsed
        fate = self._fate(now_ns, segment, header)
        segment.dropped = fate.drop
        if fate.flip is not None:
            at, mask = fate.flip
            damaged = bytearray(frame)
            damaged[tcp_at + at] ^= mask
            frame, segment.corrupted = bytes(damaged), True
        self._segments.append(segment)
        if not fate.drop and not line.offer(now_ns, frame, segment):
            segment.dropped = "queue"

    def _fate(self, now_ns: int, segment: Segment, header: int) -> Fate:
        connection, director = self._connections.get(segment.connection), self._director
        if connection is None or segment.flags & (SYN | RST):
            return director.on_other(now_ns)
        if segment.direction == DATA and segment.length:
            segment.number, segment.repeated = connection.numbering.data(segment.seq, segment.length)
            return director.on_data(now_ns, segment.number, segment.repeated, header, segment.length)
        if segment.direction == BACK and not segment.flags & FIN:
            segment.number = connection.numbering.ack()
            return director.on_ack(now_ns, segment.number)
        return director.on_other(now_ns)

    def _parse(self, now_ns: int, direction: str, frame: bytes) -> tuple[Segment, int, int] | None:
        """(segment, where TCP begins in the frame, bytes of the TCP header), or None when it is none of ours."""
        place = find_tcp(frame)
        if place is None:
            return None
        ip = memoryview(frame)[ETHERNET_BYTES:]
        ip_header, total = (at - ETHERNET_BYTES for at in place)
        source, destination, seq, ack, offset, flags, window = struct.unpack_from("!HHIIBBH", ip, ip_header)
        header = (offset >> 4) * 4
        options = parse_options(bytes(ip[ip_header + 20 : ip_header + header]))
        key = (source, destination) if direction == DATA else (destination, source)
        connection = self._connections.get(key)
        if flags & SYN:
            if direction == DATA and (connection is None or not flags & ACK):
                connection = _Connection((seq + 1) % _MODULUS)
                self._connections[key] = connection
            elif connection is not None:
                connection.back_isn = (seq + 1) % _MODULUS
            if connection is not None:
                connection.scales[direction] = options.window_scale or 0
        if connection is None:
            return None
        own, other = connection.data_isn, connection.back_isn
        if direction == BACK:
            own, other = other, own
            options.sack = [(_relative(a, other), _relative(b, other)) for a, b in options.sack]
            if options.experiment and options.experiment[:2] == b"\xeb\x0a":
                options.error_seq = _relative(int.from_bytes(options.experiment[2:6], "big"), other)
        seq, ack = _relative(seq, own), _relative(ack, other) if flags & ACK else 0
        window <<= 0 if flags & SYN else connection.scales[direction]
        if self._origin_ns is None:
            self._origin_ns = now_ns
        segment = Segment(
            t_s=(now_ns - self._origin_ns) / 1e9,
            direction=direction,
            seq=seq,
            ack=ack,
            length=total - ip_header - header,
            flags=flags,
            window_bytes=window,
            options=options,
            checksum_ok=checksum_is_right(ip, ip_header, total),
            connection=key,
        )
        return segment, ETHERNET_BYTES + ip_header, header
