# SPDX-License-Identifier: Apache-2.0
"""One at a time in a run-state folder: locks that end with the process however it ends."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from fairlane_controller.errors import ErrorCode, FairlaneError

LOOP_LOCK_FILE = "controller.lock"


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


def take_loop_lock(folder: Path) -> IO[str]:
    """The lock of the folder's one control loop, which the caller closes. Raises LOOP_RUNNING, BAD_FILE."""
    lock = take_lock(folder, LOOP_LOCK_FILE)
    if lock is None:
        raise FairlaneError(ErrorCode.LOOP_RUNNING, f"a control loop runs for {folder} already")
    return lock
