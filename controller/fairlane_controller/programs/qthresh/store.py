# SPDX-License-Identifier: Apache-2.0
"""What the loop must remember over a restart and the switch has not got: settings of policies, and what the switches had last.

Both are documents of a run-state folder's state file, or in memory. Other processes change the file too: what is newer there counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairlane import FairlaneError
from fairlane.changes import Documents
from pydantic import TypeAdapter

from .policies import Policy
from .settings import PolicyKey, PolicySettings

CURRENT = "current/"
"""Documents `current/SWITCH`: its policies."""
_POLICIES = TypeAdapter(list[Policy])


class LoopStore(Documents[PolicySettings]):
    """Settings of every policy (documents `policy/SWITCH/PORT/CLASS`); `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        super().__init__(folder, "policy/", PolicySettings, "settings of policies")
        self._is_persistent = folder is not None
        self._current: dict[str, Any] = {}

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicySettings:
        """The settings of a policy, the defaults where it was never set."""
        return self.get(f"{switch}/{port}/{traffic_class}")

    def documents(self, policies: Mapping[PolicyKey, PolicySettings]) -> dict[str, Any]:
        """Settings as documents of the state file."""
        return self.plain({"/".join(map(str, key)): one for key, one in policies.items()})

    def put(self, policies: Mapping[PolicyKey, PolicySettings]) -> None:
        """Replace settings, independent of the current state of the switches."""
        self.store.put(self.documents(policies))

    def read_policies(self, switch: str) -> list[Policy]:
        """The policies that the switch had when a loop served it last; none when that is not known, or not understood."""
        try:
            return _POLICIES.validate_python(self.store.get(CURRENT + switch) or [])
        except (ValueError, FairlaneError):
            return []

    def remember(self, switch: str, policies: Iterable[Policy]) -> None:
        """What the switch has now, for a loop that finds it restarted; when the disk is full, this alone is lost."""
        current = _POLICIES.dump_python([*policies], mode="json")
        if self._is_persistent and current and self._current.get(switch) != current:
            self._current[switch] = current
            asyncio.get_running_loop().run_in_executor(None, self._write, CURRENT + switch, current)

    def _write(self, name: str, value: Any) -> None:
        with suppress(FairlaneError):
            self.store.put({name: value})
