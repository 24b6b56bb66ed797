# SPDX-License-Identifier: Apache-2.0
"""One at a time in a run-state folder: locks that end with the process however it ends."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from fairlane_controller.errors import ErrorCode, FairlaneError

CHANGE_LOCK_FILE = "gfr.lock"
CHANGE_TIMEOUT_S = 20.0
_RETRY_S = 0.02


def take_lock(folder: Path, name: str) -> IO[str] | None:
    """The open, locked file, which the caller closes; None when somebody else has it. Raises BAD_FILE."""
    try:
        file = (folder / name).open("a+", encoding="utf-8")
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write to {folder}: {ex.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


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
