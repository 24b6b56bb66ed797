# SPDX-License-Identifier: Apache-2.0
"""What the loop must remember over a restart and the switch has not got: settings of policies, and what the switches had last.

Both are documents of a run-state folder's state file, or in memory. Other processes change the file too: what is newer there counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from fairlane import FairlaneError
from fairlane.changes import Store
from fairlane.text import bad_config, describe
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from .model import DEFAULT_K
from .policies import Policy, Scheme

POLICIES = "policy/"
"""Documents: `policy/SWITCH/PORT/CLASS`."""


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


@dataclass(frozen=True)
class LoopState:
    """The settings of all policies; keys are `switch/port/class`."""

    policies: dict[str, PolicyState] = field(default_factory=lambda: dict[str, PolicyState]())

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of that policy, the defaults when it was never set (not stored by asking)."""
        return self.policies.get(policy_key(switch, port, traffic_class)) or PolicyState()


def policy_key(switch: str, port: int, traffic_class: int) -> str:
    """`s1/3/0`."""
    return f"{switch}/{port}/{traffic_class}"


def read_loop_state(folder: Path) -> LoopState:
    """The settings in the state file of a folder; BAD_FILE where they cannot be understood."""
    with Store(folder) as store:
        return loop_state_of(store)


def loop_state_of(store: Store) -> LoopState:
    """As `read_loop_state`."""
    try:
        return LoopState({key: PolicyState.model_validate(value) for key, value in store.all(POLICIES).items()})
    except ValidationError as ex:
        raise bad_config(f"{store.path}: settings of policies", describe(ex, PolicyState)) from None


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
