# SPDX-License-Identifier: Apache-2.0
"""The loop's settings of policies, and what its switches had last: in the state file of a run-state folder, or in memory.

Other processes change the file too (a command without a loop, the primary while this is the backup): what is newer there counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter

from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.qthresh.loop_state import POLICIES, PolicyState, loop_state_of, policy_key
from fairlane_controller.programs.qthresh.policies import Policy, Scheme
from fairlane_controller.state.store import Documents, Store

CURRENT = "current/"
"""Documents `current/SWITCH`: its policies, `[[port, class, scheme, packets, weight], …]`."""
PolicyKey = tuple[str, int, int]
"""Switch, egress port, class."""
Write = Callable[[Store, Documents], None]


class Commit(Protocol):
    """Keep what has been changed."""

    def __call__(self, write: Write = ...) -> Awaitable[None]:
        """`write` puts the documents into the state file, maybe with more, in one transaction."""
        ...


_ROWS = TypeAdapter(list[tuple[int, int, str, int | None, float]])


class LoopStore:
    """Settings of every policy; `folder` None keeps them in memory only, as `dry_run` keeps what changes."""

    def __init__(self, folder: Path | None, *, dry_run: bool = False) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        self.persistent = folder is not None
        "Whether settings outlive the process."
        self._dry_run = dry_run
        self._store = Store(folder)
        self._stamp = self._store.stamp(POLICIES)
        self._state = loop_state_of(self._store)
        self._changing: dict[str, PolicyState] = {}
        "Settings whose change is being made: in force already, in the file when the switch has taken its part."
        self._rows: dict[str, list[Any]] = {}

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy."""
        self._read_newer()
        return self._changing.get(policy_key(switch, port, traffic_class)) or self._state.policy(
            switch, port, traffic_class
        )

    def read_policies(self, switch: str) -> list[Policy]:
        """The policies that the switch had when a loop served it last; none when that is not known, or not understood."""
        try:
            rows = _ROWS.validate_python(self._store.get(CURRENT + switch) or [])
            return [
                Policy(port, number, Scheme(scheme), packets, weight) for port, number, scheme, packets, weight in rows
            ]
        except (ValueError, FairlaneError):
            return []

    def remember(self, switch: str, policies: Iterable[Policy]) -> None:
        """What the switch has now, for a loop that finds it restarted; a disk that is full costs the memory alone."""
        rows = [[p.port, p.traffic_class, p.scheme.value, p.qthresh_packets, p.weight] for p in policies]
        if not self.persistent or self._dry_run or not rows or self._rows.get(switch) == rows:
            return
        self._rows[switch] = rows
        with suppress(RuntimeError):  # no event loop: a test
            asyncio.get_running_loop().run_in_executor(None, self._keep, CURRENT + switch, rows)
            return
        self._keep(CURRENT + switch, rows)

    def _keep(self, name: str, value: Any) -> None:
        with suppress(FairlaneError):
            self._store.put({name: value})

    def put(self, policies: Mapping[PolicyKey, PolicyState]) -> None:
        """Replace settings, independent of the current state of the switches."""
        self._store.put(
            {POLICIES + policy_key(*key): policy.model_dump(mode="json") for key, policy in policies.items()}
        )

    @asynccontextmanager
    async def changed(self, policies: Mapping[PolicyKey, PolicyState]) -> AsyncGenerator[Commit]:
        """Have settings in force while the body writes to the switches, and keep them when it calls what it is given.

        That one puts them into the state file by `write(store, documents)`, in one transaction. Raises BAD_FILE before the body
        when the disk has no room; when the body fails, the settings are as they were. Changes of different policies do not
        concern each other, also when they are made at the same time.
        """
        mine = {policy_key(*key): policy for key, policy in policies.items()}
        documents = {POLICIES + key: policy.model_dump(mode="json") for key, policy in mine.items()}

        async def commit(write: Write = Store.put) -> None:
            if self.persistent and not self._dry_run:
                await asyncio.to_thread(write, self._store, documents)
            elif not self._dry_run:
                write(self._store, documents)

        with contextlib.nullcontext() if self._dry_run else self._store.room():
            self._changing |= mine
            try:
                yield commit
            finally:
                for key, policy in mine.items():
                    if not self._dry_run and self._changing.get(key) is policy:
                        del self._changing[key]

    def _read_newer(self) -> None:
        """Read the settings again when the file has others; what cannot be understood changes nothing."""
        with suppress(FairlaneError):
            stamp = self._store.stamp(POLICIES)
            if stamp != self._stamp:
                self._stamp = stamp
                self._state = loop_state_of(self._store)
