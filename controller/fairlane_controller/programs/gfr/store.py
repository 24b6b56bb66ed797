# SPDX-License-Identifier: Apache-2.0
"""The configuration in force and the numbers given for it, kept over restarts: a document of the state file."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.allocation import Allocation
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.state.store import Store

GFR_DOCUMENT = "gfr"


class GfrState(BaseModel):
    """What is in force."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = 1
    config: GfrConfig = Field(default_factory=GfrConfig)
    allocation: Allocation = Field(default_factory=Allocation)


class GfrStore:
    """The state, in the state file of a folder; `folder` None keeps it in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE when it cannot be understood."""
        self._store = Store(folder)
        self._state = _read(self._store)

    @property
    def state(self) -> GfrState:
        """What is in force now."""
        return self._state

    def put(self, state: GfrState) -> None:
        """Replace it in one step; raises BAD_FILE, with the old state in force, when it cannot be written."""
        self._store.put({GFR_DOCUMENT: state.model_dump(mode="json")})
        self._state = state


def _read(store: Store) -> GfrState:
    try:
        return GfrState.model_validate(store.get(GFR_DOCUMENT) or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{store.path}: {GFR_DOCUMENT}: {ex}; apply the file again") from None
