# SPDX-License-Identifier: Apache-2.0
"""The routes of the live page: static files, the list of topologies, one stream of server-sent events a viewer. Read-only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.logs import ROOT, RateLimitedLog
from fairlane_controller.web.hub import Hub
from fairlane_controller.web.listen import Listen

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


class PageServer:
    """The handlers; `app()` is what aiohttp runs."""

    def __init__(self, hub: Hub, listen: Listen) -> None:
        self._hub = hub
        self._listen = listen
        self._files = {f"/static/{path.name}": path for path in sorted(STATIC.iterdir()) if path.suffix in TYPES}

    def app(self) -> web.Application:
        """Routes and guard; ends the hub when it ends."""
        app = web.Application(middlewares=[guard(self._listen)])
        app.router.add_get("/", self._index)
        app.router.add_get("/static/{name}", self._static)
        app.router.add_get("/api/topologies", self._topologies)
        app.router.add_get("/api/stream", self._stream)

        async def end(_: web.Application) -> None:
            await self._hub.close()

        app.on_cleanup.append(end)
        return app

    async def _index(self, _request: web.Request) -> web.StreamResponse:
        return self._file(STATIC / "index.html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.path)
        if path is None:
            raise web.HTTPNotFound
        return self._file(path)

    @staticmethod
    def _file(path: Path) -> web.Response:
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
