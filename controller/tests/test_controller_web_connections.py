# SPDX-License-Identifier: Apache-2.0
"""Clients of the page that do nothing, half of something, or no HTTP: they are let go, and the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from fairlane_controller.logs import ROOT
from fairlane_controller.web.hub import Feed
from fairlane_controller.web.server import Listen, page_app, served

TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Nothing:
    """No topology and no switch."""

    run: Any = None
    endpoints: tuple[Any, ...] = ()


NO_TOPOLOGY = Nothing()
HASTY_S, PATIENT_S = 0.2, 3.0
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Lines(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger(ROOT).addHandler(handler)
    yield handler
    logging.getLogger(ROOT).removeHandler(handler)


@contextlib.asynccontextmanager
async def server(idle_s: float) -> AsyncGenerator[int]:
    """The live page of no topology, with a time limit of its own."""
    listen = Listen("127.0.0.1", 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane_controller.web.server.IDLE_S", idle_s)
        async with served(page_app(Feed(NO_TOPOLOGY), listen), listen) as port:
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


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
async def test_a_request_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with server(HASTY_S) as port:
        assert await closed(await connect(port, sent)) == b""


async def test_a_byte_now_and_then_buys_no_time() -> None:
    async with server(HASTY_S) as port:
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
    async with server(PATIENT_S) as port:
        client = await connect(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await closed(client)).startswith(b"HTTP/1.1 200 OK")


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


async def test_a_request_that_is_no_http_is_refused_without_a_traceback(
    lines: Lines, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(12)
    async with server(PATIENT_S) as port:
        for sent in (*MALFORMED, *(mutated(chance) for _ in range(150))):
            reader, writer = await connect(port, sent)
            writer.write_eof()
            answer = await closed((reader, writer))
            assert not answer.startswith(b"HTTP/1.1 5"), sent
            assert b"Traceback" not in answer
            writer.close()
        assert await get(port) == 200
    assert not lines.records
    output = capfd.readouterr()
    assert "Traceback" not in output.err + output.out
