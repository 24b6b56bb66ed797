# SPDX-License-Identifier: Apache-2.0
"""The unix socket through which the command line talks to a running loop: one JSON object a line, both ways.

Requests: `{"op": "status"}`, `{"op": "measure"}`, `{"op": "threshold_set", "switch", "port", "class", "packets",
"weight"}`, `{"op": "threshold_auto", "switch", "port", "class", "k", "weight", "self_tuning"}`, `{"op": "scheme_set", "switch",
"port", "class", "scheme"}`, `{"op": "flow_weights", "rules": [{"dst_port": 5001, "weight": 2}]}` (also `src`, `dst`,
`src_port`; for new flows, the first rule that matches). Answers: `{"ok": true, "result": …}` or `{"ok": false, "error": {"code", "message"}}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.schema import checked

SOCKET_FILE = "controller.sock"
BACKUP_SOCKET_FILE = "controller-backup.sock"
'Of the controller that waits to take over; it answers `status` only: `{"pid", "switches"}`.'
ANSWER_TIMEOUT_S = 20.0
MAX_LINE = 1 << 20

_LONG = b"too long"
_TOO_LONG = {
    "ok": False,
    "error": {"code": ErrorCode.BAD_INPUT.value, "message": f"a request is one line of at most {MAX_LINE} bytes"},
}

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


class ControlServer:
    """`async with ControlServer(path, handler)`: only the owner of the process may connect."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> ControlServer:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # the caller holds the folder's lock: nobody listens there
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, str(self._path), limit=MAX_LINE)
        except OSError as ex:
            raise FairlaneError(ErrorCode.BAD_FILE, f"cannot make the control socket {self._path}: {ex}") from None
        finally:
            os.umask(mask)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._busy:
            task.cancel()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._busy.add(task)
        try:
            while line := await self._line(reader):
                answer = _TOO_LONG if line is _LONG else await self._answer(line)
                writer.write(json.dumps(answer, default=str).encode() + b"\n")
                await writer.drain()
                if line is _LONG:
                    break
        except ConnectionError:
            pass  # the client went away
        finally:
            if task is not None:
                self._busy.discard(task)
            writer.close()

    @staticmethod
    async def _line(reader: asyncio.StreamReader) -> bytes:
        """The next line, `_LONG` for one beyond MAX_LINE; nothing at the end."""
        try:
            return await reader.readline()
        except ValueError:
            return _LONG

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            return {"ok": True, "result": await self._handler(checked(parse_json(line.decode("utf-8"))))}
        except FairlaneError as ex:
            return {"ok": False, "error": ex.to_json()}
        except (DocumentError, UnicodeDecodeError) as ex:
            error = FairlaneError(ErrorCode.BAD_INPUT, f"a request must be a JSON object in UTF-8, one a line: {ex}")
            return {"ok": False, "error": error.to_json()}
        except Exception as ex:  # nobody foresaw it; without an answer it would look as if the loop had ended
            error = FairlaneError(ErrorCode.INTERNAL, f"a fault of the control loop: {type(ex).__name__}: {ex}")
            return {"ok": False, "error": error.to_json()}


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
    try:
        reader, writer = await asyncio.open_unix_connection(str(path), limit=MAX_LINE * 16)
    except (FileNotFoundError, ConnectionRefusedError):
        raise FairlaneError(
            ErrorCode.NO_LOOP, f"no control loop runs for {folder}: start it with `fairlane run`"
        ) from None
    except PermissionError:
        raise _other_users(folder) from None
    except OSError as ex:
        raise FairlaneError(ErrorCode.NO_LOOP, f"cannot talk to the control loop at {path}: {ex.strerror}") from None
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        line = await asyncio.wait_for(reader.readline(), timeout_s)
    except (TimeoutError, asyncio.TimeoutError):
        raise FairlaneError(ErrorCode.TIMED_OUT, f"the control loop did not answer within {timeout_s:g} s") from None
    except ConnectionError:
        line = b""
    finally:
        writer.close()
    if not line.endswith(b"\n"):  # nothing, or the beginning of an answer
        raise FairlaneError(ErrorCode.NO_LOOP, "the control loop ended before it answered")
    answer = json.loads(line)
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
        ErrorCode.LOOP_RUNNING, f"the control socket of {folder} belongs to another user: run this as root"
    )
