# SPDX-License-Identifier: Apache-2.0
"""The loop's settings in memory and, where there is a run-state folder, in its file: changed all or nothing.

The file may be changed by others (a command without a loop, the primary while this is the backup): a newer one is read
before anything is decided.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.qthresh.policies import Policy, Scheme
from fairlane_controller.state.files import Replacement, read_json, write_json_atomically
from fairlane_controller.state.loop_state import (
    LOOP_STATE_FILE,
    LoopState,
    PolicyState,
    loop_state_text,
    loop_state_to_be,
    read_loop_state,
)

HELD_FILE = "controller-held.json"
"What the switches held last, by name: `[[port, class, scheme, packets, weight], …]`."
_ROWS = TypeAdapter(list[tuple[int, int, str, int | None, float]])


class LoopStore:
    """Settings of every policy; `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._version = self._version_of_file()
        self._held = self._read_held()
        self._state = read_loop_state(folder) if folder else LoopState()

    @property
    def persistent(self) -> bool:
        """Whether settings outlive the process."""
        return self._folder is not None

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy."""
        self._read_newer()
        return self._state.policy(switch, port, traffic_class)

    def held(self, switch: str) -> list[Policy]:
        """The policies that the switch held when a loop kept it last; none when that is not known, or not understood."""
        try:
            rows = _ROWS.validate_python(self._held.get(switch, []))
            return [
                Policy(port, number, Scheme(scheme), packets, weight) for port, number, scheme, packets, weight in rows
            ]
        except (ValueError, FairlaneError):
            return []

    def _read_held(self) -> dict[str, list[Any]]:
        if self._folder is None:
            return {}
        try:
            data: Any = read_json(self._folder / HELD_FILE)
        except (FileNotFoundError, FairlaneError):
            return {}
        return cast("dict[str, list[Any]]", data) if isinstance(data, dict) else {}

    def remember(self, switch: str, policies: Iterable[Policy]) -> None:
        """What the switch holds now, for a loop that finds it restarted; a disk that is full costs the memory alone."""
        rows = [[p.port, p.traffic_class, p.scheme.value, p.qthresh_packets, p.weight] for p in policies]
        if self._folder is None or not rows or self._held.get(switch) == rows:
            return
        self._held[switch] = rows
        with suppress(OSError):
            write_json_atomically(self._folder / HELD_FILE, self._held)

    @contextmanager
    def changed(self, switch: str, port: int, traffic_class: int, policy: PolicyState) -> Generator[None, None, None]:
        """Have the settings in force and their file ready, run the body (the write to the switch), then put the file in its place.

        Raises BAD_FILE before the body when the file cannot be written; when the body fails, settings and file are as they were.
        """
        with self.all_changed(switch, {(port, traffic_class): policy}):
            yield

    @contextmanager
    def all_changed(self, switch: str, policies: Mapping[tuple[int, int], PolicyState]) -> Generator[None, None, None]:
        """As `changed`, of several (egress port, class) of a switch."""
        self._read_newer()
        if not policies:
            yield
            return
        version = self._version
        before = {key: self._state.policy(switch, *key) for key in policies}
        wanted = self._with(switch, policies)
        with self._file_to_be(wanted) as file:
            self._state = wanted
            try:
                yield
            except BaseException:
                self._state = self._with(switch, before)  # another change may have been made meanwhile: it stays
                if file is not None and self._version != version:
                    file.put(loop_state_text(self._state))
                    self._commit(file)
                raise
            if file is not None:
                if self._state is not wanted:
                    file.put(loop_state_text(self._state))
                self._commit(file)

    def _with(self, switch: str, policies: Mapping[tuple[int, int], PolicyState]) -> LoopState:
        state = self._state
        for (port, traffic_class), policy in policies.items():
            state = state.with_policy(switch, port, traffic_class, policy)
        return state

    def _file_to_be(self, state: LoopState) -> Replacement | nullcontext[None]:
        """The file with that state, or nothing where settings are kept in memory only."""
        return loop_state_to_be(self._folder, state) if self._folder else nullcontext()

    def _commit(self, file: Replacement) -> None:
        file.commit()
        self._version = self._version_of_file()

    def _version_of_file(self) -> tuple[int, int] | None:
        """Another one for each file: it is replaced, never written in place."""
        if self._folder is None:
            return None
        try:
            found = (self._folder / LOOP_STATE_FILE).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _read_newer(self) -> None:
        """Read the file again when it is another one; one that cannot be understood changes nothing."""
        if self._folder is None:
            return
        version = self._version_of_file()
        if version is None or version == self._version:
            return
        self._version = version
        with suppress(FairlaneError):
            self._state = read_loop_state(self._folder)
