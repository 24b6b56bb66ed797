# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to the control loop's socket: each gets an answer, every refusal says what is wrong, and the loop goes on."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

from fairlane_controller.config.model import loop_model
from fairlane_controller.config.reload import parse_loop
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.requests import REQUESTS, checked
from fairlane_controller.programs.qthresh.control import QthreshTopology
from fairlane_controller.state.ask import SOCKET_FILE
from fairlane_controller.switch.updates import plain_updates, updates_of
from finsy import P4Schema
from fuzz_tools import documents, explore, readable, texts
from live_switch import COMPILED, LiveSwitch

UPDATE = {
    "update": "insert",
    "table": "ipv4_lpm",
    "match": {"dst": ["10.9.0.0", 16]},
    "action": "forward",
    "args": {"dst_mac": "08:00:00:00:01:11", "port": 1},
}
RAW = {"update": "modify", "entity": "counter_entry", "text": "counter_entry { counter_id: 3 index { index: 1 } }"}
GOOD: tuple[dict[str, Any], ...] = (
    {"op": "status"},
    {"op": "measure"},
    {"op": "table_write", "switch": "s1", "updates": [UPDATE, {**UPDATE, "update": "delete"}], "command": "threshold set 5"},
    {"op": "table_write", "switch": "s1", "updates": [RAW]},
    {"op": "poke"},
    {"op": "loop_options"},
    {"op": "loop_put", "loop": {"flow_weights": [{"dst_port": 5001, "weight": 2}, {"src": "10.0.1.1", "weight": 0.5}]}},
)  # fmt: skip

ALL = {**REQUESTS, **QthreshTopology.requests}


def judge(answer: dict[str, Any]) -> None:
    """An answer is a result, or a refusal that people can read and that is no fault of ours."""
    assert set(answer) in ({"ok", "result"}, {"ok", "error"}), answer
    if answer["ok"] is True:
        return
    error = answer["error"]
    assert error["code"] != ErrorCode.INTERNAL.value, error
    readable(error["message"])
    for words in ("KeyError", "TypeError", "AttributeError", "NoneType", "object is not"):
        assert words not in error["message"], error


def explore_requests(examples: int, seed: int) -> None:
    """The table of requests, and what is made of one without a switch: nothing but a request or a refusal comes out of it."""
    assert {request["op"] for request in GOOD} == set(ALL)
    schema = P4Schema(COMPILED / "qthresh.p4info.txtpb")

    def one(given: Any) -> None:
        try:
            request = checked(given, ALL)
            match request["op"]:
                case "table_write":
                    plain_updates(updates_of(request["updates"]), schema)
                case "loop_put":
                    parse_loop(request["loop"], loop_model())
                case _:
                    pass
        except FairlaneError as ex:
            judge({"ok": False, "error": ex.to_json()})

    explore(one, documents(*GOOD), examples, seed)


class Client:
    """A connection to the socket for each request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, line: bytes) -> dict[str, Any] | None:
        """The answer to a request; None when the loop closed the connection. TimeoutError when nothing comes."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30.0)
            connection.connect(str(self._path))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                with connection.makefile("rb") as answers:
                    text = answers.read()
                return json.loads(text) if text else None
        return None


def explore_loop(folder: Path, examples: int, seed: int) -> None:
    """Requests to a loop that runs for the folder."""
    client = Client(folder / SOCKET_FILE)

    def one(given: bytes) -> None:
        for line in given.split(b"\n"):
            if not line.strip():
                continue
            answer = client.ask(line)
            if answer is not None:
                judge(answer)
        status = client.ask(b'{"op": "status"}') or client.ask(b'{"op": "status"}')
        assert status is not None, "the loop has ended"
        assert status["ok"], status

    explore(one, texts(*GOOD), examples, seed)


@contextlib.contextmanager
def running_loop() -> Generator[Path]:
    """A switch without interfaces and the loop that keeps it; needs the built switch, and no root."""
    with tempfile.TemporaryDirectory(prefix="fairlane-fuzz-") as place:
        switch = LiveSwitch("embedded", Path(place))
        switch.write_state()
        switch.start()
        try:
            switch.fairlane("config", "init", "--scheme", "qthresh")
            with switch.loop():
                yield switch.folder
        finally:
            switch.kill()


def explore_socket(examples: int, seed: int) -> None:
    """The same with a switch and a loop of its own."""
    with running_loop() as folder:
        explore_loop(folder, examples, seed)
