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
from fairlane.switch import PortNumber
from pydantic import TypeAdapter

from .names import Scheme
from .policies import START_QTHRESH_PACKETS, Policy
from .settings import ClassNumber, PolicyKey, PolicyState, Threshold, Weight

CURRENT = "current/"
"""Documents `current/SWITCH`: its policies, `[[port, class, scheme, packets, weight], …]`."""
_ROWS = TypeAdapter(list[tuple[PortNumber, ClassNumber, Scheme, Threshold | None, Weight]])


class LoopStore:
    """Settings of every policy (documents `policy/SWITCH/PORT/CLASS`); `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        self._settings = Documents(folder, "policy/", PolicyState, "settings of policies")
        self._is_persistent = folder is not None
        self._rows: dict[str, list[Any]] = {}

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy, the defaults where it was never set."""
        return self._settings.get(f"{switch}/{port}/{traffic_class}")

    def documents(self, policies: Mapping[PolicyKey, PolicyState]) -> dict[str, Any]:
        """Settings as documents of the state file."""
        return self._settings.plain({"/".join(map(str, key)): one for key, one in policies.items()})

    def put(self, policies: Mapping[PolicyKey, PolicyState]) -> None:
        """Replace settings, independent of the current state of the switches."""
        self._settings.store.put(self.documents(policies))

    def read_policies(self, switch: str) -> list[Policy]:
        """The policies that the switch had when a loop served it last; none when that is not known, or not understood."""
        try:
            rows = _ROWS.validate_python(self._settings.store.get(CURRENT + switch) or [])
        except (ValueError, FairlaneError):
            return []
        return [
            Policy(port, number, scheme, packets or START_QTHRESH_PACKETS, weight)
            for port, number, scheme, packets, weight in rows
        ]

    def remember(self, switch: str, policies: Iterable[Policy]) -> None:
        """What the switch has now, for a loop that finds it restarted; when the disk is full, this alone is lost."""
        rows = [[p.port, p.traffic_class, p.scheme.value, p.qthresh_packets, p.weight] for p in policies]
        if not self._is_persistent or not rows or self._rows.get(switch) == rows:
            return
        self._rows[switch] = rows
        asyncio.get_running_loop().run_in_executor(None, self._write, CURRENT + switch, rows)

    def _write(self, name: str, value: Any) -> None:
        with suppress(FairlaneError):
            self._settings.store.put({name: value})
