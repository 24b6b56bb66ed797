# SPDX-License-Identifier: Apache-2.0
"""The unix socket through which commands talk to a running loop (`state/ask.py`), the loop's end of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import grp
import json
import os
import socket
import struct
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.requests import checked
from fairlane_controller.state.ask import LENGTH, MAX_MESSAGE_BYTES, READ_OPS, Answer, check_length, readers_group, send
from fairlane_controller.state.events import write_event

LARGE_BYTES = 1 << 20
"""Requests above this are parsed beside the event loop, one at a time, since that takes several times their size."""
MAX_RECEIVED_BYTES = 2 * MAX_MESSAGE_BYTES
"""Of requests that have come in part, of all clients together; beyond, the client that is idle for longest gives way."""
MAX_CLIENTS = 64
"""With more, the client that is idle for longest gives way."""
IDLE_S = 60.0
"""A client that has sent nothing, or taken nothing of its answer, for so long is let go."""
_CHUNK_BYTES = 1 << 16
END_TIMEOUT_S = 15.0
"""How long requests may take back what they have begun when the loop ends."""
_CREDENTIALS = struct.Struct("3i")

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


def _refusal(problem: FairlaneError) -> Answer:
    return {"ok": False, "error": problem.to_json()}


@dataclass(eq=False)
class _Client:
    """A connection; the one whose last byte, or whose last answer, is the oldest is idle for longest."""

    writer: asyncio.StreamWriter
    task: asyncio.Task[Any]
    received: bytearray = field(default_factory=bytearray)
    "What has come of its request."


class ControlServer:
    """`async with ControlServer(path, handler)`: the owner of the process may change, a group may read."""

    def __init__(self, path: Path, handler: Handler, *, idle_s: float = IDLE_S) -> None:
        self._path = path
        self._handler = handler
        self._idle_s = idle_s
        self._server: asyncio.Server | None = None
        self._idle: dict[_Client, None] = {}
        "In the order in which they became so."
        self._busy: set[_Client] = set()
        "Whose requests are being carried out."
        self._requests: set[asyncio.Task[Answer]] = set()
        "Requests that change something and are being carried out."
        self._parsing = asyncio.Lock()

    async def __aenter__(self) -> ControlServer:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # the caller holds the folder's lock: nobody listens there
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        except OSError as ex:
            raise FairlaneError(ErrorCode.BAD_FILE, f"cannot make the control socket {self._path}: {ex}") from None
        finally:
            os.umask(mask)
        with contextlib.suppress(KeyError, OSError):  # no such group, or not ours to give: nobody else reads
            os.chown(self._path, -1, grp.getgrnam(readers_group()).gr_gid)
            self._path.chmod(0o660)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for tasks in ([*self._requests], [client.task for client in (*self._idle, *self._busy)]):
            for task in tasks:
                task.cancel()
            if tasks:  # what was begun is taken back
                await asyncio.wait(tasks, timeout=END_TIMEOUT_S)
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer, cast("asyncio.Task[Any]", asyncio.current_task()))
        may_change = _user_of(writer) in (0, os.geteuid())
        try:
            if len(self._idle) + len(self._busy) >= MAX_CLIENTS:
                problem = FairlaneError(ErrorCode.REFUSED, f"the control loop has {MAX_CLIENTS} clients already")
                if not self._idle:
                    await send(writer, _refusal(problem))
                    return
                self._let_go(next(iter(self._idle)), problem)
            self._idle[client] = None
            while True:
                try:
                    request = await self._receive(reader, client)
                except FairlaneError as ex:
                    await self._send(client, _refusal(ex))
                    if ex.code is not ErrorCode.BAD_INPUT:  # where the next message begins is not known
                        break
                    continue
                await self._send(client, await self._answer(request, may_change))
        except (TimeoutError, asyncio.TimeoutError):
            writer.transport.abort()  # idle: also what it has not taken of its answer goes
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            self._idle.pop(client, None)
            self._busy.discard(client)
            writer.close()

    def _let_go(self, client: _Client, why: FairlaneError) -> None:
        """Close an idle client at once; its task sees the end."""
        del self._idle[client]
        client.received.clear()
        text = json.dumps(_refusal(why)).encode()
        client.writer.write(LENGTH.pack(len(text)) + text)
        client.writer.transport.abort()

    async def _send(self, client: _Client, answer: Answer) -> None:
        """The client counts as idle from now on; TimeoutError when it does not take its answer."""
        self._busy.discard(client)
        self._idle[client] = None
        await asyncio.wait_for(send(client.writer, answer), self._idle_s)

    async def _receive(self, reader: asyncio.StreamReader, client: _Client) -> dict[str, Any]:
        """The next request; from then on the client is busy. TimeoutError when nothing comes."""
        (length,) = LENGTH.unpack(await self._read(reader, client, LENGTH.size))
        client.received.clear()
        check_length(length, "request")
        text = await self._read(reader, client, length)
        del self._idle[client]
        self._busy.add(client)
        try:
            if length <= LARGE_BYTES:
                return _request(text)
            async with self._parsing:
                return await asyncio.to_thread(_request, text)
        finally:
            client.received = bytearray()

    async def _read(self, reader: asyncio.StreamReader, client: _Client, size: int) -> bytearray:
        """Memory is taken for what has come, not for what was announced."""
        while len(client.received) < size:
            wanted = min(size - len(client.received), _CHUNK_BYTES)
            piece = await asyncio.wait_for(reader.read(wanted), self._idle_s)
            if not piece or client not in self._idle:
                raise asyncio.IncompleteReadError(b"", size)
            client.received += piece
            self._idle[client] = self._idle.pop(client)  # the last one again
            while sum(len(one.received) for one in (*self._idle, *self._busy)) > MAX_RECEIVED_BYTES:
                holder = next(one for one in self._idle if one.received)
                self._let_go(holder, FairlaneError(ErrorCode.REFUSED, "the control loop has no room for a request that comes in slowly"))  # fmt: skip
        return client.received

    async def ask(self, request: dict[str, Any]) -> Answer:
        """A request of this process's own, as if it had come through the socket: by value, and in no context of the asker's."""
        answering = self._answer(_plain(request), may_change=True)
        return _plain(await contextvars.Context().run(asyncio.create_task, answering))

    async def _answer(self, request: dict[str, Any], may_change: bool) -> Answer:
        op = str(request["op"])
        if op in READ_OPS or self._server is None:
            return await self._carry_out(request)
        if not may_change:
            return _refusal(FairlaneError(ErrorCode.NOT_PRIMARY, f"{op}: members of the group may read only: run this as root"))  # fmt: skip
        task = asyncio.create_task(self._carry_out(request))  # to its end, whether or not its client waits
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return await asyncio.shield(task)

    async def _carry_out(self, request: dict[str, Any]) -> Answer:
        try:
            return {"ok": True, "result": await self._handler(checked(request))}
        except FairlaneError as ex:
            return _refusal(ex)
        except Exception as ex:  # a fault of ours; without an answer it would look as if the loop had ended
            text = f"a fault of the control loop: {type(ex).__name__}: {ex}"
            about = {"message": text, "traceback": traceback.format_exc(), "why": text}
            write_event(self._path.parent, "fault", request=request.get("op"), **about)
            return _refusal(FairlaneError(ErrorCode.INTERNAL, f"{text}; `fairlane log --event fault` has more"))


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(message, default=str))


def _user_of(writer: asyncio.StreamWriter) -> int:
    """The user at the other end, as the kernel knows it (unix(7), SO_PEERCRED)."""
    end: socket.socket = writer.get_extra_info("socket")
    return _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]


def _request(text: bytearray) -> dict[str, Any]:
    try:
        data = parse_json(text.decode("utf-8"))
    except (DocumentError, UnicodeDecodeError) as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"a request must be a JSON object in UTF-8: {ex}") from None
    request = cast("dict[str, Any]", data if isinstance(data, dict) else {})
    if not isinstance(request.get("op"), str):
        raise FairlaneError(ErrorCode.BAD_INPUT, 'a request must be a JSON object with an "op", a string')
    return request
