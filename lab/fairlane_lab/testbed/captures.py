# SPDX-License-Identifier: Apache-2.0
"""Captures of links while a run is under way, by the process of the links."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlane_switch.wire import WireClient


class Captures:
    """Those of one run. All methods raise ControlError."""

    def __init__(self, wire: Path, files: Mapping[str, Path]) -> None:
        """Begin them: `files` by link; `wire` is the control socket of the links' process."""
        self._clients: dict[Path, WireClient] = {}
        self._problems: list[str] = []
        for link, file in files.items():
            client = self._clients[file] = WireClient(wire)
            client.capture(link, file)

    def look(self) -> None:
        """To be called every few seconds: captures that nobody asks for end."""
        self._take_in(end=False)

    def end(self) -> list[str]:
        """End them; returns what is missing in their files."""
        self._take_in(end=True)
        return self._problems

    def _take_in(self, *, end: bool) -> None:
        for file, client in [*self._clients.items()]:
            state = client.end_capture(file) if end else client.capture_state(file)
            if state.done:
                del self._clients[file]
                client.close()
                self._problems += [state.error] if state.error else []
                lost = f"{file}: {state.lost} packets came faster than the disk takes them"
                self._problems += [lost] if state.lost else []
