# SPDX-License-Identifier: Apache-2.0
"""The unix socket through which commands talk to a running loop (`state/ask.py`), the loop's end of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import os
import traceback
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, bad_input
from fairlane_controller.program.requests import checked
from fairlane_controller.state.ask import MAX_MESSAGE_BYTES, too_long
from fairlane_controller.state.events import write_event

MAX_RECEIVED_BYTES = 2 * MAX_MESSAGE_BYTES
"""Of requests that have come in part, of all clients together; beyond, the client that sends for longest gives way."""
MAX_CLIENTS = 64
"""With more, the client that sends, or takes its answer, for longest gives way."""
CLIENT_TIMEOUT_S = 60.0
"""For sending a request, and for taking its answer."""
_CHUNK_BYTES = 1 << 16
END_TIMEOUT_S = 15.0
"""How long requests may take back what they have begun when the loop ends."""

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class ControlServer:
    """`async with ControlServer(path, handler)`: the owner of the process and root may connect."""

    def __init__(self, path: Path, handler: Handler, *, client_timeout_s: float = CLIENT_TIMEOUT_S) -> None:
        self._path = path
        self._handler = handler
        self._client_timeout_s = client_timeout_s
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._received: dict[asyncio.Task[Any], int] = {}
        "Bytes that have come of a request, of the clients that send one or take their answer, the first one first."
        self._requests: set[asyncio.Task[Any]] = set()
        "Requests that are being carried out."
        self._parsing = asyncio.Lock()
        "Held while a request is parsed: one at a time."

    async def __aenter__(self) -> ControlServer:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # the caller holds the folder's lock: nobody listens there
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        except OSError as ex:
            raise bad_file(f"cannot make the control socket {self._path}: {ex}") from None
        finally:
            os.umask(mask)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        await _end(self._requests)  # what was begun is taken back
        await _end(self._clients)
        await _end(self._requests)  # also what came meanwhile
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a client."""
        client = cast("asyncio.Task[Any]", asyncio.current_task())
        is_full = len(self._clients) >= MAX_CLIENTS
        if is_full and self._received:
            is_full = False
            self._end_oldest()
        self._clients[client] = writer
        try:
            text = await asyncio.wait_for(self._receive(reader, client), self._client_timeout_s)
            if is_full:
                text = _refusal(ErrorCode.REFUSED(f"the control loop has {MAX_CLIENTS} clients already"))
            else:
                text = await self._answer(text)
            self._received[client] = 0
            writer.write(text)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), self._client_timeout_s)
        except asyncio.TimeoutError:
            writer.transport.abort()  # also what the client has not taken of its answer goes
        except ConnectionError:
            pass  # the client went away
        finally:
            del self._clients[client]
            self._received.pop(client, None)
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader, client: asyncio.Task[Any]) -> bytes:
        """The text of a request; of one of more than MAX_MESSAGE_BYTES the rest is read, so that the client takes the answer, and not kept."""
        received = bytearray()
        self._received[client] = 0
        while piece := await reader.read(_CHUNK_BYTES):
            if len(received) > MAX_MESSAGE_BYTES:
                continue
            received += piece
            self._received[client] = len(received)
            while sum(self._received.values()) > MAX_RECEIVED_BYTES:
                self._end_oldest(1)
        self._received.pop(client, None)
        return bytes(received)

    def _end_oldest(self, least: int = 0) -> None:
        """Close the connection of the client that sends, or takes its answer, for longest; of those of whom `least` bytes have come."""
        client = next(one for one, size in self._received.items() if size >= least)
        del self._received[client]
        self._clients[client].transport.abort()
        client.cancel()

    async def ask(self, text: bytes) -> bytes:
        """A request of this process's own, as if it had come through the socket: by value, and in no context of the asker's."""
        return await contextvars.Context().run(asyncio.create_task, self._answer(text))

    async def _answer(self, text: bytes) -> bytes:
        if len(text) > MAX_MESSAGE_BYTES:
            return _refusal(too_long())
        try:
            async with self._parsing:
                request = checked(await asyncio.to_thread(lambda: parse_json(text.decode("utf-8"))))
        except (DocumentError, UnicodeDecodeError) as ex:
            return _refusal(bad_input(f"a request must be a JSON object in UTF-8: {ex}"))
        except FairlaneError as ex:
            return _refusal(ex)
        task = asyncio.create_task(self._carry_out(request))  # to its end, whether or not its client waits
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return await asyncio.shield(task)

    async def _carry_out(self, request: dict[str, Any]) -> bytes:
        try:
            return json.dumps({"ok": True, "result": await self._handler(request)}, default=str).encode()
        except FairlaneError as ex:
            return _refusal(ex)
        except Exception as ex:  # a fault of ours; without an answer it would look as if the loop had ended
            text = f"a fault of the control loop: {type(ex).__name__}: {ex}"
            about = {"message": text, "traceback": traceback.format_exc(), "why": text}
            write_event(self._path.parent, "fault", request=request.get("op"), **about)
            return _refusal(ErrorCode.INTERNAL(f"{text}; `fairlane log --event fault` has more"))


def _refusal(problem: FairlaneError) -> bytes:
    return json.dumps({"ok": False, "error": problem.to_json()}).encode()


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    ended = [*tasks]
    for task in ended:
        task.cancel()
    if ended:
        await asyncio.wait(ended, timeout=END_TIMEOUT_S)
