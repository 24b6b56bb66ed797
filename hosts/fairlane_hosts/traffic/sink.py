# SPDX-License-Identifier: Apache-2.0
"""The receiving end: accepts, discards, and counts the bytes of every connection over time."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from dataclasses import dataclass

from .. import tcpinfo
from ..errors import HostsError
from .options import SinkOptions
from .records import Record, RecordWriter, write_ready
from .signals import StopSignal

_BUFFER = bytearray(256 * 1024)


@dataclass
class _Connection:
    socket: socket.socket
    peer: str
    accepted_ns: int
    bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    ended: str = ""
    """`eof`, `reset`, or empty while it is open."""
    segments: int = 0
    acks: int = 0
    read_at_ns: int | None = None
    """When what has come is read; None: nothing waits, or it is read at once."""


class _Sink:
    def __init__(self, options: SinkOptions, writer: RecordWriter, stop: StopSignal) -> None:
        self.options, self.writer, self.stop = options, writer, stop
        self.open: dict[int, _Connection] = {}
        self.ended: list[_Connection] = []
        self.quickack = {"kernel": None, "delayed": 0, "every": 1}[options.ack]
        self.read_after_ns = round(options.read_after_ms * 1e6)
        self.listener = self._listen()
        self.port: int = self.listener.getsockname()[1]
        self.start_ns = time.monotonic_ns()
        self.poll = select.epoll()
        self.poll.register(self.listener.fileno(), select.EPOLLIN)
        self.poll.register(stop.fd, select.EPOLLIN)

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.options.bind else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.options.mss is not None:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.options.mss)
            if self.options.window is not None:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self.options.window)
                if self.read_after_ns:  # else what waits would not shut the window: the buffer is larger than the clamp
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.options.window)
            listener.bind((self.options.bind, self.options.port))
            listener.listen(self.options.backlog)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise HostsError(
                "option", f"cannot listen at {self.options.bind} port {self.options.port}: {error.strerror}"
            ) from error
        return listener

    def run(self) -> None:
        """Until the time is over, enough connections have ended, or a signal came."""
        options = self.options
        end_ns = None if options.seconds is None else self.start_ns + round(options.seconds * 1e9)
        period_ns = options.sample_ms * 1_000_000
        next_ns = self.start_ns + period_ns
        while not self.stop.stopped:
            if options.connections is not None and len(self.ended) >= options.connections:
                break
            now_ns = time.monotonic_ns()
            if end_ns is not None and now_ns >= end_ns:
                break
            if now_ns >= next_ns:
                self._sample_all(now_ns)
                next_ns += period_ns * ((now_ns - next_ns) // period_ns + 1)
            due_ns = next_ns if end_ns is None else min(next_ns, end_ns)
            if self.read_after_ns:
                due_ns = min([due_ns, *(c.read_at_ns for c in self.open.values() if c.read_at_ns is not None)])
                self._read_due(now_ns)
            for fd, events in self.poll.poll(max(0.0, (due_ns - now_ns) / 1e9)):
                if fd == self.listener.fileno():
                    self._accept()
                elif fd in self.open and self.read_after_ns and not events & select.EPOLLRDHUP:
                    self.open[fd].read_at_ns = time.monotonic_ns() + self.read_after_ns
                    self.poll.modify(fd, select.EPOLLRDHUP)  # until then
                elif fd in self.open:
                    self._receive(self.open[fd])
        self._sample_all(time.monotonic_ns())
        for connection in list(self.open.values()):
            self._end(connection, "")

    def _read_due(self, now_ns: int) -> None:
        for connection in list(self.open.values()):
            if connection.read_at_ns is not None and now_ns >= connection.read_at_ns:
                connection.read_at_ns = None
                self.poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
                self._receive(connection)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                accepted, address = self.listener.accept()
                accepted.setblocking(False)
                connection = _Connection(accepted, f"{address[0]}:{address[1]}", time.monotonic_ns())
                if self.quickack is not None:
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, self.quickack)
                self.open[accepted.fileno()] = connection
                late = select.EPOLLRDHUP if self.read_after_ns else 0
                self.poll.register(accepted.fileno(), select.EPOLLIN | late)
                self._sample(connection, connection.accepted_ns)

    def _receive(self, connection: _Connection) -> None:
        try:
            count = connection.socket.recv_into(_BUFFER)
        except BlockingIOError:
            return
        except OSError:
            self._end(connection, "reset")
            return
        if not count:
            self._end(connection, "eof")
            return
        now_ns = time.monotonic_ns()
        connection.bytes += count
        connection.last_ns = now_ns
        if connection.first_ns is None:
            connection.first_ns = now_ns
        if self.quickack is not None:  # the kernel forgets it after a while: set again on each read
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, self.quickack)

    def _sample(self, connection: _Connection, now_ns: int) -> None:
        self.writer.write({"t_ns": now_ns, "peer": connection.peer, "bytes": connection.bytes})

    def _sample_all(self, now_ns: int) -> None:
        for connection in self.open.values():
            self._sample(connection, now_ns)

    def _end(self, connection: _Connection, how: str) -> None:
        connection.ended = how
        with contextlib.suppress(OSError, HostsError):
            info = tcpinfo.read(connection.socket)
            connection.segments, connection.acks = info.data_segs_in, info.segs_out
        self._sample(connection, time.monotonic_ns())
        del self.open[connection.socket.fileno()]
        self.poll.unregister(connection.socket.fileno())
        connection.socket.close()
        self.ended.append(connection)

    def summary(self) -> Record:
        return {
            "port": self.port,
            "ack": self.options.ack,
            "start_ns": self.start_ns,
            "end_ns": time.monotonic_ns(),
            "stopped_by_signal": self.stop.stopped,
            "connections": [
                {
                    "peer": c.peer,
                    "bytes": c.bytes,
                    "accepted_ns": c.accepted_ns,
                    "first_byte_ns": c.first_ns,
                    "last_byte_ns": c.last_ns,
                    "ended": c.ended or "open",
                    "data_segments": c.segments,
                    "segments_sent": c.acks,
                }
                for c in self.ended
            ],
        }

    def close(self) -> None:
        for connection in self.open.values():
            connection.socket.close()
        self.listener.close()
        self.poll.close()


def sink(options: SinkOptions) -> Record:
    """Run the receiving end; returns the summary that it also writes. Raises HostsError `option`."""
    options.check()
    stop = StopSignal()
    with RecordWriter(options.out) as writer:
        receiver = _Sink(options, writer, stop)
        try:
            write_ready(options.ready_file, receiver.port)
            receiver.run()
            summary = receiver.summary()
            writer.summary(summary)
        finally:
            receiver.close()
    return summary
