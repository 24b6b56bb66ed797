# SPDX-License-Identifier: Apache-2.0
"""What the control loop must remember over a restart and the switch does not hold: mode, weight, k, … of each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlane_controller.problems import bad_config, describe
from fairlane_controller.programs.qthresh.model import DEFAULT_K
from fairlane_controller.state.store import Store

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
