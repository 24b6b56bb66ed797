# SPDX-License-Identifier: Apache-2.0
"""Datagrams at a constant rate, and the sink that counts them."""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass

from ..errors import HostsError
from .options import FLOWS_RANGE, SinkOptions, check_range
from .records import Record, RecordWriter, name_of, write_ready
from .signals import StopSignal

PAYLOAD_RANGE = (1, 1472)
"""One frame of an MTU of 1,500 bytes."""


@dataclass(frozen=True)
class UdpOptions:
    """What `fairlane-traffic udp` does."""

    address: str
    port: int
    rate_bps: int
    """Of payload, each flow."""
    payload_bytes: int
    seconds: float
    flows: int = 1
    out: str = "-"
    start_at_ns: int | None = None

    def check(self) -> None:
        """Raises HostsError `option`."""
        check_range("rate-bps", self.rate_bps, 100, 10**10)
        check_range("payload", self.payload_bytes, *PAYLOAD_RANGE)
        check_range("seconds", self.seconds, 0.01, 86_400)
        check_range("flows", self.flows, *FLOWS_RANGE)


def udp(options: UdpOptions) -> Record:
    """Send until the time is over or a signal comes; returns the summary that it also writes. Raises HostsError."""
    options.check()
    stop = StopSignal()
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    sockets = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(options.flows)]
    payload = bytes(options.payload_bytes)
    sent = refused = 0
    try:
        with RecordWriter(options.out) as writer:
            for one in sockets:
                one.connect((options.address, options.port))
            now_ns = time.monotonic_ns()
            asked_ns = now_ns if options.start_at_ns is None else options.start_at_ns
            start_ns = max(asked_ns, now_ns)
            end_ns = start_ns + round(options.seconds * 1e9)
            step = 0
            while not stop.stopped:
                due_ns = start_ns + step * options.payload_bytes * 8 * 10**9 // options.rate_bps
                if due_ns >= end_ns:
                    due_ns = end_ns
                if (left_ns := due_ns - time.monotonic_ns()) > 0:
                    select.select([stop.fd], [], [], left_ns / 1e9)
                    continue
                if due_ns == end_ns:
                    break
                for one in sockets:
                    try:
                        one.send(payload)
                        sent += 1
                    except OSError:  # a full queue, or the sink's port is closed: a datagram is lost, as on the way
                        refused += 1
                step += 1
            peers: list[Record] = [{"flow": index, "local": name_of(one)} for index, one in enumerate(sockets)]
            summary: Record = {
                "to": f"{options.address}:{options.port}",
                "start_ns": start_ns,
                "end_ns": time.monotonic_ns(),
                "late_ns": max(0, now_ns - asked_ns),
                "stopped_by_signal": stop.stopped,
                "sent": sent,
                "refused": refused,
                "peers": peers,
                "flows": [],
            }
            writer.summary(summary)
    finally:
        for one in sockets:
            one.close()
    return summary


def udp_sink(options: SinkOptions) -> Record:
    """Count datagrams by sender until the time is over or a signal comes. Raises HostsError `option`."""
    options.check()
    stop = StopSignal()
    received: dict[str, list[int]] = {}
    family = socket.AF_INET6 if ":" in options.bind else socket.AF_INET
    with RecordWriter(options.out) as writer, socket.socket(family, socket.SOCK_DGRAM) as one:
        try:
            one.bind((options.bind, options.port))
        except OSError as error:
            where = f"{options.bind} port {options.port}"
            raise HostsError("option", f"cannot receive at {where}: {error.strerror}") from error
        one.setblocking(False)
        port: int = one.getsockname()[1]
        write_ready(options.ready_file, port)
        start_ns = time.monotonic_ns()
        end_ns = None if options.seconds is None else start_ns + round(options.seconds * 1e9)
        period_ns = options.sample_ms * 1_000_000
        next_ns = start_ns + period_ns
        while not stop.stopped and (end_ns is None or time.monotonic_ns() < end_ns):
            left_s = max(0.0, (next_ns - time.monotonic_ns()) / 1e9)
            ready, _, _ = select.select([one, stop.fd], [], [], left_s)
            if one in ready:
                _drain(one, received, writer)
            if (now_ns := time.monotonic_ns()) >= next_ns:
                _sample(writer, received, now_ns)
                next_ns += period_ns * ((now_ns - next_ns) // period_ns + 1)
        _sample(writer, received, time.monotonic_ns())
        summary: Record = {
            "port": port,
            "start_ns": start_ns,
            "end_ns": time.monotonic_ns(),
            "stopped_by_signal": stop.stopped,
            "connections": [{"peer": peer, "bytes": b, "packets": n} for peer, (b, n) in received.items()],
        }
        writer.summary(summary)
    return summary


def _drain(one: socket.socket, received: dict[str, list[int]], writer: RecordWriter) -> None:
    try:
        while True:
            data, address = one.recvfrom(65_535)
            peer = f"{address[0]}:{address[1]}"
            if peer not in received:
                writer.write({"t_ns": time.monotonic_ns(), "peer": peer, "bytes": 0})
            cell = received.setdefault(peer, [0, 0])
            cell[0] += len(data)
            cell[1] += 1
    except BlockingIOError:
        return


def _sample(writer: RecordWriter, received: dict[str, list[int]], now_ns: int) -> None:
    for peer, (count, _) in received.items():
        writer.write({"t_ns": now_ns, "peer": peer, "bytes": count})
