# SPDX-License-Identifier: Apache-2.0
"""One change of the VCs at a time, with and without a loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.locks import take_lock

CHANGE_LOCK_FILE = "gfr.lock"
CHANGE_TIMEOUT_S = 20.0
_RETRY_S = 0.02


@asynccontextmanager
async def change_lock(folder: Path) -> AsyncGenerator[None]:
    """Held while a change without a loop is made; TIMED_OUT when another one takes 20 s."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CHANGE_TIMEOUT_S
    while (file := take_lock(folder, CHANGE_LOCK_FILE)) is None:
        if loop.time() > deadline:
            raise FairlaneError(
                ErrorCode.TIMED_OUT, f"another change of {folder} did not end within {CHANGE_TIMEOUT_S:g} s"
            )
        await asyncio.sleep(_RETRY_S)
    try:
        yield
    finally:
        file.close()
