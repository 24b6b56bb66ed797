# SPDX-License-Identifier: Apache-2.0
"""The packet bed's forwarder: a thread between two packet sockets that queues, delays, damages by a script and keeps what it saw.

    sender --> [number, script] --> [queue, rate] --> [delay, hold] --> receiver     and the same way back

Queue and rate are computed from arrival times, so a busy machine makes the bed late, never faster or lossier.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from packet_bed_script import Director, Fate, Numbering, Script
from packet_bed_trace import ACK, BACK, DATA, FIN, RST, SYN, Segment, parse_options

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_SO_RCVBUFFORCE = 33
_ETHERNET, _IPV4, _TCP = 14, 0x0800, 6
_FRAME_BYTES = 65_536
_BATCH = 64
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


def open_packet_socket(interface: str) -> socket.socket:
    """A raw socket on an interface of the calling thread's namespace that does not see what we send."""
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    found.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    found.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
    found.bind((interface, _ETH_P_ALL))
    found.setblocking(False)
    return found


@dataclass
class _Line:
    """One direction at work: the bottleneck's queue and the delay line behind it."""

    path: Path
    output: socket.socket
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


class Forwarder:
    """Runs until `close`; `record(script)` starts a new trace, `recorded()` takes it."""

    def __init__(self, sender: socket.socket, receiver: socket.socket, forward: Path, back: Path) -> None:
        self._lines = {DATA: _Line(forward, receiver), BACK: _Line(back, sender)}
        self._inputs = {sender.fileno(): (DATA, sender), receiver.fileno(): (BACK, receiver)}
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._stopping = False
        self._failure: BaseException | None = None
        self._segments = list[Segment]()
        self._connections: dict[tuple[int, int], _Connection] = {}
        self._director = Director(Script())
        self._origin_ns: int | None = None
        self._latest_ns = 0
        self._thread = threading.Thread(target=self._run, name="packet bed", daemon=True)
        self._thread.start()

    def record(self, script: Script) -> None:
        """Forget what was seen; the script holds from now on."""
        with self._lock:
            self._segments, self._connections, self._origin_ns, self._latest_ns = [], {}, None, 0
            self._director = Director(script)

    def recorded(self) -> list[Segment]:
        """What was seen since `record`. Raises what ended the thread, if something did."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            return list(self._segments)

    @property
    def late_s(self) -> float:
        """By how much the latest segment since `record` was delivered too late: how busy the machine was."""
        return self._latest_ns / 1e9

    def set_path(self, direction: str, path: Path) -> None:
        """Another rate, delay or queue from now on."""
        with self._lock:
            self._lines[direction].path = path

    def close(self) -> None:
        self._stopping = True
        os.write(self._wake_write, b"x")
        self._thread.join(timeout=5)
        for _, opened in self._inputs.values():
            opened.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # not allowed: only less exact
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        try:
            while not self._stopping:
                with self._lock:
                    due_ns = self._deliver(time.monotonic_ns())
                timeout = None if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
                ready, _, _ = select.select([*self._inputs, self._wake_read], [], [], timeout)
                with self._lock:
                    for fd in ready:
                        if fd in self._inputs:
                            self._receive(*self._inputs[fd])
        except BaseException as error:
            self._failure = error

    def _deliver(self, now_ns: int) -> int | None:
        """Send what is due; returns when the next is."""
        for line in self._lines.values():
            while line.delayed:
                due_ns, frame, segment = line.delayed[0]
                due_ns = self._director.release_ns(due_ns)
                if due_ns > now_ns:
                    break
                line.delayed.popleft()
                self._latest_ns = max(self._latest_ns, now_ns - due_ns)
                with contextlib.suppress(OSError):  # the other end is being taken down
                    line.output.send(frame)
                if segment is not None and self._origin_ns is not None:
                    segment.delivered_s = (time.monotonic_ns() - self._origin_ns) / 1e9
                self._receive_all()  # what this one has caused comes before the next is delivered
        # Only now: a delivery on one line has put frames on the other.
        return min(
            (self._director.release_ns(x.delayed[0][0]) for x in self._lines.values() if x.delayed), default=None
        )

    def _receive_all(self) -> None:
        for direction, source in self._inputs.values():
            self._receive(direction, source)

    def _receive(self, direction: str, source: socket.socket) -> None:
        for _ in range(_BATCH):
            try:
                frame = source.recv(_FRAME_BYTES)
            except (BlockingIOError, OSError):
                return
            self._take(time.monotonic_ns(), direction, frame)

    def _take(self, now_ns: int, direction: str, frame: bytes) -> None:
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
        if len(frame) < _ETHERNET + 40 or int.from_bytes(frame[12:14], "big") != _IPV4 or frame[23] != _TCP:
            return None
        ip = memoryview(frame)[_ETHERNET:]
        ip_header, total = (ip[0] & 0x0F) * 4, int.from_bytes(ip[2:4], "big")
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
        return segment, _ETHERNET + ip_header, header
