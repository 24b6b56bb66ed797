# SPDX-License-Identifier: Apache-2.0
"""Transfers, each on a connection of its own that is opened when the application asks: one or several of N bytes a flow, or web-like ones at random.

A transfer begins when it is asked for, before the handshake, and ends when the sink, which has then received everything,
closes. A web source's arrivals are Poisson, its sizes drawn at random (`chance.py`). `first_ns` is when its first data was
written, after the handshake; `packets` are the segments with data or FIN that left, retransmissions too.
"""

from __future__ import annotations

import heapq
import os
import select
import socket
import time
from dataclasses import dataclass

from .. import apply, tcpinfo
from .chance import Chance
from .onoff import check_chance, check_names
from .options import SendOptions, check_range
from .records import Record, RecordWriter, name_of
from .send import CHUNK, Flow, kernel_name, open_flow, reset, sample
from .signals import StopSignal

OPEN_MAX = 1000
"""Connections of a process at a time; what arrives beyond waits."""
TIMES_RANGE = (1, 100_000)


@dataclass(frozen=True)
class FileOptions:
    """How `fairlane-traffic transfer` asks for its files."""

    times: int = 1
    """Files of each flow."""
    interval_s: float = 0.0
    """From asking for one file to asking for the next."""
    nodelay: bool = False
    """TCP_NODELAY: what is written goes at once, and the FIN by itself where no data waits for it."""

    def check(self) -> None:
        """Raises HostsError `option`."""
        check_range("times", self.times, *TIMES_RANGE)
        if self.times > 1:
            check_range("interval-s", self.interval_s, 0.001, 3_600)


@dataclass(frozen=True)
class WebOptions:
    """What `fairlane-traffic web` does."""

    arrivals_per_s: float
    """Of each flow."""
    mean_bytes: int
    max_bytes: int = 0
    """0: no limit."""
    distribution: str = "exponential"
    shape: float = 1.2
    seed: int = 1
    names: tuple[str, ...] = ("flow",)

    def check(self, flows: int) -> None:
        """Raises HostsError `option`."""
        check_range("arrivals-per-s", self.arrivals_per_s, 0.001, 10_000)
        check_range("mean-bytes", self.mean_bytes, 1, 2**40)
        check_range("max-bytes", self.max_bytes, 0, 2**50)
        check_chance(self.distribution, self.shape)
        check_names(self.names, flows)


FILE = FileOptions()


class _Arrivals:
    """(instant, flow, bytes) of the transfers that are asked for, in time order."""

    def __init__(self, send: SendOptions, web: WebOptions | None, files: FileOptions, start_ns: int) -> None:
        self._web = web
        self._interval_ns = round(files.interval_s * 1e9)
        self._left = [files.times] * send.flows
        self._due: list[tuple[int, int]] = []
        self._bytes = send.bytes or 0
        self._chances = [Chance(web.seed, name) for name in web.names] if web else []
        for flow in range(send.flows):
            gap_ns = self._gap_ns(flow) if web else 0  # Poisson: nothing arrives at the start itself
            self._due.append((start_ns + gap_ns, flow))
        heapq.heapify(self._due)

    def _gap_ns(self, flow: int) -> int:
        assert self._web is not None
        return int(self._chances[flow].draw("exponential", 1e9 / self._web.arrivals_per_s, 0.0))

    @property
    def next_ns(self) -> int | None:
        return self._due[0][0] if self._due else None

    def take(self) -> tuple[int, int, int]:
        at_ns, flow = heapq.heappop(self._due)
        if self._web is None:
            self._left[flow] -= 1
            if self._left[flow]:
                heapq.heappush(self._due, (at_ns + self._interval_ns, flow))
            return at_ns, flow, self._bytes
        size = int(self._chances[flow].draw(self._web.distribution, float(self._web.mean_bytes), self._web.shape))
        size = max(1, min(size, self._web.max_bytes or 2**62))
        heapq.heappush(self._due, (at_ns + self._gap_ns(flow), flow))
        return at_ns, flow, size


@dataclass
class _Transfer:
    flow: Flow
    asked_ns: int
    bytes: int
    first_ns: int | None = None
    """When its first data was written."""
    segments_base: int = 0
    """Segments that left before that: of the handshake."""


class _Engine:
    def __init__(
        self, send: SendOptions, web: WebOptions | None, files: FileOptions, writer: RecordWriter, stop: StopSignal
    ) -> None:
        self.options, self.web, self.writer, self.stop = send, web, writer, stop
        self.nodelay = files.nodelay
        self.many = web is not None or files.times > 1
        self.names = [kernel_name(cc, send) for cc in send.cc]
        now_ns = time.monotonic_ns()
        asked_ns = now_ns if send.start_at_ns is None else send.start_at_ns
        self.late_ns = max(0, now_ns - asked_ns) if send.start_at_ns is not None else 0
        self.start_ns = max(asked_ns, now_ns)
        self.end_ns = None if send.seconds is None else self.start_ns + round(send.seconds * 1e9)
        self.arrivals = _Arrivals(send, web, files, self.start_ns)
        self.next_sample_ns = self.start_ns
        self.poll = select.epoll()
        self.poll.register(stop.fd, select.EPOLLIN)
        self.open: dict[int, _Transfer] = {}
        self.peers: list[Record] = []
        self.rows: dict[int, Record] = {}
        self.finished = 0
        self.error = ""

    def run(self) -> None:
        with self.poll:
            while not self.stop.stopped and (self.open or self.arrivals.next_ns is not None):
                now_ns = time.monotonic_ns()
                if self.end_ns is not None and now_ns >= self.end_ns:
                    break
                self._sample_due(now_ns)
                while len(self.open) < OPEN_MAX and (due_ns := self.arrivals.next_ns) is not None and now_ns >= due_ns:
                    self._begin(*self.arrivals.take())
                for fd, events in self.poll.poll(self._timeout_s()):
                    if fd in self.open:
                        self._handle(self.open[fd], events)

    def _timeout_s(self) -> float:
        arrival_ns = self.arrivals.next_ns if len(self.open) < OPEN_MAX else None
        due = [instant for instant in (self.end_ns, arrival_ns) if instant is not None]
        if self.open and not self.many:
            due.append(self.next_sample_ns)
        return max(0.0, (min(due) - time.monotonic_ns()) / 1e9) if due else -1.0

    def _begin(self, asked_ns: int, index: int, size: int) -> None:
        flow = open_flow(index, self.options, self.names)
        flow.left, flow.start_ns = size, asked_ns
        if self.nodelay:
            flow.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open[flow.connection.fileno()] = _Transfer(flow, asked_ns, size)
        self.poll.register(flow.connection.fileno(), select.EPOLLOUT | select.EPOLLRDHUP)

    def _handle(self, transfer: _Transfer, events: int) -> None:
        flow = transfer.flow
        problem = flow.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            self._end(transfer, os.strerror(problem))
        elif events & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP):
            self._end(transfer, "" if flow.left == 0 else "the sink closed the connection")
        elif events & select.EPOLLOUT:
            if not flow.connected:
                self._connected(transfer)
            self._write(transfer)

    def _connected(self, transfer: _Transfer) -> None:
        flow = transfer.flow
        flow.connected = True
        apply.check_socket(flow.connection, flow.cc)
        info = tcpinfo.read(flow.connection)
        flow.acked_base, transfer.segments_base = info.bytes_acked, info.segs_out
        flow.local = name_of(flow.connection)
        self.peers.append({"flow": flow.index, "local": flow.local})

    def _write(self, transfer: _Transfer) -> None:
        flow = transfer.flow
        assert flow.left is not None
        if transfer.first_ns is None:
            transfer.first_ns = time.monotonic_ns()
        try:
            while flow.left:
                sent = flow.connection.send(CHUNK[: min(flow.left, len(CHUNK))])
                flow.left -= sent
                flow.written += sent
            flow.connection.shutdown(socket.SHUT_WR)
            self.poll.modify(flow.connection.fileno(), select.EPOLLRDHUP)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(transfer, error.strerror or str(error))

    def _end(self, transfer: _Transfer, error: str) -> None:
        flow, now_ns = transfer.flow, time.monotonic_ns()
        flow.error, flow.finished_ns = error, now_ns
        self.error = self.error or error
        last = sample(flow, now_ns)
        if not error:
            self.writer.write({"transfer": self._record(transfer, last, now_ns, transfer.bytes)})
            self.finished += 1
        self._close(transfer, last)

    def _record(self, transfer: _Transfer, last: Record, now_ns: int, size: int) -> Record:
        flow = transfer.flow
        assert flow.last is not None
        # All that left after the handshake is data or FIN, but for the acknowledgment of the sink's FIN.
        packets = flow.last.segs_out - transfer.segments_base - int(size == transfer.bytes)
        return {
            "flow": flow.index,
            "start_ns": transfer.asked_ns,
            "first_ns": transfer.asked_ns if transfer.first_ns is None else transfer.first_ns,
            "end_ns": now_ns,
            "bytes": size,
            "packets": max(packets, flow.last.data_segs_out),
            "retransmits": last["retrans"],
            "timeouts": last["timeouts"],
            "srtt_us": last["srtt_us"],
        }

    def _close(self, transfer: _Transfer, last: Record) -> None:
        flow = transfer.flow
        if not self.many:
            self.writer.write(last)
            self.rows[flow.index] = self._row(flow)
        del self.open[flow.connection.fileno()]
        reset(flow.connection)

    def _row(self, flow: Flow) -> Record:
        return {"flow": flow.index, "cc": flow.cc, "local": flow.local, "error": flow.error}

    def _sample_due(self, now_ns: int) -> None:
        if not self.many and now_ns >= self.next_sample_ns:
            for transfer in self.open.values():
                if transfer.flow.connected:
                    self.writer.write(sample(transfer.flow, now_ns))
            period_ns = self.options.sample_ms * 1_000_000
            self.next_sample_ns += period_ns * ((now_ns - self.next_sample_ns) // period_ns + 1)

    def summary(self) -> Record:
        """Also closes what is still open."""
        unfinished = len(self.open)
        for transfer in list(self.open.values()):
            now_ns = time.monotonic_ns()
            last = sample(transfer.flow, now_ns)
            if self.web is None and transfer.flow.last is not None:
                acked = max(0, transfer.flow.last.bytes_acked - transfer.flow.acked_base)
                size = min(acked, transfer.bytes - 1) if transfer.flow.connected else 0
                self.writer.write({"unfinished": self._record(transfer, last, now_ns, size)})
            self._close(transfer, last)
        return {
            "to": f"{self.options.address}:{self.options.port}",
            "start_ns": self.start_ns,
            "end_ns": time.monotonic_ns(),
            "late_ns": self.late_ns,
            "stopped_by_signal": self.stop.stopped,
            "sysctls": dict(apply.read_host().sysctls),
            "finished": self.finished,
            "unfinished": unfinished,
            "error": self.error,
            "peers": self.peers,
            "flows": [row for _, row in sorted(self.rows.items())],
        }


def transfers(send: SendOptions, web: WebOptions | None = None, files: FileOptions = FILE) -> Record:
    """Run the transfers: `send.bytes` for each flow, `files.times` times, or web-like ones. Returns the summary that it also writes.

    Raises HostsError (`option`, `connect`, `sysctl`, `wrong-congestion-control`); a transfer that breaks is in the
    summary's `error`.
    """
    send.check()
    if web is None:
        check_range("bytes", send.bytes or 0, 1, 2**50)
        files.check()
    else:
        web.check(send.flows)
    stop = StopSignal()
    with RecordWriter(send.out) as writer:
        engine = _Engine(send, web, files, writer, stop)
        try:
            engine.run()
        finally:
            summary = engine.summary()
        writer.summary(summary)
    return summary
