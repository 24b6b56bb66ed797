# SPDX-License-Identifier: Apache-2.0
"""The connections of an HTTP server, bounded in number and in idle time, so that nobody locks the others out; and what is said of it.

aiohttp accepts without a bound and times neither a TLS handshake nor a request that comes a byte a minute. Here each accepted
socket counts from the first packet on, also during its handshake; it is closed when no request of it is served for `idle_s`.
At the limit the one that is idle for longest makes room, so a new client is refused only while all others are being served.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from fairlane_controller.logs import ROOT

LOG = logging.getLogger(f"{ROOT}.web")
SAY_EVERY_S = 10.0
"""A line that repeats comes this often, with how many there were."""
BACKLOG = 128
RETRY_S = 0.1
"""Until the next accept after the system had no descriptor for one."""


@dataclass(frozen=True)
class Limits:
    """Of one address."""

    connections: int = 256
    idle_s: float = 20.0
    """From the connection, or the last answer, to the end of the next request's head; and what an answer may take to be sent."""
    handshake_s: float = 5.0
    dead_s: float = 30.0
    """A client that acknowledges nothing of what it was sent for so long has gone."""


class RateLimitedLog:
    """A log that repeats a warning at most every `SAY_EVERY_S`, with the number of repetitions that it left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_s: dict[str, float] = {}
        self._kept: dict[str, int] = {}

    def __call__(self, kind: str, text: str) -> None:
        now_s = self._clock()
        if now_s - self._said_s.get(kind, -SAY_EVERY_S) < SAY_EVERY_S:
            self._kept[kind] = self._kept.get(kind, 0) + 1
            return
        self._said_s[kind] = now_s
        kept = self._kept.pop(kind, 0)
        LOG.warning("%s%s", text, f" ({kept} more since the last line)" if kept else "")


class _Connection(asyncio.Protocol):
    """One accepted socket: aiohttp's protocol, and when it is idle."""

    def __init__(self, owner: Connections, sock: socket.socket, inner: asyncio.Protocol) -> None:
        self._owner = owner
        self._inner = inner
        self._serving = 0
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        "None until the handshake is done."
        self.task = asyncio.get_running_loop().create_task(self._begin(sock))

    async def _begin(self, sock: socket.socket) -> None:
        loop, listen, limits = asyncio.get_running_loop(), self._owner.tls, self._owner.limits
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * limits.dead_s))
            if listen is None:
                await loop.connect_accepted_socket(lambda: self, sock)
            else:
                await loop.connect_accepted_socket(
                    lambda: self, sock, ssl=listen, ssl_handshake_timeout=limits.handshake_s
                )
        except (OSError, ssl.SSLError, asyncio.CancelledError) as ex:  # it went away, speaks no TLS, or made room
            sock.close()
            self._owner.forget(self)
            if isinstance(ex, asyncio.CancelledError):
                raise

    def close(self) -> None:
        """At once, whatever it is doing."""
        self.task.cancel()
        if self.transport is not None:
            self.transport.abort()

    def begin_request(self) -> None:
        """A handler runs: it must not be closed."""
        self._serving += 1
        self._stop_timer()
        self._owner.busy(self)

    def end_request(self) -> None:
        """The handler has ended: from here on the connection is idle, and its answer on its way."""
        self._serving -= 1
        if not self._serving and self.transport is not None:
            self._start_timer()
            self._owner.idle(self)

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(self._owner.limits.idle_s, self.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---- asyncio.Protocol: all of it is aiohttp's ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._owner.add_connection(self, transport)
        self._start_timer()
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._owner.forget(self)
        self.transport = None
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


class Connections:
    """Accepts for `make_protocol`, within `limits`; `add` first, then `start`."""

    def __init__(
        self, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None, limits: Limits
    ) -> None:
        self.tls = tls
        self.limits = limits
        self.say = RateLimitedLog()
        self._make = make_protocol
        self._idle: dict[_Connection, None] = {}
        "In the order in which they became so."
        self._busy: set[_Connection] = set()
        self._by_transport: dict[asyncio.BaseTransport, _Connection] = {}
        self._listeners: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port. Raises OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            self._listeners.append(listener)
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address[0], port, *address[2:]))
            listener.listen(BACKLOG)
            port = listener.getsockname()[1]  # all addresses of a host name have the same
        self._tasks = [loop.create_task(self._accept(listener)) for listener in self._listeners]
        return port

    async def close(self) -> None:
        """Accept no more; those that are open are the server's to end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()

    def abort(self) -> None:
        """End what is still open."""
        for connection in (*self._idle, *self._busy):
            connection.close()

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._idle) + len(self._busy)

    def middleware(self) -> Middleware:
        """Tells a connection when a request of it is served."""

        @web.middleware
        async def tell(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = None if request.transport is None else self._by_transport.get(request.transport)
            if connection is None:
                return await handler(request)
            connection.begin_request()
            try:
                return await handler(request)
            finally:
                connection.end_request()

        return tell

    def add_connection(self, connection: _Connection, transport: asyncio.BaseTransport) -> None:
        """Add a connection whose handshake is done."""
        self._by_transport[transport] = connection

    def idle(self, connection: _Connection) -> None:
        """Nothing of it is being served."""
        self._busy.discard(connection)
        self._idle[connection] = None

    def busy(self, connection: _Connection) -> None:
        """A request of it is being served."""
        self._idle.pop(connection, None)
        self._busy.add(connection)

    def forget(self, connection: _Connection) -> None:
        """It is closed."""
        self._busy.discard(connection)
        self._idle.pop(connection, None)
        if connection.transport is not None:
            self._by_transport.pop(connection.transport, None)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as ex:  # no descriptor is left, or the client has gone already
                self.say("accept", f"a connection could not be accepted: {ex.strerror or ex}")
                await asyncio.sleep(RETRY_S)
                continue
            if self.count >= self.limits.connections and not self._make_room():
                sock.close()
                continue
            sock.setblocking(False)
            self._idle[_Connection(self, sock, self._make())] = None

    def _make_room(self) -> bool:
        oldest = next(iter(self._idle), None)
        limit = f"{self.limits.connections} connections are open, which is the limit"
        if oldest is None:
            self.say("full", f"{limit}, and all are being served: a new one was refused")
            return False
        self.say("limit", f"{limit}: the one that was idle for longest was closed")
        self._idle.pop(oldest)
        oldest.close()
        return True


class HttpLog(logging.LoggerAdapter[logging.Logger]):
    """What aiohttp logs: a request that is no HTTP is one line of warning, not a fault of ours with a traceback."""

    def __init__(self, say: RateLimitedLog) -> None:
        super().__init__(LOG, {})
        self._say = say

    def exception(self, msg: object, *args: object, **kwargs: object) -> None:  # type: ignore[override]
        problem = kwargs.get("exc_info")
        if isinstance(problem, HttpProcessingError):
            words = " ".join(str(problem.message).split())[:200]
            self._say("request", f"a client's request was refused: {problem.code} {words}")
            return
        LOG.error(msg, *args, exc_info=problem if isinstance(problem, BaseException) else None)
