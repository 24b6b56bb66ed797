# SPDX-License-Identifier: Apache-2.0
"""The client of a wire's control socket, whose connections the wire may end at any time."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest
from fairlane_switch.control import ControlError
from fairlane_switch.wire import WireClient


def test_a_connection_that_was_idle_for_too_long_is_made_anew(tmp_path: Path) -> None:
    path, asked = tmp_path / "wire.sock", list[str]()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(10)

        def serve() -> None:
            """One answer a connection: two whole ones, none, and a half."""
            answer = b'{"ok": true, "links": []}\n'
            for said in (answer, answer, b"", answer[:9]):
                connection = listener.accept()[0]
                with connection, connection.makefile("rb") as lines:
                    if said:
                        asked.append(json.loads(lines.readline())["op"])
                        connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        with WireClient(path) as wire:
            assert wire.links() == []
            assert wire.stats() == {}
            for _ in range(2):
                with pytest.raises(ControlError, match="it has closed the connection"):
                    wire.links()
        thread.join(10)
    assert asked == ["get", "stats", "get"]  # what was half answered may have been carried out
