# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM (`timeout`, a batch system) and SIGHUP (a closed terminal) end a campaign in the same way: workers stop, what was measured is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Which signal came, if any."""

    number: int | None = None

    @property
    def is_requested(self) -> bool:
        """Whether a signal asked this process to stop, also when the KeyboardInterrupt was caught elsewhere."""
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """As a shell would give it: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def stoppable() -> Generator[Stop]:
    """SIGTERM, SIGHUP and Ctrl-C raise KeyboardInterrupt in the block; the first two once: `timeout` sends SIGTERM twice, and the second must not break the writing.

    The first is remembered in any case: a library that is closed by the interrupt may raise an error of its own in its place.
    Outside of the main thread, where Python takes no signals, nothing is changed.
    """
    stop = Stop()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        repeated, stop.number = stop.is_requested, stop.number or number
        if number == signal.SIGINT or not repeated:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if is_main else ()
    before = {each: signal.signal(each, on_signal) for each in wanted if signal.getsignal(each) is not signal.SIG_IGN}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
