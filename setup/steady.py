# SPDX-License-Identifier: Apache-2.0
"""For tests that measure real time: a check that fails while this machine stood still says nothing, and is made again."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec

import pytest

P = ParamSpec("P")
TICK_S = 0.005
STALL_S = 0.05
"""A thread that asked for 5 ms and got this much more was not alone: what others measured meanwhile is void."""
WAITED_SHARE = 0.2
"""So is what was measured while tasks waited for a processor for a fifth of the time, where the kernel tells."""
ATTEMPTS = 4
_PRESSURE = Path("/proc/pressure/cpu")


class Watch:
    """Sees whether the machine stands still while inside."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        "By how much the thread woke up too late, at most."
        self.waited_share = 0.0
        "Of the time, that some task waited for a processor."
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._began = time.monotonic(), _waited_us()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._halt.set()
        self._thread.join(timeout=10)
        elapsed_s = max(1e-3, time.monotonic() - self._began[0])
        self.waited_share = (_waited_us() - self._began[1]) / 1e6 / elapsed_s

    @property
    def stood_still(self) -> bool:
        """Whether a measurement made meanwhile is void."""
        return self.longest_s > STALL_S or self.waited_share > WAITED_SHARE

    def __str__(self) -> str:
        return f"{1e3 * self.longest_s:.0f} ms at most, {self.waited_share:.0%} of the time"

    def _run(self) -> None:
        while not self._halt.is_set():
            before = time.monotonic()
            time.sleep(TICK_S)
            self.longest_s = max(self.longest_s, time.monotonic() - before - TICK_S)


def _waited_us() -> int:
    """Time in which some task waited for a processor; 0 where the kernel does not tell."""
    try:
        words = _PRESSURE.read_text().split("\n", 1)[0].split()
    except OSError:
        return 0
    return next((int(word[6:]) for word in words if word.startswith("total=")), 0)


def void_when_stalled(test: Callable[P, None]) -> Callable[P, None]:
    """A test whose checks hold on a machine that does not stand still: one that fails while it does is made again.

    A failure counts at once on a machine that ran on. When every attempt was void the test is skipped and says so.
    """

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        seen: list[str] = []
        given = kwargs.get("tmp_path")
        for attempt in range(ATTEMPTS):
            if isinstance(given, Path):  # what the attempt before left is not to be found
                folder = given / str(attempt)
                folder.mkdir()
                kwargs["tmp_path"] = folder
            with Watch() as watch:
                try:
                    test(*args, **kwargs)
                except Exception as error:  # a check, or what a measurement without a sample leads to
                    failed: Exception | None = error
                else:
                    return
            if not watch.stood_still:
                raise failed
            seen.append(str(watch))
        pytest.skip(f"this machine stood still in each of {ATTEMPTS} attempts ({'; '.join(seen)}): no verdict")

    return run
