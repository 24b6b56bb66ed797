# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM (`timeout`, a batch system) end a campaign in the same way: workers stop, what was measured is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from fairlane_lab.cli.output import INTERRUPTED

TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM, as a shell would give it."""


@dataclass
class Stop:
    """Which signal came, if any."""

    terminated: bool = False

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM."""
        return TERMINATED if self.terminated else INTERRUPTED


@contextmanager
def stoppable() -> Generator[Stop]:
    """SIGTERM raises KeyboardInterrupt in the block, once; `timeout` sends it twice, and the second must not break the writing.

    Outside of the main thread, where Python takes no signals, nothing is changed.
    """
    stop = Stop()

    def on_term(_number: int, _frame: FrameType | None) -> None:
        if not stop.terminated:
            stop.terminated = True
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, on_term)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)
