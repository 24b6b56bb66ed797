# SPDX-License-Identifier: Apache-2.0
"""How long a run's processes waited for a processor: senders, receivers, switches and links that stood still say nothing of the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PERIOD_S = 0.25
STANDSTILL_S = 0.1
"""A thread that waited so long within a period stood still."""


class Standstills:
    """Reads, each PERIOD_S, how long each thread was ready to run and did not (proc(5), /proc/PID/task/TID/schedstat)."""

    def __init__(self) -> None:
        self._waited_s: dict[int, float] = {}
        self._last_s: float | None = None

    def read(self, now_s: float, processes: Mapping[int, str]) -> list[tuple[float, str, float]]:
        """(instant, what it is, seconds) of each that stood still since the reading before; `processes` says by pid what they are.

        A reading that is late itself means that the whole machine stood still. Without /proc/PID/task/TID/schedstat only that is seen.
        """
        found: list[tuple[float, str, float]] = []
        if self._last_s is not None and (late_s := now_s - self._last_s - PERIOD_S) > STANDSTILL_S:
            found.append((now_s, "this machine", late_s))
        self._last_s = now_s
        for pid, what in processes.items():
            for thread, waited_s in _waits(pid):
                new_s = waited_s - self._waited_s.get(thread, waited_s)
                self._waited_s[thread] = waited_s
                if new_s > STANDSTILL_S:
                    found.append((now_s, what, new_s))
        return found


def _waits(pid: int) -> list[tuple[int, float]]:
    """(thread, seconds) of a process; nothing of one that has ended."""
    found: list[tuple[int, float]] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found.append((int(task.name), int((task / "schedstat").read_text().split()[1]) / 1e9))
    except (OSError, IndexError):
        pass
    return found
