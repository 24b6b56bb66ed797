# SPDX-License-Identifier: Apache-2.0
"""Primary and backup of one run-state folder: who has which part, and the part that passes on when a process ends.

The kernel's lock on the folder decides, so a primary that is killed (-9) is followed at once, and there are never two.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from pathlib import Path
from typing import IO, Any

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.control import ControlServer, Handler
from fairlane_controller.state.ask import BACKUP_SOCKET_FILE, SOCKET_FILE
from fairlane_controller.state.locks import BACKUP_LOCK_FILE, LOOP_LOCK_FILE, already_runs, lock_holder, take_lock

POLL_S = 0.05
"Between two looks of a backup at the primary's lock."


class Role(str, Enum):
    """The part of a controller in its folder."""

    PRIMARY = "primary"
    BACKUP = "backup"


class FolderRole:
    """Holds one of the folder's two locks until `close`; without a folder there is no other controller: always the primary."""

    def __init__(self, folder: Path | None, *, backup: bool = False) -> None:
        """`backup`: wait for the primary to go, if there is one.

        Without, a controller whose place was taken by its backup becomes the backup of that one, so that whatever starts it
        again after a crash needs no other options, and the switches do not change hands twice.
        Raises LOOP_RUNNING when the folder has a primary (for a backup: a backup too), BAD_FILE.
        """
        self.folder = folder
        self.started_as = Role.BACKUP if backup else Role.PRIMARY
        self.role = Role.PRIMARY
        self.server: ControlServer | None = None
        "The primary's, while people reach it."
        self._primary: IO[str] | None = None
        self._backup: IO[str] | None = None
        if folder is None:
            return
        self._primary = self._take(LOOP_LOCK_FILE)
        if self._primary is not None:
            return
        if not backup and lock_holder(folder, LOOP_LOCK_FILE).get("started_as") != Role.BACKUP.value:
            raise already_runs(folder, LOOP_LOCK_FILE)
        self._backup = self._take(BACKUP_LOCK_FILE)
        if self._backup is None:
            raise already_runs(folder, BACKUP_LOCK_FILE)
        self.role = Role.BACKUP

    def _take(self, name: str) -> IO[str] | None:
        assert self.folder is not None
        return take_lock(self.folder, name, started_as=self.started_as.value)

    async def wait_until_primary(self) -> None:
        """Until the primary has gone; then this is the primary, and the folder may have another backup."""
        while self.role is Role.BACKUP:
            self._primary = self._take(LOOP_LOCK_FILE)
            if self._primary is None:
                await asyncio.sleep(POLL_S)
                continue
            self.role = Role.PRIMARY
            if self._backup is not None:
                self._backup.close()
                self._backup = None

    async def serve(
        self,
        handler: Handler,
        status: Callable[[], Any],
        on_lead: Callable[[bool], Awaitable[None]],
        guard: Callable[[], AbstractAsyncContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        """Serve the folder's control socket, until cancelled; as the backup only `status`, on a socket of its own.

        `on_lead` is called before people reach the primary, with True when it was the backup until now; `guard` is held
        meanwhile and until the socket is there. Without a folder there is no socket.
        """
        was_backup = self.role is Role.BACKUP
        if was_backup and self.folder is not None:
            async with ControlServer(self.folder / BACKUP_SOCKET_FILE, self._only(status)):
                await self.wait_until_primary()
        async with contextlib.AsyncExitStack() as stack:
            async with guard():
                await on_lead(was_backup)
                if self.folder is not None:
                    self.server = await stack.enter_async_context(ControlServer(self.folder / SOCKET_FILE, handler))
            await asyncio.Event().wait()

    def _only(self, status: Callable[[], Any]) -> Handler:
        async def handle(request: dict[str, Any]) -> Any:
            if request["op"] == "status":
                return {"pid": os.getpid(), "switches": status()}
            raise FairlaneError(ErrorCode.LOOP_RUNNING, "this is the backup: it answers `status` only")

        return handle

    def close(self) -> None:
        """Let the folder go."""
        for lock in (self._primary, self._backup):
            if lock is not None:
                lock.close()
        self._primary = self._backup = None
