# SPDX-License-Identifier: Apache-2.0
"""What the control loop must remember over a restart and the switch does not hold: mode, weight, k, … of each class."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.qthresh.model import DEFAULT_K
from fairlane_controller.state.files import Replacement, json_text, read_json

LOOP_STATE_FILE = "controller.json"


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
    "What `threshold set` said last; comes back with the scheme qthresh."
    min_packets: int | None = Field(default=None, ge=1)
    max_packets: int | None = Field(default=None, ge=1)
    "Mode auto: bounds of the threshold in packets, before the weight; None: only 2 and the port's capacity."

    @model_validator(mode="after")
    def _bounds_in_order(self) -> PolicyState:
        low, high = self.min_packets, self.max_packets
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_packets {low} is above max_packets {high}")
        return self


class LoopState(BaseModel):
    """The file `controller.json` in the run-state folder; keys are `switch/port/class`."""

    model_config = ConfigDict(extra="ignore")

    version: int = 1
    policies: dict[str, PolicyState] = Field(default_factory=dict)

    def policy(self, switch: str, port: int, traffic_class: int) -> PolicyState:
        """The settings of that policy, the defaults when it was never set (not stored by asking)."""
        return self.policies.get(policy_key(switch, port, traffic_class)) or PolicyState()

    def with_policy(self, switch: str, port: int, traffic_class: int, policy: PolicyState) -> LoopState:
        """A copy with that policy replaced."""
        key = policy_key(switch, port, traffic_class)
        return self.model_copy(update={"policies": {**self.policies, key: policy}})


def policy_key(switch: str, port: int, traffic_class: int) -> str:
    """`s1/3/0`."""
    return f"{switch}/{port}/{traffic_class}"


def read_loop_state(folder: Path) -> LoopState:
    """The stored state, or the defaults when there is no file yet; raises BAD_FILE when it cannot be understood."""
    path = folder / LOOP_STATE_FILE
    try:
        return LoopState.model_validate(read_json(path))
    except FileNotFoundError:
        return LoopState()
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: {ex}; mend it or remove it to start from defaults") from None


def loop_state_text(state: LoopState) -> str:
    """The file's content."""
    return json_text(state.model_dump(mode="json"))


def loop_state_to_be(folder: Path, state: LoopState) -> Replacement:
    """The file as it will be, on the disk already: the caller commits it, and closes it. Raises BAD_FILE when the folder cannot be written."""
    new: Replacement | None = None
    try:
        new = Replacement(folder / LOOP_STATE_FILE)
        new.put(loop_state_text(state))
    except OSError as ex:
        if new is not None:
            new.close()
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {folder / LOOP_STATE_FILE}: {ex.strerror}") from None
    return new
