# SPDX-License-Identifier: Apache-2.0
"""The loop's control socket: answers, errors, strange clients, permissions."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.control import SOCKET_FILE, ControlServer, ask, loop_runs


async def handler(request: dict[str, Any]) -> Any:
    match request["op"]:
        case "echo":
            return request
        case "refuse":
            raise FairlaneError(ErrorCode.OUT_OF_RANGE, "threshold 500 is out of range")
        case "hang":
            return await asyncio.sleep(60)
        case "fault":
            raise RuntimeError("nobody thought of that")
        case _:
            return int(request["missing"])


async def test_answers_and_errors_come_back(tmp_path: Path) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        assert await ask(tmp_path, {"op": "echo", "x": 1}) == {"op": "echo", "x": 1}
        with pytest.raises(FairlaneError, match="threshold 500 is out of range") as caught:
            await ask(tmp_path, {"op": "refuse"})
        assert caught.value.code is ErrorCode.OUT_OF_RANGE
        with pytest.raises(FairlaneError, match="a fault of the control loop: RuntimeError: nobody") as caught:
            await ask(tmp_path, {"op": "fault"})
        assert caught.value.code is ErrorCode.INTERNAL


async def test_only_the_owner_may_connect(tmp_path: Path) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        assert stat.S_IMODE((tmp_path / SOCKET_FILE).stat().st_mode) == 0o600


async def test_no_loop(tmp_path: Path) -> None:
    with pytest.raises(FairlaneError, match="no control loop runs") as caught:
        await ask(tmp_path, {"op": "echo"})
    assert caught.value.code is ErrorCode.NO_LOOP
    assert not loop_runs(tmp_path)


async def test_a_socket_that_a_killed_loop_left_is_no_loop_and_is_replaced(tmp_path: Path) -> None:
    import socket

    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / SOCKET_FILE))
    left.close()
    assert (tmp_path / SOCKET_FILE).exists()
    with pytest.raises(FairlaneError, match="no control loop runs"):
        await ask(tmp_path, {"op": "echo"})
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        assert await ask(tmp_path, {"op": "echo"}) == {"op": "echo"}


async def test_a_loop_that_hangs_is_told_from_one_that_is_gone(tmp_path: Path) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        with pytest.raises(FairlaneError, match="did not answer within") as caught:
            await ask(tmp_path, {"op": "hang"}, timeout_s=0.1)
        assert caught.value.code is ErrorCode.TIMED_OUT


@pytest.mark.parametrize("said", [b"", b'{"ok": true, "resu', b'{"ok": true, "result": 5}'])
async def test_a_loop_that_ends_before_it_has_answered_is_no_loop(tmp_path: Path, said: bytes) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(die, str(tmp_path / SOCKET_FILE))
    async with server:
        with pytest.raises(FairlaneError, match="the control loop ended before it answered") as caught:
            await ask(tmp_path, {"op": "echo"})
    assert caught.value.code is ErrorCode.NO_LOOP


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"[1]\n",
        b"{}\n",
        b'{"op": 7}\n',
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b'{"op": "status", "x": NaN}\n',
        b"x" * (1 << 21),
    ],
)
async def test_strange_requests_are_answered_with_an_error(tmp_path: Path, line: bytes) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / SOCKET_FILE))
        writer.write(line)
        answer = json.loads(await asyncio.wait_for(reader.readline(), 5))
        assert answer["ok"] is False
        assert answer["error"]["code"] == "bad_input"
        writer.close()


async def test_a_socket_of_another_user_is_no_missing_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("asyncio.open_unix_connection", refused)
    monkeypatch.setattr("socket.socket.connect", refuse)
    with pytest.raises(FairlaneError, match="belongs to another user: run this as root") as asked:
        await ask(tmp_path, {"op": "status"})
    assert asked.value.code is ErrorCode.LOOP_RUNNING
    with pytest.raises(FairlaneError, match="belongs to another user"):
        loop_runs(tmp_path)
