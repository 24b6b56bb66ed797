# SPDX-License-Identifier: Apache-2.0
"""The client of a wire's control socket: a connection that the wire has ended is made anew."""

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
            """One request a connection, and none on the last."""
            for answers in (1, 1, 0):
                connection = listener.accept()[0]
                with connection, connection.makefile("rb") as lines:
                    for _ in range(answers):
                        asked.append(json.loads(lines.readline())["op"])
                        connection.sendall(b'{"ok": true, "links": []}\n')

        thread = threading.Thread(target=serve)
        thread.start()
        with WireClient(path) as wire:
            assert wire.links() == []
            assert wire.stats() == {}
            with pytest.raises(ControlError, match="it has closed the connection"):
                wire.links()
        thread.join(10)
    assert asked == ["get", "stats"]
