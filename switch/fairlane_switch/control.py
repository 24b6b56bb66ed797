# SPDX-License-Identifier: Apache-2.0
"""The client of a control socket, a switch's or that of the process that has the links: a JSON object a line each way."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, TypeVar

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.files import reason

_Client = TypeVar("_Client", bound="ControlClient")


class ControlError(FairlaneError, RuntimeError):
    """REFUSED: the other end has refused a request, and has changed nothing. SWITCH_UNREACHABLE: nobody answers."""

    @property
    def is_unreachable(self) -> bool:
        """Whether nobody answers."""
        return self.code is ErrorCode.SWITCH_UNREACHABLE


class ControlClient:
    """A connection to a control socket; made anew when the other end has ended it, as it does with those that are idle."""

    who = "switch"
    """In an error: who does not answer."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        """Connect. Raises ControlError; every later request may raise it too, when nobody is there any more."""
        self.path = path
        self._timeout_s = timeout_s
        self._connect()

    def _connect(self) -> None:
        if self.path == Path():
            raise ControlError(
                ErrorCode.NO_TOPOLOGY, f"no {self.who} of this topology has a control socket: `make run` starts such"
            )
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(self._timeout_s)
        try:
            self._socket.connect(str(self.path))
        except OSError as error:
            self._socket.close()
            raise self._unreachable(reason(error)) from error
        self._answers = self._socket.makefile("rb")

    def _unreachable(self, why: str) -> ControlError:
        return ControlError(ErrorCode.SWITCH_UNREACHABLE, f"no {self.who} answers at {self.path}: {why}")

    def close(self) -> None:
        """Disconnect."""
        self._answers.close()
        self._socket.close()

    def __enter__(self: _Client) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return its answer. Raises ControlError."""
        text = json.dumps(request).encode() + b"\n"
        try:
            line = self._exchange(text)
            if not line:  # the connection had ended before: nothing was carried out
                self.close()
                self._connect()
                line = self._exchange(text)
        except OSError as error:
            raise self._unreachable(str(error) or type(error).__name__) from error
        if not line.endswith(b"\n"):
            raise self._unreachable("it has closed the connection")
        answer = json.loads(line)
        if not answer["ok"]:
            raise ControlError(ErrorCode.REFUSED, f"{request['op']}: {answer['error']}")
        return answer

    def _exchange(self, text: bytes) -> bytes:
        """The line that answers; empty, or without its end, when the other end has closed the connection."""
        try:
            self._socket.sendall(text)
            return self._answers.readline()
        except ConnectionError:
            return b""
