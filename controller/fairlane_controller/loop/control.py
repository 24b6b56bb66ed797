# SPDX-License-Identifier: Apache-2.0
"""The unix socket through which commands talk to a running loop: messages are JSON objects, each behind its length in four bytes.

Requests (`program/requests.py`) have an `op` and, when they change something, an `id`; the loop carries them out once, also when the client
has gone, keeps the answer in the state file, and gives it again to whoever asks with the same id. Answers: `{"ok": true, "result": …}` or
`{"ok": false, "error": {"code", "message"}}`. The owner of the process and root may ask for everything, other members of the
socket's group for `READ_OPS` only.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import json
import os
import secrets
import socket
import struct
import traceback
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.events import EVENTS_FILE, EventLog
from fairlane_controller.program.requests import checked
from fairlane_controller.state.store import Store

SOCKET_FILE = "controller.sock"
BACKUP_SOCKET_FILE = "controller-backup.sock"
'Of the controller that waits to take over; it answers `status` only: `{"pid", "switches"}`.'
ANSWER_TIMEOUT_S = 20.0
MAX_MESSAGE_BYTES = 64 << 20
"""Of a request or an answer: 4,096 VCs take 2 MiB."""
LARGE_BYTES = 1 << 20
"""Requests above this are received one at a time, so that memory is bounded; and parsed beside the event loop."""
MAX_CLIENTS = 64
GROUP_VARIABLE = "FAIRLANE_GROUP"
"""Environment variable with the name of the group whose members may read."""
DEFAULT_GROUP = "fairlane"
READ_OPS = ("status", "measure", "loop_options")
"""Requests that change nothing."""

change_id: ContextVar[str] = ContextVar("change_id", default="")
"""The change (`history.changing`) that requests of this context belong to."""

_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
Answer = dict[str, Any]


def _refusal(problem: FairlaneError) -> Answer:
    return {"ok": False, "error": problem.to_json()}


class ControlServer:
    """`async with ControlServer(path, handler)`: the owner of the process may change, a group may read."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[Any]] = set()
        self._requests: dict[str, asyncio.Task[Answer]] = {}
        "Requests that change something and are being carried out, by their id."
        self._large = asyncio.Lock()
        self._store = Store(path.parent)

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
        for task in (*self._clients, *self._requests.values()):
            task.cancel()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._store.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._clients.add(task)
        may_change = _user_of(writer) in (0, os.geteuid())
        try:
            if len(self._clients) > MAX_CLIENTS:
                problem = FairlaneError(ErrorCode.REFUSED, f"the control loop has {MAX_CLIENTS} clients already")
                await _send(writer, _refusal(problem))
                return
            while True:
                try:
                    request = await self._receive(reader)
                except FairlaneError as ex:
                    await _send(writer, _refusal(ex))
                    if ex.code is not ErrorCode.BAD_INPUT:  # where the next message begins is not known
                        break
                    continue
                await _send(writer, await self._answer(request, may_change))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            self._clients.discard(task)
            writer.close()

    async def _receive(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        _check_length(length, "request")
        if length <= LARGE_BYTES:
            return _request(await reader.readexactly(length))
        async with self._large:
            return await asyncio.to_thread(_request, await reader.readexactly(length))

    async def _answer(self, request: dict[str, Any], may_change: bool) -> Answer:
        op, name = str(request["op"]), str(request.pop("id", ""))
        if op in READ_OPS or self._server is None:
            return await self._carry_out(request)
        if not may_change:
            return _refusal(FairlaneError(ErrorCode.NOT_PRIMARY, f"{op}: members of the group may read only: run this as root"))  # fmt: skip
        if op == "result":
            return await self._result(str(request["of"]))
        if not name:
            return await self._carry_out(request)
        task = self._requests.get(name)
        if task is None:
            task = self._requests[name] = asyncio.create_task(self._carry_out_once(name, request))
        return await asyncio.shield(task)

    async def _carry_out_once(self, name: str, request: dict[str, Any]) -> Answer:
        """Carry out a request, whether or not its client waits, and keep the answer; one that was carried out before has it already."""
        try:
            answer = await asyncio.to_thread(self._store.result, name)
            if answer is not None:
                return answer
            answer = await self._carry_out(request)
            with contextlib.suppress(FairlaneError):  # a full disk: the client has the answer all the same
                await asyncio.to_thread(self._store.keep_result, name, answer)
            return answer
        finally:
            del self._requests[name]

    async def _result(self, name: str) -> Answer:
        """The answers to the requests of a change, when all are there."""
        running = [task for key, task in self._requests.items() if key.split(".")[0] == name]
        await asyncio.gather(*(asyncio.shield(task) for task in running), return_exceptions=True)
        return {"ok": True, "result": await asyncio.to_thread(self._store.results, f"{name}.")}

    async def _carry_out(self, request: dict[str, Any]) -> Answer:
        try:
            return {"ok": True, "result": await self._handler(checked(request))}
        except FairlaneError as ex:
            return _refusal(ex)
        except Exception as ex:  # a fault of ours; without an answer it would look as if the loop had ended
            text = f"a fault of the control loop: {type(ex).__name__}: {ex}"
            log = EventLog(self._path.parent / EVENTS_FILE)
            log.write("fault", request=request.get("op"), message=text, traceback=traceback.format_exc(), why=text)
            log.close()
            return _refusal(FairlaneError(ErrorCode.INTERNAL, f"{text}; `fairlane log --event fault` has more"))


def readers_group() -> str:
    """The group whose members may ask a loop for what it measures and decides."""
    return os.environ.get(GROUP_VARIABLE) or DEFAULT_GROUP


def _user_of(writer: asyncio.StreamWriter) -> int:
    """The user at the other end, as the kernel knows it (unix(7), SO_PEERCRED)."""
    end: socket.socket = writer.get_extra_info("socket")
    return _CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]


def _check_length(length: int, what: str) -> None:
    if length > MAX_MESSAGE_BYTES:
        raise FairlaneError(
            ErrorCode.OUT_OF_RANGE, f"a {what} of {length} bytes is too long: it has at most {MAX_MESSAGE_BYTES}"
        )


def _request(text: bytes) -> dict[str, Any]:
    try:
        data = parse_json(text.decode("utf-8"))
    except (DocumentError, UnicodeDecodeError) as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"a request must be a JSON object in UTF-8: {ex}") from None
    request = cast("dict[str, Any]", data if isinstance(data, dict) else {})
    if not isinstance(request.get("op"), str):
        raise FairlaneError(ErrorCode.BAD_INPUT, 'a request must be a JSON object with an "op", a string')
    return request


async def _send(writer: asyncio.StreamWriter, message: Any) -> None:
    text = json.dumps(message, default=str).encode()
    _check_length(len(text), "message")
    writer.write(_LENGTH.pack(len(text)) + text)
    await writer.drain()


async def _exchange(path: Path, request: dict[str, Any]) -> Answer:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        await _send(writer, request)
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return json.loads(await reader.readexactly(length))
    finally:
        writer.close()


async def ask_backup(folder: Path, timeout_s: float = 2.0) -> dict[str, Any] | None:
    """The status of the folder's backup, `{"pid", "switches"}`; None when none waits, or it does not answer in time."""
    try:
        return await ask(folder, {"op": "status"}, timeout_s, BACKUP_SOCKET_FILE)
    except FairlaneError as ex:
        if ex.code in (ErrorCode.NO_LOOP, ErrorCode.TIMED_OUT):
            return None
        raise


async def ask(
    folder: Path, request: dict[str, Any], timeout_s: float = ANSWER_TIMEOUT_S, socket_file: str = SOCKET_FILE
) -> Any:
    """Ask the loop of a run-state folder; raises NO_LOOP when none runs, TIMED_OUT, or what the loop raised."""
    path = folder / socket_file
    if request["op"] not in READ_OPS:
        request = {**request, "id": f"{change_id.get() or secrets.token_hex(8)}.{secrets.token_hex(4)}"}
    try:
        answer = await asyncio.wait_for(_exchange(path, request), timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        raise FairlaneError(
            ErrorCode.NO_LOOP, f"no control loop runs for {folder}: start it with `fairlane run`"
        ) from None
    except PermissionError:
        raise _other_users(folder) from None
    except (ConnectionError, asyncio.IncompleteReadError, json.JSONDecodeError):
        raise FairlaneError(ErrorCode.NO_LOOP, "the control loop ended before it answered") from None
    except (TimeoutError, asyncio.TimeoutError):
        text = f"the control loop did not answer within {timeout_s:g} s"
        if change_id.get():
            text += "; the next change waits for its end"
        raise FairlaneError(ErrorCode.TIMED_OUT, text) from None
    except OSError as ex:
        raise FairlaneError(ErrorCode.NO_LOOP, f"cannot talk to the control loop at {path}: {ex.strerror}") from None
    if not answer["ok"]:
        raise FairlaneError.from_json(answer["error"])
    return answer["result"]


def loop_runs(folder: Path) -> bool:
    """Whether somebody listens at the folder's control socket; LOOP_RUNNING when it is another user's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(folder / SOCKET_FILE))
        except PermissionError:
            raise _other_users(folder) from None
        except OSError:
            return False
        return True


def _other_users(folder: Path) -> FairlaneError:
    """Going on without the loop would take its role of the primary away."""
    return FairlaneError(
        ErrorCode.LOOP_RUNNING,
        f"the control socket of {folder} belongs to another user: run this as root "
        f"(members of the group {readers_group()!r} may read)",
    )
