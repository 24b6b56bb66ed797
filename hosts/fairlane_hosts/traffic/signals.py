# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGINT as a flag and as something that an epoll wakes up for."""

from __future__ import annotations

import os
import signal
from types import FrameType


class StopSignal:
    """`stopped` after the first SIGTERM or SIGINT; `fd` becomes readable then."""

    def __init__(self) -> None:
        self.stopped = False
        self.fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self.stopped:
            self.stopped = True
            os.write(self._write_fd, b"x")
