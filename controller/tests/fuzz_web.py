# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to the live page: each gets an answer that is no fault of ours, or a closed connection, and the next one is served."""

from __future__ import annotations

import asyncio
import contextlib

from fuzz_tools import BYTES, changed, explore
from hypothesis import strategies as st
from test_controller_web_connections import MALFORMED, closed, connect, get, server

REQUESTS = (
    *MALFORMED,
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /static/app.js HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
    b"GET /static/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /api/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd",
)


def explore_web(examples: int, seed: int) -> None:
    """One connection an input, on one server."""

    async def work() -> None:
        async with server(idle_s=2.0) as port:
            await asyncio.to_thread(explore, lambda given: one(port, given), inputs, examples, seed)

    loop: list[asyncio.AbstractEventLoop] = []
    inputs = st.builds(changed, st.sampled_from(REQUESTS), BYTES)

    def one(port: int, given: bytes) -> None:
        asyncio.run_coroutine_threadsafe(ask(port, given), loop[0]).result(timeout=60)

    async def ask(port: int, given: bytes) -> None:
        reader, writer = await connect(port, given)
        with contextlib.suppress(OSError):
            writer.write_eof()
        answer = await closed((reader, writer))
        assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
        assert b"Traceback" not in answer
        writer.close()
        assert await get(port) == 200

    async def main() -> None:
        loop.append(asyncio.get_running_loop())
        await work()

    asyncio.run(main())
