# SPDX-License-Identifier: Apache-2.0
"""Where a switch serves P4Runtime when its habitual port is free, held by an outgoing connection, or served by another process."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
import unused_ports
from fairlane_switch.process import accepts
from fairlane_topology import ports as fl_ports

LOOPBACK = "127.0.0.1"
EPHEMERAL_MIN = 32_768
"""First port that Linux gives to outgoing connections."""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Somebody who listens on a port of the kernel's choice."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        yield listening


def connected(server: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of an outgoing connection to it, whose port is not for sharing, as of any client.

    Its fallback is free, and below the ephemeral range: no connection of another test can take it.
    """
    for port in range(EPHEMERAL_MIN + fl_ports.FALLBACK_BELOW - 1, EPHEMERAL_MIN, -1):
        with suppress(OSError):
            if fl_ports.can_bind(LOOPBACK, port - fl_ports.FALLBACK_BELOW):
                client = socket.create_connection(server.getsockname(), timeout=5, source_address=(LOOPBACK, port))
                return client, server.accept()[0]
    raise AssertionError("no free port whose fallback is free too")


def test_a_free_port_is_kept() -> None:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        free = f"{LOOPBACK}:{probe.getsockname()[1]}"
    assert fl_ports.choose(free) == free


def test_a_port_on_which_another_process_listens_is_refused(server: socket.socket) -> None:
    address = f"{LOOPBACK}:{server.getsockname()[1]}"
    with pytest.raises(RuntimeError, match=f"^another process serves {address} already$"):
        fl_ports.choose(address)


@pytest.mark.parametrize("state", ["established", "time-wait"])
def test_a_port_that_an_outgoing_connection_holds_gives_one_below_the_ephemeral_range(
    server: socket.socket, state: str
) -> None:
    client, accepted = connected(server)
    with closing(client), closing(accepted):
        port = client.getsockname()[1]
        if state == "time-wait":  # who closes first waits for 60 s
            client.close()
            accepted.close()
        chosen = fl_ports.choose(f"{LOOPBACK}:{port}")
        assert chosen == f"{LOOPBACK}:{port - fl_ports.FALLBACK_BELOW}"
        with socket.create_server((LOOPBACK, port - fl_ports.FALLBACK_BELOW)):
            expected = f"an outgoing connection holds {LOOPBACK}:{port}, and port {port - 20_000} is taken too"
            with pytest.raises(RuntimeError, match=expected):
                fl_ports.choose(f"{LOOPBACK}:{port}")


def test_the_last_port_of_the_last_instance_falls_below_the_ephemeral_range() -> None:
    last = [
        fl_ports.BASE_GRPC_PORT + fl_ports.PORTS_PER_INSTANCE * (number + 1)
        for number in (fl_ports.INSTANCE_MAX, fl_ports.INSTANCE_MAX + 1)
    ]
    assert [port - fl_ports.FALLBACK_BELOW <= EPHEMERAL_MIN for port in last] == [True, False]


def test_a_connection_to_itself_is_no_server() -> None:
    with socket.socket() as alone:
        alone.bind((LOOPBACK, 0))
        alone.connect(alone.getsockname())  # simultaneous open: connected without anybody who listens
        assert alone.getsockname() == alone.getpeername()
        port = alone.getsockname()[1]
        assert not fl_ports.listens(port)
    assert not accepts(f"{LOOPBACK}:{port}", timeout_s=0.2)


def test_a_server_accepts(server: socket.socket) -> None:
    assert accepts(f"{LOOPBACK}:{server.getsockname()[1]}", timeout_s=2)
    with socket.socket() as probe:
        assert probe.connect_ex(server.getsockname()) != errno.ECONNREFUSED


def test_unused_ports_are_given_once_and_pass_over_those_that_are_taken() -> None:
    first = unused_ports.unused()
    with socket.create_server(
        (LOOPBACK, first + 1 if first + 1 in unused_ports.UNNUMBERED else unused_ports.UNNUMBERED[0])
    ) as taken:
        given = [unused_ports.unused() for _ in range(500)]
        assert taken.getsockname()[1] not in given
    assert len({first, *given}) == 501
    assert set(given) <= set(unused_ports.UNNUMBERED)
