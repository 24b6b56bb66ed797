# SPDX-License-Identifier: Apache-2.0
"""Primary and backup of one run-state folder: which of them a process is, by the kernel's locks.

So a primary that is killed (-9) is followed at once, and there are never two.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import IO

from fairlane_controller.state.locks import BACKUP_LOCK_FILE, LOOP_LOCK_FILE, already_runs, lock_holder, take_lock

POLL_S = 0.05
"How often a backup tries to take the primary's lock."


class FolderRole:
    """Holds one of the folder's two locks until `close`; without a folder there is no other controller: always the primary."""

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
