# SPDX-License-Identifier: Apache-2.0
"""Clients of the page and of the metrics that do nothing, half of something, or no HTTP: they are bounded, and the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from fairlane_controller.cli.main import main
from fairlane_controller.logs import ROOT
from fairlane_controller.metrics.exporter import Exporter
from fairlane_controller.web import connections
from fairlane_controller.web.connections import Limits, RateLimitedLog
from fairlane_controller.web.hub import Hub
from fairlane_controller.web.listen import Listen, parse_listen
from fairlane_controller.web.server import PageServer, served

TIMEOUT_S = 20.0
FEW = Limits(connections=8, idle_s=60.0)
HASTY = Limits(connections=64, idle_s=0.2, handshake_s=0.2)
PATIENT = Limits(idle_s=3.0)
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Lines(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger(ROOT).addHandler(handler)
    yield handler
    logging.getLogger(ROOT).removeHandler(handler)


def page(listen: Listen) -> web.Application:
    """The live page of no topology, with a stream that never ends."""
    app = PageServer(Hub(dict), listen).app()

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"data: 1\n\n")
            await asyncio.sleep(0.02)

    app.router.add_get("/forever", stream)
    return app


def metrics(listen: Listen) -> web.Application:
    """The metrics of no topology."""
    return Exporter(dict, listen).app()


@contextlib.asynccontextmanager
async def server(limits: Limits, app: web.Application | None = None, tls: Listen | None = None) -> AsyncGenerator[int]:
    listen = tls or Listen("127.0.0.1", 0)
    async with served(app or page(listen), listen, limits) as port:
        yield port


async def connect(port: int, sent: bytes = b"") -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def closed(client: Client) -> bytes:
    """What comes until the server closes; fails when it does not."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(client[0].read(), TIMEOUT_S)
    return b""


async def get(port: int, path: str = "/") -> int:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"http://127.0.0.1:{port}{path}") as got:
        return got.status


@pytest.mark.parametrize("kind", [page, metrics])
async def test_idle_connections_lock_nobody_out(kind: object, lines: Lines) -> None:
    """More than the limit do nothing: the longest idle one makes room for each that comes."""
    app = (page if kind is page else metrics)(Listen("127.0.0.1", 0))
    async with server(FEW, app) as port:
        idle = [await connect(port) for _ in range(5 * FEW.connections)]
        assert await get(port) == 200
        for client in idle[: 4 * FEW.connections]:
            assert await closed(client) == b""
        assert await get(port) == 200
        for _, writer in idle:
            writer.close()
    (line,) = lines.texts
    assert line == "8 connections are open, which is the limit: the one that was idle for longest was closed"


async def test_who_is_being_served_is_not_closed_to_make_room() -> None:
    async with server(FEW) as port:
        stream = await connect(port, b"GET /forever HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(stream[0].readuntil(b"data: 1"), TIMEOUT_S)
        idle = [await connect(port) for _ in range(3 * FEW.connections)]
        assert await get(port) == 200
        for _ in range(20):
            await asyncio.wait_for(stream[0].readuntil(b"data: 1"), TIMEOUT_S)
        for _, writer in (*idle, stream):
            writer.close()


async def test_beyond_the_limit_of_those_that_are_served_a_new_one_is_refused(lines: Lines) -> None:
    async with server(FEW) as port:
        streams = [
            await connect(port, b"GET /forever HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(FEW.connections)
        ]
        for reader, _ in streams:
            await asyncio.wait_for(reader.readuntil(b"data: 1"), TIMEOUT_S)
        assert await closed(await connect(port)) == b""
        streams[0][1].close()
        for _ in range(1000):  # its end is noticed when it is written to
            with contextlib.suppress(aiohttp.ClientError):
                if await get(port) == 200:
                    break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError("the place of one that left was not given again")
        for _, writer in streams[1:]:
            writer.close()
    assert lines.texts[0].endswith("and all are being served: a new one was refused")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
async def test_a_request_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with server(HASTY) as port:
        assert await closed(await connect(port, sent)) == b""


async def test_a_byte_now_and_then_buys_no_time() -> None:
    async with server(HASTY) as port:
        reader, writer = await connect(port)

        async def trickle() -> None:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.02)

        task = asyncio.create_task(trickle())
        assert await closed((reader, writer)) == b""
        task.cancel()
        writer.close()


async def test_a_connection_that_was_served_is_closed_when_it_is_idle_again() -> None:
    async with server(PATIENT) as port:
        client = await connect(port, b"GET /api/topologies HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await closed(client)).startswith(b"HTTP/1.1 200 OK")


async def test_a_tls_handshake_that_does_not_come_is_not_waited_for_and_counts(tmp_path: Path) -> None:
    with contextlib.suppress(SystemExit):
        await asyncio.to_thread(main, ["setup", "certs", str(tmp_path / "certs")])
    certs = tmp_path / "certs"
    listen = parse_listen("127.0.0.1:0", "--listen", tls_cert=certs / "server.pem", tls_key=certs / "server.key")
    known = ssl.create_default_context(cafile=str(certs / "ca.pem"))
    async with server(HASTY, tls=listen) as port:
        assert await closed(await connect(port)) == b""
    async with server(Limits(connections=4, idle_s=60.0, handshake_s=60.0), tls=listen) as port:
        silent = [await connect(port) for _ in range(20)]
        async with aiohttp.ClientSession() as session:
            assert (await session.get(f"https://127.0.0.1:{port}/api/topologies", ssl=known)).status == 200
        for client in silent[:12]:
            await closed(client)
        for _, writer in silent:
            writer.close()


MALFORMED = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET\r\n\r\n",
    b"GET / HTTP/9\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 9000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
    b"GET /%ff%fe?%=&&=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /static/%2e%2e%2f%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x00\xff",
)


def mutated(chance: random.Random) -> bytes:
    """A malformed request, with a few bytes changed."""
    text = bytearray(chance.choice(MALFORMED))
    for _ in range(chance.randrange(4)):
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)


async def test_what_is_no_http_is_refused_in_a_line_and_without_a_traceback(
    lines: Lines, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(12)
    async with server(PATIENT) as port:
        for sent in (*MALFORMED, *(mutated(chance) for _ in range(150))):
            reader, writer = await connect(port, sent)
            writer.write_eof()
            answer = await closed((reader, writer))
            assert not answer.startswith(b"HTTP/1.1 5"), sent
            assert b"Traceback" not in answer
            writer.close()
        assert await get(port) == 200
    assert lines.texts[0].startswith("a client's request was refused: 400 ")
    assert not [record for record in lines.records if record.exc_info]
    said = capfd.readouterr()
    assert "Traceback" not in said.err + said.out


def test_a_line_that_repeats_comes_now_and_then(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SAY_EVERY_S", 10.0)
    now_s = 100.0
    say = RateLimitedLog(lambda: now_s)
    for now_s in (100.0, 101.0, 109.0, 110.0, 111.0, 130.0):
        say("kind", f"at {now_s:g}")
    say("another", "too")
    assert lines.texts == [
        "at 100",
        "at 110 (2 more since the last line)",
        "at 130 (1 more since the last line)",
        "too",
    ]
