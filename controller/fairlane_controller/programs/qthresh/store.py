# SPDX-License-Identifier: Apache-2.0
"""The loop's settings of policies, and what its switches had last: in the state file of a run-state folder, or in memory.

Other processes change the file too (a command without a loop, the primary while this is the backup): what is newer there counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fairlane_controller.errors import FairlaneError
from fairlane_controller.programs.qthresh.loop_state import POLICIES, PolicyState, loop_state_of, policy_key
from fairlane_controller.programs.qthresh.policies import Policy, Scheme
from fairlane_controller.state.store import Store

CURRENT = "current/"
"""Documents `current/SWITCH`: its policies, `[[port, class, scheme, packets, weight], …]`."""
PolicyKey = tuple[str, int, int]
"""Switch, egress port, class."""

_ROWS = TypeAdapter(list[tuple[int, int, str, int | None, float]])


def documents_of(policies: Mapping[PolicyKey, PolicyState]) -> dict[str, Any]:
    """Settings as documents of the state file."""
    return {POLICIES + policy_key(*key): policy.model_dump(mode="json") for key, policy in policies.items()}


class LoopStore:
    """Settings of every policy; `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        self.persistent = folder is not None
        "Whether settings outlive the process."
        self._store = Store(folder)
        self._stamp = self._store.stamp(POLICIES)
        self._state = loop_state_of(self._store)
        self._rows: dict[str, list[Any]] = {}

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy."""
        self._read_newer()
        return self._state.policy(switch, port, traffic_class)

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
        if not self.persistent or not rows or self._rows.get(switch) == rows:
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
        self._store.put(documents_of(policies))

    def _read_newer(self) -> None:
        """Read the settings again when the file has others; what cannot be understood changes nothing."""
        with suppress(FairlaneError):
            stamp = self._store.stamp(POLICIES)
            if stamp != self._stamp:
                self._stamp = stamp
                self._state = loop_state_of(self._store)
