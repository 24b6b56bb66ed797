# SPDX-License-Identifier: Apache-2.0
"""One at a time in a run-state folder: locks that end with the process however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from fairlane_controller.documents import is_table, read_json
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file

LOOP_LOCK_FILE = "controller.lock"
"Held by the primary."
BACKUP_LOCK_FILE = "controller-backup.lock"
"Held by the backup while it waits."
CHANGE_LOCK_FILE = "change.lock"
"Held while a change is made by hand."
CHANGE_TIMEOUT_S = 30.0
_RETRY_S = 0.02


def take_lock(folder: Path, name: str, *, keep_text: bool = False, **holder: Any) -> IO[str] | None:
    """The open, locked file, which the caller closes; None when another process has the lock. Raises BAD_FILE.

    The file names its holder: the process id, and what `holder` adds; with `keep_text` its text stays."""
    try:
        file = (folder / name).open("a+", encoding="utf-8")
    except OSError as ex:
        raise bad_file(f"cannot write to {folder}: {ex.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    if not keep_text:
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
            _write_holder(file, **holder)
    return file


def _write_holder(file: IO[str], **holder: Any) -> None:
    file.truncate(0)
    file.write(json.dumps({"pid": os.getpid(), **holder}) + "\n")
    file.flush()


def lock_holder(folder: Path, name: str) -> dict[str, Any]:
    """The holder's entry in a lock's file (of the last holder when the lock is free); empty without one."""
    data = read_json(folder / name)
    return data if is_table(data) else {}


class ChangeLock:
    """The lock of a folder's changes, until the end of `with`. Its file names the change of the journal that is being made, also
    after its maker was killed."""

    def __init__(self, folder: Path, file: IO[str]) -> None:
        self.folder = folder
        number = lock_holder(folder, CHANGE_LOCK_FILE).get("change")
        self.unfinished = number if isinstance(number, int) else None
        "The number of the change that a process has begun and not ended."
        self._file = file

    def __enter__(self) -> ChangeLock:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begin(self, number: int) -> None:
        """From now on the change of that number is being made. Raises BAD_FILE, with nothing changed, when that cannot be written."""
        try:
            _write_holder(self._file, change=number)
        except OSError as ex:
            raise bad_file(
                f"cannot write {self.folder / CHANGE_LOCK_FILE}: {ex.strerror}; nothing was changed"
            ) from None
        self.unfinished = number

    def end(self) -> None:
        """The change was made, or taken back."""
        with contextlib.suppress(OSError):  # a full disk: an empty file says the same
            _write_holder(self._file)
        self.unfinished = None


@asynccontextmanager
async def change_lock(folder: Path) -> AsyncGenerator[ChangeLock]:
    """The lock of a folder's changes; TIMED_OUT when another change takes 30 s."""
    end = time.monotonic() + CHANGE_TIMEOUT_S
    while (lock := try_change_lock(folder)) is None:
        if time.monotonic() > end:
            raise ErrorCode.TIMED_OUT(f"another change of {folder} did not end within {CHANGE_TIMEOUT_S:g} s")
        await asyncio.sleep(_RETRY_S)
    with lock:
        yield lock


def try_change_lock(folder: Path) -> ChangeLock | None:
    """As `change_lock`, at once; None while another process has it."""
    file = take_lock(folder, CHANGE_LOCK_FILE, keep_text=True)
    return None if file is None else ChangeLock(folder, file)


def already_runs(folder: Path, name: str) -> FairlaneError:
    """LOOP_RUNNING with the process that has the lock."""
    who = "a control loop and a backup run" if name == BACKUP_LOCK_FILE else "a control loop runs"
    holder = lock_holder(folder, name).get("pid", "unknown")
    text = f"{who} for {folder} already (process {holder}); `fairlane run --backup` waits to take over from a loop"
    return ErrorCode.LOOP_RUNNING(text)


# ---- primary and backup ----------------------------------------------------------------------------------------------

POLL_S = 0.05
"How often a backup tries to take the primary's lock."


class FolderRole:
    """Primary or backup of a run-state folder, by the kernel's locks: a primary that is killed (-9) is followed at once, and there are never two.

    Holds one of the folder's two locks until `close`; without a folder there is no other controller: always the primary.
    """

    def __init__(self, folder: Path | None, *, backup: bool = False) -> None:
        """Become the primary, or the backup where there is a primary.

        Args:
            folder: the run-state folder.
            backup: False: only a controller that its backup has replaced becomes the backup of that one, so that whatever starts
                it again after a crash needs no other options, and the switches do not change hands twice.

        Raises:
            FairlaneError: LOOP_RUNNING when the folder has a primary (for a backup: a backup too), BAD_FILE.
        """
        self.is_primary = True
        self._folder = folder
        self._started_as = "backup" if backup else "primary"
        self._lock: IO[str] | None = None
        if folder is None:
            return
        self._lock = self._take(folder, LOOP_LOCK_FILE)
        if self._lock is None:
            if not backup and lock_holder(folder, LOOP_LOCK_FILE).get("started_as") != "backup":
                raise already_runs(folder, LOOP_LOCK_FILE)
            self._lock = self._take(folder, BACKUP_LOCK_FILE)
            if self._lock is None:
                raise already_runs(folder, BACKUP_LOCK_FILE)
            self.is_primary = False

    def _take(self, folder: Path, name: str) -> IO[str] | None:
        return take_lock(folder, name, started_as=self._started_as)

    async def wait_until_primary(self) -> None:
        """Until the primary has ended; then this is the primary, and the folder may have another backup."""
        while not self.is_primary and self._folder is not None:
            lock = self._take(self._folder, LOOP_LOCK_FILE)
            if lock is None:
                await asyncio.sleep(POLL_S)
                continue
            self.close()
            self._lock, self.is_primary = lock, True

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
