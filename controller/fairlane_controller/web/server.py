# SPDX-License-Identifier: Apache-2.0
"""The routes of the live page: static files, the list of topologies, one stream of server-sent events a viewer. Read-only."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.logs import ROOT, RateLimitedLog
from fairlane_controller.web.hub import Hub

STATIC = Path(__file__).parent / "static"
WRITE_TIMEOUT_S = 10.0
"""A viewer who takes nothing for so long is let go."""
IDLE_S = 20.0
"""A connection without a request for so long is closed."""
HANDSHAKE_S = 5.0
"""What a TLS handshake may take."""
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def guard(listen: Listen) -> Middleware:
    """Only requests that are meant for us, only reads; and what every answer says about itself."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not listen.answers_to(request.headers.get("Host", "")):
            refusal = "421: this server does not go by that name (allow it with --name)\n"
            return web.Response(status=421, text=refusal, headers=dict(HEADERS))
        try:
            answer = await handler(request)
        except web.HTTPException as ex:
            ex.headers.update(HEADERS)
            raise
        if not answer.prepared:
            answer.headers.update({key: value for key, value in HEADERS.items() if key not in answer.headers})
        return answer

    return check


def make_app(
    listen: Listen, routes: Mapping[str, Handler], close: Callable[[], Coroutine[Any, Any, None]]
) -> web.Application:
    """An application that answers GET of these paths to whom it may, and calls `close` at its end."""
    app = web.Application(middlewares=[guard(listen)])
    app.router.add_routes([web.get(path, handler) for path, handler in routes.items()])

    async def end(_: web.Application) -> None:
        await close()

    app.on_cleanup.append(end)
    return app


class PageServer:
    """The handlers; `app()` is what aiohttp runs."""

    def __init__(self, hub: Hub, listen: Listen) -> None:
        self._hub = hub
        self._listen = listen

    def app(self) -> web.Application:
        """Routes and guard; ends the hub when it ends."""
        routes = {
            "/": self._file,
            "/static/{name}": self._file,
            "/api/topologies": self._topologies,
            "/api/stream": self._stream,
        }
        return make_app(self._listen, routes, self._hub.close)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = STATIC / request.match_info.get("name", "index.html")
        if path.parent != STATIC or path.suffix not in TYPES or not path.is_file():
            raise web.HTTPNotFound
        return web.Response(body=path.read_bytes(), content_type=TYPES[path.suffix], charset="utf-8")

    async def _topologies(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"topologies": self._hub.names(), "titles": self._hub.titles()})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        hub = self._hub
        if hub.viewers >= hub.options.max_viewers:
            return web.json_response({"error": f"{hub.viewers} viewers are here already"}, status=503)
        hub.viewers += 1  # before anything is waited for: many may ask at once
        try:
            return await self._tell(request)
        except FairlaneError as ex:
            status = 404 if ex.code in (ErrorCode.UNKNOWN_NAME, ErrorCode.NO_TOPOLOGY) else 500
            return web.json_response({"error": ex.to_json()}, status=status)
        finally:
            hub.viewers -= 1

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        """The stream until the viewer goes; raises what is wrong before its first byte."""
        feed = await self._hub.feed(request.query.get("topology"))
        feed.viewers += 1
        messages = feed.messages()
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"})
        try:
            await answer.prepare(request)
            async for event, data in messages:
                text = f"event: {event}\ndata: {data}\n\n"
                await asyncio.wait_for(answer.write(text.encode()), WRITE_TIMEOUT_S)
        except ConnectionError:
            pass  # it went away
        except (TimeoutError, asyncio.TimeoutError):
            if request.transport is not None:  # it takes nothing, so it would not take the end of the answer either
                request.transport.abort()
        finally:
            feed.viewers -= 1
            await messages.aclose()
        return answer


class _HttpLog(logging.LoggerAdapter[logging.Logger]):
    """What aiohttp logs: a request that is no HTTP is one line of warning, not a fault of ours with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger(f"{ROOT}.web"), {})
        self._warn = RateLimitedLog(self.logger)

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:  # type: ignore[override]
        problem = kwargs.get("exc_info")
        if isinstance(problem, HttpProcessingError):
            words = " ".join(str(problem.message).split())[:200]
            self._warn("request", f"a client's request was refused: {problem.code} {words}")
        else:
            self.error(msg, *args, exc_info=problem)


@contextlib.asynccontextmanager
async def served(app: web.Application, listen: Listen) -> AsyncGenerator[int]:
    """The application while inside; gives the port. Raises BAD_INPUT when the address cannot be had."""
    logger: Any = _HttpLog()  # aiohttp calls three methods of it
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=IDLE_S, logger=logger)
    await runner.setup()
    assert runner.server is not None
    try:
        try:  # not web.TCPSite, which knows no time limit of the handshake
            server = await asyncio.get_running_loop().create_server(
                runner.server,
                listen.host,
                listen.port,
                ssl=listen.tls,
                ssl_handshake_timeout=HANDSHAKE_S if listen.tls else None,
            )
        except OSError as ex:
            raise FairlaneError(
                ErrorCode.BAD_INPUT, f"cannot listen on {listen.host}:{listen.port}: {ex.strerror or ex}"
            ) from None
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Listen:
    """An address that was checked, and the certificate for it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    names: tuple[str, ...] = ()
    "Host names that clients may call it by; IP addresses and localhost they may always."

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.tls else "http"

    def url(self, port: int) -> str:
        """The address for people, with the port that was really given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}/"

    @property
    def readers(self) -> str:
        """Who may read what is served here, in words."""
        if self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED:
            return "whoever has a certificate of the client CA"
        return (
            "every user of this machine" if _is_loopback(self.host) else "everybody who reaches it: no --tls-client-ca"
        )

    def answers_to(self, host_header: str) -> bool:
        """Whether a request with this `Host` is for us: a page elsewhere whose name was pointed here (DNS rebinding) is not."""
        name = _split(host_header.strip())[0] or ""
        return name in ("localhost", self.host.lower(), *(n.lower() for n in self.names)) or _is_address(name)


def _split(text: str) -> tuple[str | None, int | None]:
    """Host and port of `HOST:PORT`, None what is not there."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{text}")
        if parts.netloc == text and "@" not in text:
            return parts.hostname, parts.port
    return None, None


def parse_listen(
    text: str,
    option: str,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    names: tuple[str, ...] = (),
) -> Listen:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:0`; BAD_INPUT for what is no address, or not loopback and without TLS."""
    host, port = _split(text)
    if not host or port is None:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{option} {text!r}: must be HOST:PORT with a port of 0 to 65535, e.g. 127.0.0.1:8080 or [::1]:8080",
        )
    tls = _context(tls_cert, tls_key, tls_client_ca)
    if tls is None and not _is_loopback(host):
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"{option} {text}: everybody who reaches {host} could read along: give --tls-cert and --tls-key, or listen on 127.0.0.1",
        )
    return Listen(host, port, tls, names)


def _context(cert: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        if client_ca is not None:
            raise FairlaneError(ErrorCode.BAD_INPUT, "--tls-client-ca needs --tls-cert and --tls-key")
        return None
    if cert is None or key is None:
        missing = "--tls-key" if key is None else "--tls-cert"
        raise FairlaneError(ErrorCode.BAD_INPUT, f"--tls-cert and --tls-key go together: {missing} is missing")
    context, what = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), f"--tls-cert {cert} with --tls-key {key}"
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
        if client_ca is not None:
            what = f"--tls-client-ca {client_ca}"
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{what}: {ex}") from None
    return context


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
