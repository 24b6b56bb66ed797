# SPDX-License-Identifier: Apache-2.0
"""The interactive source: one connection a flow, a message of some bytes at a fixed interval; the time until each is acknowledged is a transfer.

The kernel tells when a message's last byte was acknowledged (SO_TIMESTAMPING with TX_ACK, Documentation/networking/timestamping.rst).
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from dataclasses import dataclass, field

from .. import tcpinfo
from .options import SendOptions, check_range
from .records import Record, RecordWriter
from .send import Flow, Sender, run_sender
from .signals import StopSignal

_SO_TIMESTAMPING = 37
_TX_ACK, _SOFTWARE, _OPT_ID, _OPT_TSONLY = 1 << 9, 1 << 4, 1 << 7, 1 << 11
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_ORIGIN_TIMESTAMPING, _SCM_TSTAMP_ACK = 4, 2
_EXTENDED_ERR = struct.Struct("=IBBBBII")
_ANCILLARY_BYTES = 512


@dataclass(frozen=True)
class InteractiveOptions:
    """What `fairlane-traffic interactive` does."""

    send: SendOptions
    message_bytes: int
    interval_s: float

    def check(self) -> None:
        """Raises HostsError `option`."""
        check_range("bytes", self.message_bytes, 1, 1 << 24)
        check_range("interval-s", self.interval_s, 0.001, 3600)


@dataclass
class _Message:
    start_ns: int
    end_offset: int
    retransmits: int


@dataclass
class _Talk:
    """What one flow still has to write, and what is not acknowledged."""

    next_ns: int
    unwritten: int = 0
    asked: int = 0
    waiting: deque[_Message] = field(default_factory=deque[_Message])


class _InteractiveSender(Sender):
    def __init__(self, options: InteractiveOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        super().__init__(options.send, flows, writer, stop)
        self.interactive = options
        self._talks = [_Talk(flow.start_ns) for flow in flows]
        self._message = bytes(options.message_bytes)
        for flow in flows:
            flow.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wanted = _TX_ACK | _SOFTWARE | _OPT_ID | _OPT_TSONLY
            flow.connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, wanted)

    def next_due_ns(self) -> int:
        return min(talk.next_ns for talk in self._talks)

    def start_due(self, now_ns: int) -> None:
        period_ns = round(self.interactive.interval_s * 1e9)
        for flow, talk in zip(self.flows, self._talks, strict=True):
            while now_ns >= talk.next_ns and flow.finished_ns is None:
                talk.unwritten += len(self._message)
                talk.asked += len(self._message)
                retransmits = tcpinfo.read(flow.connection).total_retrans
                talk.waiting.append(_Message(talk.next_ns, talk.asked, retransmits))
                talk.next_ns += period_ns
                self.write_some(flow)
            if flow.finished_ns is not None:
                talk.next_ns = time.monotonic_ns() + 10**12

    def handle(self, flow: Flow, events: int) -> None:
        if events & select.EPOLLERR and not events & (select.EPOLLHUP | select.EPOLLRDHUP):
            self._acknowledged(flow)
            if events & select.EPOLLOUT:
                self.write_some(flow)
            return
        super().handle(flow, events)

    def write_some(self, flow: Flow) -> None:
        talk = self._talks[flow.index]
        try:
            while talk.unwritten:
                left_of_message = talk.unwritten % len(self._message) or len(self._message)
                # MSG_EOR: the next message begins its own segment, and its acknowledgement is told apart.
                sent = flow.connection.send(self._message[:left_of_message], socket.MSG_EOR)
                talk.unwritten -= sent
                flow.written += sent
        except BlockingIOError:
            pass
        except OSError as error:
            flow.error = error.strerror or str(error)
            self.finish(flow)
            return
        self.poll.modify(flow.connection.fileno(), select.EPOLLRDHUP | (select.EPOLLOUT if talk.unwritten else 0))

    def _acknowledged(self, flow: Flow) -> None:
        """Every message whose last byte the kernel says was acknowledged."""
        talk = self._talks[flow.index]
        now_ns = time.monotonic_ns()
        while (offset := _next_acknowledged(flow.connection)) is not None:
            while talk.waiting and talk.waiting[0].end_offset <= offset:
                message = talk.waiting.popleft()
                info = tcpinfo.read(flow.connection)
                record: Record = {
                    "flow": flow.index,
                    "start_ns": message.start_ns,
                    "end_ns": now_ns,
                    "bytes": len(self._message),
                    "retransmits": info.total_retrans - message.retransmits,
                    "srtt_us": info.rtt_us,
                }
                self.writer.write({"transfer": record})


def _next_acknowledged(connection: socket.socket) -> int | None:
    """How many bytes of the stream the oldest notice on the error queue says were acknowledged; None when it is empty."""
    while True:
        try:
            _, ancillary, _, _ = connection.recvmsg(0, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
        except OSError:
            return None
        for level, kind, data in ancillary:
            if (level, kind) in ((socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR)):
                _, origin, _, _, _, info, offset = _EXTENDED_ERR.unpack_from(data)
                if origin == _ORIGIN_TIMESTAMPING and info == _SCM_TSTAMP_ACK:
                    return offset + 1


def interactive(options: InteractiveOptions) -> Record:
    """Run it; returns the summary that it also writes. Raises HostsError as `send` does."""
    options.check()
    return run_sender(options.send, lambda flows, writer, stop: _InteractiveSender(options, flows, writer, stop))
