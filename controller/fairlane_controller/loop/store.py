# SPDX-License-Identifier: Apache-2.0
"""The loop's settings in memory and, where there is a run-state folder, in its file: changed all or nothing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fairlane_controller.state.loop_state import LoopState, PolicyState, read_loop_state, write_loop_state


class LoopStore:
    """Settings of every policy; `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._state = read_loop_state(folder) if folder else LoopState()

    @property
    def persistent(self) -> bool:
        """Whether settings outlive the process."""
        return self._folder is not None

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy."""
        return self._state.policy(switch, port, traffic_class)

    @contextmanager
    def changed(self, switch: str, port: int, traffic_class: int, policy: PolicyState) -> Generator[None, None, None]:
        """Store the settings first, then run the body (the write to the switch); take them back if it fails."""
        before = self._state
        self._put(before.with_policy(switch, port, traffic_class, policy))
        try:
            yield
        except BaseException:
            self._put(before)
            raise

    def _put(self, state: LoopState) -> None:
        if self._folder:
            write_loop_state(self._folder, state)
        self._state = state
