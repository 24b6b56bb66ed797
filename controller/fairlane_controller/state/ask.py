# SPDX-License-Identifier: Apache-2.0
"""Asking a running loop through its control socket: a JSON object each way, up to the end of the stream; one request a connection.

Requests (`program/requests.py`) have an `op`; one that changes something is carried out to its end also when the client has gone. Answers: `{"ok": true, "result": …}` or
`{"ok": false, "error": {"code", "message"}}`. The owner of the process and root may ask. The other end is `loop/control.py`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError

SOCKET_FILE = "controller.sock"
BACKUP_SOCKET_FILE = "controller-backup.sock"
'Of the controller that waits to take over; it answers `status` only: `{"pid", "switches"}`.'
ANSWER_TIMEOUT_S = 20.0
MAX_MESSAGE_BYTES = 64 << 20
"""Of a request: 4,096 VCs take 2 MiB."""

Asker = Callable[[bytes], Awaitable[bytes]]
"""The text of a request to the text of its answer."""

own_loop: ContextVar[tuple[Path, Asker] | None] = ContextVar("own_loop", default=None)
"""The loop that works in this context, and its folder: it asks itself without a connection, which clients could keep from it."""


def too_long() -> FairlaneError:
    """OUT_OF_RANGE, for a request of more than MAX_MESSAGE_BYTES."""
    return ErrorCode.OUT_OF_RANGE(f"the request is too long: it may have {MAX_MESSAGE_BYTES} bytes")


async def _exchange(path: Path, text: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(text)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def ask_backup(folder: Path) -> dict[str, Any] | None:
    """The status of the folder's backup, `{"pid", "switches"}`; None when none waits, or it does not answer in time."""
    try:
        return await ask(folder, {"op": "status"}, 2.0, BACKUP_SOCKET_FILE)
    except FairlaneError as ex:
        if ex.code in (ErrorCode.NO_LOOP, ErrorCode.TIMED_OUT):
            return None
        raise


async def ask(
    folder: Path, request: dict[str, Any], timeout_s: float = ANSWER_TIMEOUT_S, socket_file: str = SOCKET_FILE
) -> Any:
    """Ask the loop of a run-state folder; raises NO_LOOP when none runs, TIMED_OUT, or what the loop raised."""
    path = folder / socket_file
    own = own_loop.get()
    text = json.dumps(request, default=str).encode()
    if len(text) > MAX_MESSAGE_BYTES:
        raise too_long()
    try:
        asking = own[1](text) if own and path == own[0] / SOCKET_FILE else _exchange(path, text)
        answer = json.loads(await asyncio.wait_for(asking, timeout_s))
    except PermissionError:
        raise _other_users(folder) from None
    except asyncio.TimeoutError:
        raise ErrorCode.TIMED_OUT(f"the control loop did not answer within {timeout_s:g} s") from None
    except (ConnectionResetError, BrokenPipeError, json.JSONDecodeError):
        raise ErrorCode.NO_LOOP("the control loop ended before it answered") from None
    except OSError as ex:
        text = f"no control loop runs for {folder}: start it with `fairlane run` ({ex.strerror})"
        raise ErrorCode.NO_LOOP(text) from None
    if not answer["ok"]:
        raise FairlaneError.from_json(answer["error"])
    return answer["result"]


def loop_runs(folder: Path) -> bool:
    """Whether a loop listens at the folder's control socket; LOOP_RUNNING when it is another user's."""
    own = own_loop.get()
    if own is not None and own[0] == folder:
        return True
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
    text = f"the control socket of {folder} belongs to another user: run this as root"
    return ErrorCode.LOOP_RUNNING(text)
