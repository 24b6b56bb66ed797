# SPDX-License-Identifier: Apache-2.0
"""An asyncio event loop in virtual time: its clock is a simulation, and to wait for something is to let that one run.

    a task awaits ──► nothing is ready ──► the world runs until the next timer, or until a switch says something
          ▲                                                    │
          └── timers fire at their exact instant ◄── messages are delivered

There are no file descriptors, no threads and no wall clock in it, so a run is the same each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast


class VirtualTimeLoop(asyncio.base_events.BaseEventLoop):
    """`loop.run_until_complete(main())`: `loop.time()` and all timers are seconds of the world's time (`fairlane_switch.native.Simulation`).

    `deliver` is called whenever the world has run: it hands the switches' messages to whoever waits for them. A timer
    fires when the world is at its instant, rounded to a nanosecond. When every task waits and no timer is set, nothing
    can ever happen again: that raises RuntimeError instead of hanging. With `stop_on_messages` False (set it where nobody
    listens) the world runs from timer to timer without a look at what the switches say.
    """

    def __init__(self, world: Any, deliver: Callable[[], None], *, stop_on_messages: bool = True) -> None:
        super().__init__()
        self.stop_on_messages = stop_on_messages
        self._world = world
        self._deliver = deliver
        inherited = cast("Any", self)
        inherited._clock_resolution = 1e-9  # the world's: a timer this near is due
        inherited._selector = SimpleNamespace(select=self._wait)  # what is waited for are instants, never files

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._world.now_ns / 1e9

    def _wait(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return []
        timers: list[asyncio.TimerHandle] = cast("Any", self)._scheduled
        if timeout is None or not timers:
            raise RuntimeError("every task waits and no timer is set: nothing can ever happen again")
        self._world.run_until(round(timers[0].when() * 1e9), self.stop_on_messages)
        if self.stop_on_messages:
            self._deliver()
        return []

    # What the base class leaves to loops with real files and threads.

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
