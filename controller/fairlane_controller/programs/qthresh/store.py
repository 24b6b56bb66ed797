# SPDX-License-Identifier: Apache-2.0
"""What the loop must remember over a restart and the switch has not got: settings of policies, and what the switches had last.

Both are documents of a run-state folder's state file, or in memory. Other processes change the file too: what is newer there counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

from fairlane import FairlaneError
from fairlane.changes import Documents
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from .model import DEFAULT_K
from .policies import Policy, Scheme

POLICIES = "policy/"
"""Documents: `policy/SWITCH/PORT/CLASS`."""
CURRENT = "current/"
"""Documents `current/SWITCH`: its policies, `[[port, class, scheme, packets, weight], …]`."""
PolicyKey = tuple[str, int, int]
"""Switch, egress port, class."""

_ROWS = TypeAdapter(list[tuple[int, int, str, int | None, float]])


class Mode(str, Enum):
    """Who decides the threshold of an (egress port, class)."""

    AUTO = "auto"
    "The loop, from measurements."
    MANUAL = "manual"
    "A person, by `threshold set`; the loop leaves it alone."


class PolicyState(BaseModel):
    """The loop's settings for one (switch, egress port, class)."""

    model_config = ConfigDict(extra="ignore")

    mode: Mode = Mode.AUTO
    weight: float = Field(default=1.0, gt=0)
    k: float = Field(default=DEFAULT_K, gt=0)
    self_tuning: bool = True
    "Mode auto: whether the flows' goodputs correct (9); False: (9) alone."
    pinned_packets: int | None = Field(default=None, ge=1)
    "The last value of `threshold set`; restored with the scheme qthresh."
    min_packets: int | None = Field(default=None, ge=1)
    max_packets: int | None = Field(default=None, ge=1)
    "Mode auto: bounds of the threshold in packets, before the weight; None: only 2 and the port's capacity."

    @model_validator(mode="after")
    def _bounds_in_order(self) -> PolicyState:
        low, high = self.min_packets, self.max_packets
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_packets {low} is above max_packets {high}")
        return self


class LoopStore:
    """Settings of every policy; `folder` None keeps them in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE where the state file cannot be understood."""
        self.persistent = folder is not None
        "Whether settings outlive the process."
        self._settings = Documents(folder, POLICIES, PolicyState, "settings of policies")
        self._store = self._settings.store
        self._rows: dict[str, list[Any]] = {}

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of a policy, the defaults where it was never set."""
        return self._settings.get(_key((switch, port, traffic_class)))

    def documents(self, policies: Mapping[PolicyKey, PolicyState]) -> dict[str, Any]:
        """Settings as documents of the state file."""
        return self._settings.plain({_key(key): one for key, one in policies.items()})

    def put(self, policies: Mapping[PolicyKey, PolicyState]) -> None:
        """Replace settings, independent of the current state of the switches."""
        self._settings.write({_key(key): one for key, one in policies.items()})

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


def _key(key: PolicyKey) -> str:
    """`s1/3/0`."""
    return "/".join(map(str, key))
