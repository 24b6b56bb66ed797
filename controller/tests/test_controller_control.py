# SPDX-License-Identifier: Apache-2.0
"""The loop's control socket: answers, errors, strange clients, permissions."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.control import MAX_CLIENTS, ControlServer
from fairlane_controller.state.ask import SOCKET_FILE, ask, loop_runs, own_loop


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


async def exchange(folder: Path, message: bytes) -> bytes:
    """The answer to a message."""
    reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_FILE))
    writer.write(message)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes somebody else")
async def test_another_user_may_not_connect() -> None:
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name) / SOCKET_FILE
        async with ControlServer(path, handler):
            connecting = await asyncio.create_subprocess_exec(
                os.path.realpath(sys.executable),
                "-c",
                connect,
                str(path),
                user=65_534,
                group=65_534,
                stderr=subprocess.PIPE,
            )
            _, said = await asyncio.wait_for(connecting.communicate(), 60)
    assert b"PermissionError" in said


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


@pytest.mark.parametrize("said", [b"", b'{"ok": true, "resu', b"{]"])
async def test_a_loop_that_ends_before_it_has_answered_is_no_loop(tmp_path: Path, said: bytes) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(die, str(tmp_path / SOCKET_FILE))
    async with server:
        with pytest.raises(FairlaneError, match="the control loop ended before it answered") as caught:
            await ask(tmp_path, {"op": "echo"})
    assert caught.value.code is ErrorCode.NO_LOOP


@pytest.mark.parametrize(
    "message",
    [b"hello", b"[1]", b"{}", b'{"op": 7}', b"\xff", b"[" * 100_000, b'{"op": "status", "x": NaN}', b"", b'{"op": "ec'],
)  # fmt: skip
async def test_strange_requests_are_answered_with_an_error(tmp_path: Path, message: bytes) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        answer = json.loads(await exchange(tmp_path, message))
        assert answer["ok"] is False
        assert answer["error"]["code"] == "bad_input"
        assert json.loads(await exchange(tmp_path, b'{"op": "echo"}'))["ok"] is True


async def test_a_request_that_is_too_long_is_refused_by_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        monkeypatch.setattr("fairlane_controller.loop.control.MAX_MESSAGE_BYTES", 1000)
        assert json.loads(await exchange(tmp_path, b"x" * 2000))["error"]["code"] == "out_of_range"
        monkeypatch.setattr("fairlane_controller.state.ask.MAX_MESSAGE_BYTES", 1000)
        with pytest.raises(FairlaneError, match="too long: it may have 1000 bytes") as caught:
            await ask(tmp_path, {"op": "echo", "x": "x" * 2000})
        assert caught.value.code is ErrorCode.OUT_OF_RANGE


async def test_requests_are_parsed_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsing, most = 0, 0

    def parse(text: str) -> Any:
        nonlocal parsing, most
        parsing += 1
        most = max(most, parsing)
        time.sleep(0.02)
        parsing -= 1
        return json.loads(text)

    monkeypatch.setattr("fairlane_controller.loop.control.parse_json", parse)
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        await asyncio.gather(*(ask(tmp_path, {"op": "echo"}) for _ in range(4)))
    assert most == 1


async def test_requests_and_answers_may_be_long(tmp_path: Path) -> None:
    vcs = [{"name": f"vc{number}", "match": ["x" * 400]} for number in range(4096)]
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        answers = await asyncio.gather(*(ask(tmp_path, {"op": "echo", "vcs": vcs, "n": n}) for n in range(3)))
        assert [(len(answer["vcs"]), answer["n"]) for answer in answers] == [(4096, 0), (4096, 1), (4096, 2)]


# ---- clients that keep others out ------------------------------------------------------------------------------------


async def connect(folder: Path, number: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    return [await asyncio.open_unix_connection(str(folder / SOCKET_FILE)) for _ in range(number)]


async def test_clients_that_are_idle_lock_nobody_out(tmp_path: Path) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        idle = await connect(tmp_path, MAX_CLIENTS)
        for number in range(2):
            assert await ask(tmp_path, {"op": "echo", "x": number}, 5) == {"op": "echo", "x": number}
        assert await asyncio.wait_for(idle[0][0].read(), 5) == b""
        idle[-1][1].write(b'{"op": "echo"}')
        idle[-1][1].write_eof()
        assert await asyncio.wait_for(idle[-1][0].read(), 5), "the newest is served on"
        for _, writer in idle:
            writer.close()


async def test_who_is_served_gives_no_way_and_the_loop_asks_itself_all_the_same(tmp_path: Path) -> None:
    count, all_busy = 0, asyncio.Event()

    async def hang(request: dict[str, Any]) -> Any:
        nonlocal count
        if request["op"] == "status":
            return "asked itself"
        count += 1
        if count == MAX_CLIENTS:
            all_busy.set()
        return await asyncio.Event().wait()

    async with ControlServer(tmp_path / SOCKET_FILE, hang) as server:
        busy = await connect(tmp_path, MAX_CLIENTS)
        for _, writer in busy:
            writer.write(b'{"op": "hang"}')
            writer.write_eof()
        await asyncio.wait_for(all_busy.wait(), 10)
        with pytest.raises(FairlaneError, match=f"has {MAX_CLIENTS} clients already"):
            await ask(tmp_path, {"op": "status"}, 5)
        token = own_loop.set((tmp_path, server.ask))
        try:
            assert await ask(tmp_path, {"op": "status"}, 5) == "asked itself"
            assert loop_runs(tmp_path)
        finally:
            own_loop.reset(token)
        for _, writer in busy:
            writer.close()


@pytest.mark.parametrize("begun", [b"", b"{"])
async def test_a_connection_that_is_idle_ends(tmp_path: Path, begun: bytes) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler, client_timeout_s=0.01):
        ((reader, writer),) = await connect(tmp_path, 1)
        writer.write(begun)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_who_does_not_take_his_answer_is_let_go(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def long(_: dict[str, Any]) -> str:
        asked.set()
        return "x" * (4 << 20)

    async def ends(task: asyncio.Task[None] | None) -> None:
        await asked.wait()
        while asyncio.all_tasks() - {task, asyncio.current_task()}:
            await asyncio.sleep(0.01)

    async with ControlServer(tmp_path / SOCKET_FILE, long, client_timeout_s=0.05):
        ((_, writer),) = await connect(tmp_path, 1)
        writer.write(b'{"op": "echo"}')
        writer.write_eof()  # our reader takes 128 KiB, and then no more
        await asyncio.wait_for(ends(asyncio.current_task()), 5)
        writer.close()


async def test_who_do_not_take_their_answers_lock_nobody_out(tmp_path: Path) -> None:
    async def long(request: dict[str, Any]) -> str:
        return "" if request["op"] == "short" else "x" * (1 << 20)

    async with ControlServer(tmp_path / SOCKET_FILE, long):
        asking = await connect(tmp_path, MAX_CLIENTS)
        for _, writer in asking:
            writer.write(b'{"op": "long"}')
            writer.write_eof()
        await asyncio.sleep(0.3)  # our readers take 128 KiB, and then no more
        assert await ask(tmp_path, {"op": "short"}, 5) == ""
        for _, writer in asking:
            writer.close()


async def test_what_was_begun_and_does_not_come_blocks_nobody(tmp_path: Path) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        silent = await connect(tmp_path, 3)
        for _, writer in silent:
            writer.write(b"{")
        request = {"op": "echo", "x": "x" * (3 << 19)}
        assert await ask(tmp_path, request, 5) == request
        for _, writer in silent:
            writer.close()


async def test_parts_of_requests_take_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends for longest gives way to one that comes in."""
    monkeypatch.setattr("fairlane_controller.loop.control.MAX_RECEIVED_BYTES", 1 << 20)
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        slow = await connect(tmp_path, 3)
        for _, writer in slow:
            writer.write(bytes(400_000))
        assert await asyncio.wait_for(slow[0][0].read(), 5) == b""
        request = {"op": "echo", "x": "x" * 900_000}
        assert await ask(tmp_path, request, 5) == request
        for _, writer in slow:
            writer.close()


# ---- requests that outlive their clients -----------------------------------------------------------------------------


async def test_a_request_is_carried_out_to_its_end_also_when_its_client_has_gone(tmp_path: Path) -> None:
    begun, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: dict[str, Any]) -> Any:
        begun.set()
        await go.wait()
        done.set()

    async with ControlServer(tmp_path / SOCKET_FILE, slow):
        with pytest.raises(FairlaneError, match="did not answer within"):
            await ask(tmp_path, {"op": "echo"}, timeout_s=0.1)
        await begun.wait()
        go.set()
        await asyncio.wait_for(done.wait(), 10)


async def test_no_request_goes_on_when_the_server_has_ended(tmp_path: Path) -> None:
    begun: dict[str, asyncio.Event] = {"first": asyncio.Event(), "late": asyncio.Event()}
    ended: list[str] = []

    async def slow(request: dict[str, Any]) -> Any:
        begun[request["op"]].set()
        try:
            await asyncio.Event().wait()
        finally:
            if request["op"] == "first":
                late.write(b'{"op": "late"}')
                late.write_eof()
                await asyncio.wait_for(begun["late"].wait(), 5)
            ended.append(request["op"])

    async with ControlServer(tmp_path / SOCKET_FILE, slow):
        (_, first), (_, late) = await connect(tmp_path, 2)
        first.write(b'{"op": "first"}')
        first.write_eof()
        await asyncio.wait_for(begun["first"].wait(), 5)
    assert ended == ["first", "late"]
    for writer in (first, late):
        writer.close()


@pytest.mark.parametrize(("op", "name"), [("fault", "RuntimeError"), ("other", "KeyError")])
async def test_a_fault_of_ours_is_no_bad_input_and_its_traceback_is_an_event(
    tmp_path: Path, op: str, name: str
) -> None:
    async with ControlServer(tmp_path / SOCKET_FILE, handler):
        with pytest.raises(FairlaneError, match=f"a fault of the control loop: {name}: .*fairlane log") as caught:
            await ask(tmp_path, {"op": op})
    assert caught.value.code is ErrorCode.INTERNAL
    (event,) = [json.loads(line) for line in (tmp_path / "controller-events.jsonl").read_text().splitlines()]
    assert (event["event"], event["request"]) == ("fault", op)
    assert "in handler" in event["traceback"]


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
