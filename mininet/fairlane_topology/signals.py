# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGHUP (a closed terminal, `timeout`, a batch system) end the launcher as `exit` does: everything that was made is removed.

A signal that comes while a step must not be broken (a process is started but not written down yet; what was made is being
removed) waits until the step is over: `defer_signals()`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal that ends the process has come; once, later ones are ignored."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number
        """As a shell would give it: 143 after SIGTERM, 129 after SIGHUP."""


@contextmanager
def ended_by_signals() -> Generator[None]:
    """In this block SIGTERM and SIGHUP raise Ended, once; from then on nothing comes any more, Ctrl-C neither.

    What is ignored already (nohup) stays so.
    """
    ended = False

    def take(number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        if ended:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        ended = True
        raise Ended(number)

    with handled(take):
        yield


@contextmanager
def defer_signals() -> Generator[None]:
    """Signals that come in this block come at its end, to whom they would have come: the one that ends, where there are several."""
    came: list[int] = []
    try:
        with handled(lambda number, _frame: came.append(number)):
            yield
    finally:
        if came:
            signal.raise_signal(next((number for number in came if number in ENDING), came[0]))


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object]) -> Generator[None]:
    """SIGINT, SIGTERM and SIGHUP that are not ignored go to `handler` in this block. Outside of the main thread, where Python takes no signals, nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = {
        number: there
        for number in (signal.SIGINT, *ENDING)
        if (there := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    try:
        for number in taken:
            signal.signal(number, handler)
        yield
    finally:
        for number, there in taken.items():
            signal.signal(number, there)
