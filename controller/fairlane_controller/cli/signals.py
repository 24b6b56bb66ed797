# SPDX-License-Identifier: Apache-2.0
"""How a command in the foreground is asked to end: SIGTERM, or SIGINT by ^C."""

from __future__ import annotations

import asyncio
import signal


def make_end_event() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT from now on; of the running event loop."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended
