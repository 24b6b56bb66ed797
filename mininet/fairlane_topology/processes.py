# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of a topology again that have died.

The launcher is their parent. They do not outlive it: `stop.py --after`, one of them, sees its end.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from fairlane_switch.process import Service

POLL_S = 0.2
"""Between two polls of the supervisor."""
STARTS_MAX = 5
"""Starts in a row, each of which lasted less than `WELL_AFTER_S`: then it stays dead."""
WELL_AFTER_S = 10.0


class Supervisor:
    """Starts services again that have died, in a thread of its own, until it is closed."""

    def __init__(
        self,
        services: Callable[[], Iterable[Service]],
        restart: Callable[[Service], None],
        report: Callable[[Service, str], None],
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread.

        Args:
            services: those that it watches.
            restart: starts one; may raise RuntimeError or OSError.
            report: gets how one has died, and what follows.
            each_second: called every second.
        """
        self._services, self._restart, self._report, self._each_second = services, restart, report, each_second
        self._starts: defaultdict[str, list[float]] = defaultdict(list)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start nothing more; `wait` waits for what is being started."""
        self._closed.set()

    def wait(self, timeout_s: float = 10.0) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        second_at = time.monotonic() + 1
        while not self._closed.wait(POLL_S):
            for service in self._services():
                how = service.death()
                if how is not None and not service.given_up and not self._closed.is_set():
                    self._restart_dead(service, how)
            if time.monotonic() > second_at:
                second_at += 1
                self._each_second()

    def _restart_dead(self, service: Service, how: str) -> None:
        starts = self._starts[service.what]
        if starts and time.monotonic() - starts[-1] > WELL_AFTER_S:
            starts.clear()
        starts.append(time.monotonic())
        if len(starts) > STARTS_MAX:
            service.given_up = True
            self._report(service, f"{how}, as after {STARTS_MAX} starts before, and is not started again")
            return
        self._report(service, f"{how}, and is started again")
        with contextlib.suppress(RuntimeError, OSError):  # it has died again: the next poll sees it
            self._restart(service)
