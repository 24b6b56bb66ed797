# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of the live page and of the metrics. It answers reads only.

`/` and `/static/` are files, `/api/stream` is one stream of server-sent events (WHATWG HTML, section 9.2) for each viewer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from fairlane_controller.errors import FairlaneError, bad_file, bad_input
from fairlane_controller.logs import ROOT
from fairlane_controller.web.hub import Feed

STATIC = Path(__file__).parent / "static"
WRITE_TIMEOUT_S = 10.0
"""A viewer who takes nothing for so long is disconnected."""
IDLE_S = 20.0
"""A connection without a request for so long is closed."""
LOG = logging.getLogger(f"{ROOT}.web")

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def make_app(
    listen: Listen, routes: Mapping[str, Handler], close: Callable[[], Coroutine[Any, Any, None]]
) -> web.Application:
    """An application that answers GET of `routes` to requests with a permitted Host, and calls `close` at its end."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not listen.answers_to(request.headers.get("Host", "")):
            raise web.HTTPMisdirectedRequest(text="421: this server has another name (allow this one with --name)\n")
        return await handler(request)

    async def add_headers(_: web.Request, answer: web.StreamResponse) -> None:
        answer.headers.update(HEADERS)

    async def end(_: web.Application) -> None:
        await close()

    app = web.Application(middlewares=[check_host])
    app.router.add_routes([web.get(path, handler) for path, handler in routes.items()])
    app.on_response_prepare.append(add_headers)
    app.on_cleanup.append(end)
    return app


def page_app(feed: Feed, listen: Listen) -> web.Application:
    """The application of the live page."""

    async def index(_: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def stream(request: web.Request) -> web.StreamResponse:
        """Server-sent events until the viewer disconnects or takes nothing for WRITE_TIMEOUT_S."""
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        async with contextlib.aclosing(feed.messages()) as messages:
            try:
                message = await anext(messages)
                await answer.prepare(request)
                while True:
                    await asyncio.wait_for(answer.write(f"data: {message}\n\n".encode()), WRITE_TIMEOUT_S)
                    message = await anext(messages)
            except FairlaneError as ex:
                return web.json_response({"error": ex.to_json()}, status=503)
            except ConnectionError:
                pass
            except (TimeoutError, asyncio.TimeoutError):
                if request.transport is not None:  # the viewer would not take the end of the answer either
                    request.transport.abort()
        return answer

    app = make_app(listen, {"/": index, "/api/stream": stream}, feed.sampler.__aexit__)
    app.on_startup.append(lambda _: feed.sampler.__aenter__())
    app.router.add_static("/static", STATIC)
    return app


@LOG.addFilter
def _is_not_of_a_client(record: logging.LogRecord) -> bool:
    """A request that is no HTTP gets the answer 400 and no traceback in the log."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


@contextlib.asynccontextmanager
async def served(app: web.Application, listen: Listen) -> AsyncGenerator[int]:
    """Serve the application while inside; gives the port.

    Raises:
        FairlaneError: BAD_INPUT, the address cannot be used.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=IDLE_S, logger=LOG)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, listen.host, listen.port, ssl_context=listen.tls).start()
        except OSError as ex:
            raise bad_input(f"cannot listen on {listen.host}:{listen.port}: {ex.strerror or ex}") from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Listen:
    """An address that was checked, and the certificate for it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    names: Sequence[str] = ()
    "Host names that clients may use; IP addresses and localhost are always allowed."

    def url(self, port: int) -> str:
        """The address for people, with the port that was assigned."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{port}/"

    def answers_to(self, host_header: str) -> bool:
        """Whether the header `Host` names this server: the page of another site whose name was pointed here (DNS rebinding) does not."""
        name = _split(host_header.strip())[0] or ""
        return name in ("localhost", self.host.lower(), *(n.lower() for n in self.names)) or _address(name) is not None


def parse_listen(
    text: str,
    option: str,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    names: Sequence[str] = (),
) -> Listen:
    """The address `127.0.0.1:8080`, `[::1]:8080` or `localhost:0`, checked.

    Raises:
        FairlaneError: BAD_INPUT: it is no address, or not loopback and without TLS; BAD_FILE: a certificate is wrong.
    """
    host, port = _split(text)
    if not host or port is None:
        raise bad_input(f"{option} {text!r}: must be HOST:PORT, e.g. 127.0.0.1:8080 or [::1]:8080")
    if bool(tls_cert) != bool(tls_key) or (tls_client_ca and not tls_cert):
        raise bad_input("--tls-cert and --tls-key go together, and --tls-client-ca needs both of them")
    address = _address(host)
    if tls_cert is None and host.lower() != "localhost" and (address is None or not address.is_loopback):
        raise bad_input(
            f"{option} {text}: everybody who reaches {host} could read along: give --tls-cert and --tls-key, or listen on 127.0.0.1",
        )
    return Listen(host, port, _context(tls_cert, tls_key, tls_client_ca) if tls_cert else None, names)


def _context(cert: Path, key: Path | None, client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    what = f"--tls-cert {cert} with --tls-key {key}"
    try:
        context.load_cert_chain(cert, key)
        if client_ca is not None:
            what = f"--tls-client-ca {client_ca}"
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as ex:
        raise bad_file(f"{what}: {ex}") from None
    return context


def _split(text: str) -> tuple[str | None, int | None]:
    """Host and port of `HOST:PORT`; None where one is missing."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{text}")
        if parts.netloc == text and "@" not in text:
            return parts.hostname, parts.port
    return None, None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(name)
    return None
