# SPDX-License-Identifier: Apache-2.0
"""TCP_INFO: the layout of linux/tcp.h, short and long answers of other kernels, and a real socket."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Generator

import pytest
from fairlane_hosts import tcpinfo
from fairlane_hosts.errors import HostsError

# Offsets by linux/tcp.h, worked out by hand: 8 bytes, 24 u32, 4 u64, 6 u32, 4 u64, 2 u32, 2 u64, 4 u32 (to snd_wnd), 2 u32.
OFFSETS = {"rto_us": 8, "unacked": 24, "rtt_us": 68, "snd_cwnd": 80, "total_retrans": 100}
WIDE = {"bytes_acked": 120, "bytes_received": 128}
"""Offsets in struct tcp_info."""


@pytest.mark.parametrize("length", [232, 240, 400])
def test_every_field_is_read_from_its_offset(length: int) -> None:
    data = bytearray(length)
    for form, offsets in (("=I", OFFSETS), ("=Q", WIDE)):
        for offset in offsets.values():
            struct.pack_into(form, data, offset, 1000 + offset)
    assert tcpinfo.parse(bytes(data))._asdict() == {name: 1000 + at for name, at in {**OFFSETS, **WIDE}.items()}


@pytest.mark.parametrize("length", [0, 104, 231])
def test_a_kernel_that_lacks_a_needed_field_is_refused(length: int) -> None:
    with pytest.raises(HostsError, match=f"has {length} bytes, not 232; want 5.15") as caught:
        tcpinfo.parse(bytes(length))
    assert caught.value.kind == "kernel-unsupported"


@contextlib.contextmanager
def connected() -> Generator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=5)
        server, _ = listener.accept()
        with client, server:
            server.settimeout(5)
            yield client, server


def test_a_real_socket_agrees_with_what_it_did() -> None:
    with connected() as (client, server):
        base = tcpinfo.read(client).bytes_acked
        client.sendall(b"x" * 5000)
        received = 0
        while received < 5000:
            received += len(server.recv(5000))
        server.sendall(b"y")  # carries the ACK of all
        assert client.recv(1) == b"y"
        info = tcpinfo.read(client)
        assert info.bytes_acked - base == 5000
        assert info.bytes_received == 1
        assert info.snd_cwnd >= 1
        assert info.total_retrans == 0
        assert tcpinfo.read(server).bytes_received == 5000
