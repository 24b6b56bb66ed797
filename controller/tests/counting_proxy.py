# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime proxy in front of a real switch that counts at the server's side: calls, and updates of every Write; it can hold a call for good."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Generator
from concurrent.futures import Future
from typing import Any

import grpc
import grpc.aio
from finsy.proto import p4r

_UNARY = ("Write", "Set", "Get", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


def _same(data: bytes) -> bytes:
    return data


class CountingProxy(grpc.GenericRpcHandler):
    """Hands every call on as it is."""

    def __init__(self, target: str, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop
        self._channel: Any = None
        self.updates: list[p4r.Update] = []
        self.calls: Counter[str] = Counter()
        "By method."
        self.port = 0
        self._held, self._pass = "", 0
        self._released = asyncio.Event()
        self.holds = threading.Event()
        "Set while a call is held."

    def hold(self, name: str, passes: int = 0) -> None:
        """Hold a call of this method, after `passes` others, until `release`; without it never reaches the switch."""
        self.holds.clear()
        self._held, self._pass = name, passes

    def release(self) -> None:
        """What is held goes on to the switch."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _hold(self, name: str) -> None:
        if self._held != name:
            return
        self._pass -= 1
        if self._pass < 0:
            self._held = ""
            self.holds.set()
            await self._released.wait()  # or until its client goes

    def service(self, handler_call_details: Any) -> Any:
        """A handler for each method of P4Runtime; finds the channel when the first call comes."""
        path = str(handler_call_details.method)
        name = path.rsplit("/", 1)[-1]
        self.calls[name] += 1
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._target)
        if name in _UNARY:

            async def unary(request: bytes, context: Any) -> bytes:
                await self._hold(name)
                if name == "Write":
                    self.updates += p4r.WriteRequest.FromString(request).updates
                call = self._channel.unary_unary(path, _same, _same)
                return await self._relayed(call(request), context)

            return grpc.unary_unary_rpc_method_handler(unary, _same, _same)
        if name == "Read":

            async def read(request: bytes, context: Any) -> AsyncIterator[bytes]:
                call = self._channel.unary_stream(path, _same, _same)(request)
                async for answer in call:
                    yield answer
                await self._end(call, context)

            return grpc.unary_stream_rpc_method_handler(read, _same, _same)

        async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            call = self._channel.stream_stream(path, _same, _same)(requests)
            async for answer in call:
                yield answer
            await self._end(call, context)

        return grpc.stream_stream_rpc_method_handler(stream, _same, _same)

    async def _relayed(self, call: Any, context: Any) -> bytes:
        try:
            return await call
        except grpc.aio.AioRpcError as ex:
            await context.abort(ex.code(), ex.details(), tuple(ex.trailing_metadata() or ()))
            raise

    async def _end(self, call: Any, context: Any) -> None:
        code = await call.code()
        if code is not grpc.StatusCode.OK:
            await context.abort(code, await call.details())


@contextlib.contextmanager
def counting(target: str) -> Generator[CountingProxy, None, None]:
    """A proxy in a thread of its own while the body runs; `port` is where it listens on loopback."""
    loop = asyncio.new_event_loop()
    proxy = CountingProxy(target, loop)
    started: Future[int] = Future()
    over = asyncio.Event()

    async def serve() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((proxy,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        started.set_result(port)
        await over.wait()
        await server.stop(0)
        if proxy._channel is not None:  # pyright: ignore[reportPrivateUsage]
            await proxy._channel.close()  # pyright: ignore[reportPrivateUsage]

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    proxy.port = started.result(timeout=10)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(timeout=10)
        loop.close()
