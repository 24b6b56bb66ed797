# SPDX-License-Identifier: Apache-2.0
"""The sending end: connects all flows, starts them at one instant, samples TCP_INFO, checks the congestion control."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import apply, tcpinfo
from ..errors import HostsError
from ..variants import VARIANTS
from .options import SendOptions
from .records import Record, RecordWriter, name_of
from .signals import StopSignal

CHUNK = memoryview(bytes(256 * 1024))
CHUNKS_PER_TURN = 2  # then the other flows and the samples have their turn, however fast the path is
TCP_NOTSENT_LOWAT = 25
RECEIVER_TIMEOUT_S = 5.0
"""How long nobody may listen at the other end: a receiver that was started beside takes a moment to be there."""
AGAIN_S = 0.1
"""Between two attempts."""


class NobodyListensError(HostsError):
    """The other end has refused the connection."""


@dataclass
class Flow:
    """One connection of the sending end."""

    index: int
    connection: socket.socket
    cc: str
    local: str = ""
    start_ns: int = 0
    left: int | None = None
    """Bytes still to write; None: greedy."""
    written: int = 0
    finished_ns: int | None = None
    acked_base: int = 0
    """bytes_acked when connected: the kernel counts the SYN."""
    connected: bool = False
    writing: bool = False
    error: str = ""
    last: tcpinfo.TcpInfo | None = None
    extra: Record = field(default_factory=dict[str, object])


def reset(connection: socket.socket) -> None:
    """Close it, with a reset: what was not sent yet is not sent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def kernel_name(cc: str, options: SendOptions) -> str:
    """Kernel name of a variant or of a kernel name; a variant's sysctls must be the host's."""
    variant = VARIANTS.get(cc)
    if variant is None:
        return cc
    if options.check_sysctls:
        wrong = apply.differing(variant, apply.read_host().sysctls)
        if wrong:
            listed = ", ".join(f"{name} is {found}, not {want}" for name, (found, want) in wrong.items())
            raise HostsError(
                "sysctl",
                f"this host is not set for variant {cc}: {listed}",
                f"`fairlane hosts use HOST {cc}` (or --no-sysctl-check)",
            )
    return variant.congestion_control


def open_flow(index: int, options: SendOptions, names: list[str]) -> Flow:
    """A socket with everything set, on its way to be connected. Raises HostsError."""
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setblocking(False)
    if names:
        apply.use_on_socket(connection, names[index % len(names)])
    cc = apply.congestion_control_of(connection)
    if options.mss is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, options.mss)
    connection.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, options.unsent_bytes)
    if options.bind is not None:
        connection.bind((options.bind, 0))
    problem = connection.connect_ex((options.address, options.port))
    if problem not in (0, errno.EINPROGRESS):
        connection.close()
        raise _not_connected(options, problem)
    return Flow(index, connection, cc, left=options.bytes)


def _not_connected(options: SendOptions, problem: int) -> HostsError:
    kind = NobodyListensError if problem == errno.ECONNREFUSED else HostsError
    return kind("connect", f"cannot connect to {options.address} port {options.port}: {os.strerror(problem)}")


def connect_all(options: SendOptions, stop: StopSignal) -> list[Flow]:
    """All flows, connected; tried again for `RECEIVER_TIMEOUT_S` while nobody listens. Raises HostsError `connect` when one is not within the time."""
    names = [kernel_name(cc, options) for cc in options.cc]
    patient_until = time.monotonic() + RECEIVER_TIMEOUT_S
    while True:
        flows = list[Flow]()
        try:
            for index in range(options.flows):
                flows.append(open_flow(index, options, names))
            _wait_connected(flows, options, stop)
            return flows
        except BaseException as error:
            for flow in flows:
                reset(flow.connection)
            if not isinstance(error, NobodyListensError) or stop.stopped or time.monotonic() > patient_until:
                raise
        select.select([stop.fd], [], [], AGAIN_S)


def _wait_connected(flows: list[Flow], options: SendOptions, stop: StopSignal) -> None:
    deadline = time.monotonic() + options.connect_timeout_s
    with select.epoll() as poll:
        waiting = {flow.connection.fileno(): flow for flow in flows}
        for fd in waiting:
            poll.register(fd, select.EPOLLOUT)
        poll.register(stop.fd, select.EPOLLIN)
        while waiting and not stop.stopped:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise HostsError(
                    "connect",
                    f"{len(waiting)} of {len(flows)} flows are not connected to {options.address} port {options.port} "
                    f"after {options.connect_timeout_s:g} s",
                )
            for fd, _ in poll.poll(remaining):
                flow = waiting.pop(fd, None)
                if flow is None:
                    continue
                poll.unregister(fd)
                problem = flow.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if problem:
                    raise _not_connected(options, problem)
                flow.connected = True
                apply.check_socket(flow.connection, flow.cc)
                flow.acked_base = tcpinfo.read(flow.connection).bytes_acked
                flow.local = name_of(flow.connection)


def sample(flow: Flow, now_ns: int) -> Record:
    """TCP_INFO of a flow as a record."""
    info = tcpinfo.read(flow.connection)
    flow.last = info
    return {
        "t_ns": now_ns,
        "flow": flow.index,
        "cwnd": info.snd_cwnd,
        "ssthresh": info.snd_ssthresh,
        "srtt_us": info.rtt_us,
        "rttvar_us": info.rttvar_us,
        "min_rtt_us": info.min_rtt_us,
        "rto_us": info.rto_us,
        "retrans": info.total_retrans,
        "timeouts": info.total_rto,
        "segments": info.data_segs_out,
        "lost": info.lost,
        "unacked": info.unacked,
        "delivered_bytes": info.delivered * info.snd_mss,
        "acked_bytes": info.bytes_acked - flow.acked_base,
        "ca_state": info.ca_state_name,
        "cc": flow.cc,
    }


class Sender:
    """The event loop: writes what the sockets take, samples, ends in time."""

    def __init__(self, options: SendOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        self.options, self.flows, self.writer, self.stop = options, flows, writer, stop
        self.by_fd = {flow.connection.fileno(): flow for flow in flows}
        self.poll = select.epoll()
        self.poll.register(stop.fd, select.EPOLLIN)
        now_ns = time.monotonic_ns()
        self.start_ns = max(options.start_at_ns or 0, now_ns)
        self.late_ns = self.start_ns - options.start_at_ns if options.start_at_ns is not None else 0
        for flow in flows:
            flow.start_ns = self.start_ns + round(flow.index * options.stagger_ms * 1e6)
            self.poll.register(flow.connection.fileno(), select.EPOLLRDHUP)
        self.end_ns = None if options.seconds is None else self.start_ns + round(options.seconds * 1e9)
        self.next_sample_ns = self.start_ns

    def run(self) -> None:
        """Until every flow is finished, the time is over, or a signal came."""
        with self.poll:
            while not self.stop.stopped and any(flow.finished_ns is None for flow in self.flows):
                now_ns = time.monotonic_ns()
                if self.end_ns is not None and now_ns >= self.end_ns:
                    break
                if now_ns >= self.next_sample_ns:
                    self._sample_all(now_ns)
                    period_ns = self.options.sample_ms * 1_000_000
                    self.next_sample_ns += period_ns * ((now_ns - self.next_sample_ns) // period_ns + 1)
                self.start_due(now_ns)
                for fd, events in self.poll.poll(self._timeout_s()):
                    if fd in self.by_fd:
                        self.handle(self.by_fd[fd], events)
        self._sample_all(time.monotonic_ns())

    def _timeout_s(self) -> float:
        due = [self.next_sample_ns, self.next_due_ns()]
        if self.end_ns is not None:
            due.append(self.end_ns)
        return max(0.0, (min(due) - time.monotonic_ns()) / 1e9)

    def next_due_ns(self) -> int:
        """When `start_due` is next needed."""
        starts = [flow.start_ns for flow in self.flows if not flow.writing and not flow.written]
        return min(starts, default=self.next_sample_ns)

    def start_due(self, now_ns: int) -> None:
        """What the application does at its instants: here, to start."""
        for flow in self.flows:
            if not flow.writing and not flow.written and flow.finished_ns is None and now_ns >= flow.start_ns:
                flow.writing = True
                self.poll.modify(flow.connection.fileno(), select.EPOLLOUT | select.EPOLLRDHUP)
                self.write_some(flow)

    def handle(self, flow: Flow, events: int) -> None:
        """What epoll says of a flow."""
        if events & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP):
            problem = flow.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem or flow.left != 0:
                flow.error = os.strerror(problem) if problem else "the sink closed the connection"
            self.finish(flow)
        elif events & select.EPOLLOUT:
            self.write_some(flow)

    def write_some(self, flow: Flow) -> None:
        """Write as long as the socket takes it."""
        try:
            for _ in range(CHUNKS_PER_TURN):
                if not flow.writing:
                    break
                chunk = CHUNK if flow.left is None or flow.left >= len(CHUNK) else CHUNK[: flow.left]
                sent = flow.connection.send(chunk)
                flow.written += sent
                if flow.left is not None:
                    flow.left -= sent
                    if flow.left == 0:
                        flow.writing = False
                        self.poll.modify(flow.connection.fileno(), select.EPOLLRDHUP)
                        flow.connection.shutdown(socket.SHUT_WR)  # the sink answers by closing: all was received
        except BlockingIOError:
            return
        except OSError as error:
            flow.error = error.strerror or str(error)
            self.finish(flow)

    def finish(self, flow: Flow) -> None:
        """The flow has ended or broken: a last sample."""
        flow.writing = False
        if flow.finished_ns is None:
            flow.finished_ns = time.monotonic_ns()
            self.poll.unregister(flow.connection.fileno())
            self.writer.write(sample(flow, flow.finished_ns))

    def _sample_all(self, now_ns: int) -> None:
        for flow in self.flows:
            if flow.finished_ns is None:
                self.writer.write(sample(flow, now_ns))

    def summary(self) -> Record:
        end_ns = time.monotonic_ns()
        rows = list[Record]()
        for flow in self.flows:
            info = flow.last
            assert info is not None
            acked = info.bytes_acked - flow.acked_base
            until_ns = flow.finished_ns or end_ns
            elapsed_s = max((until_ns - flow.start_ns) / 1e9, 1e-9)
            rows.append(
                {
                    "flow": flow.index,
                    "cc": flow.cc,
                    "local": flow.local,
                    "start_ns": flow.start_ns,
                    "finished_ns": flow.finished_ns,
                    "elapsed_s": elapsed_s,
                    "written_bytes": flow.written,
                    "acked_bytes": acked,
                    "acked_bps": acked * 8 / elapsed_s,
                    "mss": info.snd_mss,
                    "retrans": info.total_retrans,
                    "data_segs_out": info.data_segs_out,
                    "min_rtt_us": info.min_rtt_us,
                    "reordering": info.reordering,
                    "rwnd_limited_us": info.rwnd_limited_us,
                    "complete": flow.finished_ns is not None and not flow.error and flow.left == 0,
                    "error": flow.error,
                }
            )
        return {
            "to": f"{self.options.address}:{self.options.port}",
            "start_ns": self.start_ns,
            "end_ns": end_ns,
            "late_ns": self.late_ns,
            "stopped_by_signal": self.stop.stopped,
            "sysctls": dict(apply.read_host().sysctls),
            "flows": rows,
        }


MakeSender = Callable[[list[Flow], RecordWriter, StopSignal], Sender]


def send(options: SendOptions) -> Record:
    """Run the sending end; returns the summary that it also writes.

    Raises HostsError (`option`, `connect`, `sysctl`, `wrong-congestion-control`). A flow that breaks in mid-run does
    not raise: its row of the summary says `error`.
    """
    return run_sender(options, lambda flows, writer, stop: Sender(options, flows, writer, stop))


def run_sender(options: SendOptions, make: MakeSender) -> Record:
    """Connect all flows, run the sender that `make` gives, write and return its summary."""
    options.check()
    stop = StopSignal()
    with RecordWriter(options.out) as writer:
        flows = connect_all(options, stop)
        try:
            sender = make(flows, writer, stop)
            sender.run()
            for flow in flows:
                if flow.finished_ns is None:
                    apply.check_socket(flow.connection, flow.cc)
            summary = sender.summary()
            writer.summary(summary)
        finally:
            for flow in flows:
                reset(flow.connection)
    return summary
