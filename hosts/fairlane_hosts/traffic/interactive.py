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
from .send import CHUNK, Flow, Sender, run_sender
from .signals import StopSignal

_SO_TIMESTAMPING = 37
_TX_ACK, _SOFTWARE, _OPT_ID, _OPT_TSONLY = 1 << 9, 1 << 4, 1 << 7, 1 << 11
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_ORIGIN_TIMESTAMPING, _SCM_TSTAMP_ACK = 4, 2
_EXTENDED_ERR = struct.Struct("=IBBBBII")
_ANCILLARY_BYTES = 512
NEVER_NS = 10**15
"""So far away is an instant that does not come."""


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
    bytes: int
    end_offset: int
    retransmits: int


@dataclass
class _Talk:
    """When a flow's next message is asked for, and what is not acknowledged."""

    next_ns: int
    asked: int = 0
    waiting: deque[_Message] = field(default_factory=deque[_Message])


class MessageSender(Sender):
    """A connection a flow, message by message, the time until each is acknowledged on record. What is asked for when is its heirs'."""

    def __init__(self, options: SendOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        super().__init__(options, flows, writer, stop)
        self._talks = [_Talk(flow.start_ns) for flow in flows]
        for flow in flows:
            flow.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wanted = _TX_ACK | _SOFTWARE | _OPT_ID | _OPT_TSONLY
            flow.connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, wanted)

    def message(self, flow: Flow, at_ns: int) -> tuple[int, int]:
        """Bytes of the message that is asked for at an instant, and the instant of the next one."""
        raise NotImplementedError

    def acknowledged(self, flow: Flow, now_ns: int) -> None:
        """A message was."""

    def ask_at(self, flow: Flow, at_ns: int) -> None:
        """Sets the instant of the next message."""
        self._talks[flow.index].next_ns = at_ns

    def next_due_ns(self) -> int:
        return min(talk.next_ns for talk in self._talks)

    def start_due(self, now_ns: int) -> None:
        for flow, talk in zip(self.flows, self._talks, strict=True):
            while now_ns >= talk.next_ns and flow.finished_ns is None:
                start_ns = talk.next_ns
                size, talk.next_ns = self.message(flow, start_ns)
                talk.asked += size
                retransmits = tcpinfo.read(flow.connection).total_retrans
                talk.waiting.append(_Message(start_ns, size, talk.asked, retransmits))
                self.write_some(flow)
            if flow.finished_ns is not None:
                talk.next_ns = time.monotonic_ns() + NEVER_NS

    def handle(self, flow: Flow, events: int) -> None:
        if events & select.EPOLLERR and not events & (select.EPOLLHUP | select.EPOLLRDHUP):
            self._take_acknowledged(flow)
            if events & select.EPOLLOUT:
                self.write_some(flow)
            return
        super().handle(flow, events)

    def write_some(self, flow: Flow) -> None:
        talk = self._talks[flow.index]
        try:
            while flow.written < talk.asked:
                end = next(message.end_offset for message in talk.waiting if message.end_offset > flow.written)
                left = end - flow.written
                # MSG_EOR: the next message begins its own segment, and its acknowledgement is told apart.
                flow.written += flow.connection.send(CHUNK[:left], socket.MSG_EOR if left <= len(CHUNK) else 0)
        except BlockingIOError:
            pass
        except OSError as error:
            flow.error = error.strerror or str(error)
            self.finish(flow)
            return
        unwritten = flow.written < talk.asked
        self.poll.modify(flow.connection.fileno(), select.EPOLLRDHUP | (select.EPOLLOUT if unwritten else 0))

    def _take_acknowledged(self, flow: Flow) -> None:
        """Every message whose last byte the kernel says was acknowledged."""
        talk = self._talks[flow.index]
        now_ns = time.monotonic_ns()
        while (offset := _next_acknowledged(flow.connection)) is not None:
            while talk.waiting and (offset - talk.waiting[0].end_offset) % 2**32 < 2**31:  # the kernel counts to 2^32
                message = talk.waiting.popleft()
                info = tcpinfo.read(flow.connection)
                record: Record = {
                    "flow": flow.index,
                    "start_ns": message.start_ns,
                    "end_ns": now_ns,
                    "bytes": message.bytes,
                    "retransmits": info.total_retrans - message.retransmits,
                    "srtt_us": info.rtt_us,
                }
                self.writer.write({"transfer": record})
                self.acknowledged(flow, now_ns)


class _InteractiveSender(MessageSender):
    def __init__(self, options: InteractiveOptions, flows: list[Flow], writer: RecordWriter, stop: StopSignal) -> None:
        super().__init__(options.send, flows, writer, stop)
        self.interactive = options

    def message(self, flow: Flow, at_ns: int) -> tuple[int, int]:  # noqa: ARG002
        return self.interactive.message_bytes, at_ns + round(self.interactive.interval_s * 1e9)


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
