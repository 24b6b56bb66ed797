# SPDX-License-Identifier: Apache-2.0
"""The configuration in force and the numbers given for it, kept over restarts: `gfr.json` in the run-state folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.gfr.allocation import Allocation
from fairlane_controller.programs.gfr.config import GfrConfig
from fairlane_controller.state.files import read_json, write_json_atomically

GFR_STATE_FILE = "gfr.json"


class GfrState(BaseModel):
    """What is in force."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = 1
    config: GfrConfig = Field(default_factory=GfrConfig)
    allocation: Allocation = Field(default_factory=Allocation)


class GfrStore:
    """The state in memory and, with a folder, in its file; `folder` None keeps it in memory only."""

    def __init__(self, folder: Path | None) -> None:
        """Raises BAD_FILE when there is a file that cannot be understood."""
        self._folder = folder
        self._state = _read(folder) if folder is not None else GfrState()

    @property
    def state(self) -> GfrState:
        """What is in force now."""
        return self._state

    def put(self, state: GfrState) -> None:
        """Replace it in one step; raises BAD_FILE, with the old state in force, when the folder cannot be written."""
        if self._folder is not None:
            path = self._folder / GFR_STATE_FILE
            try:
                write_json_atomically(path, state.model_dump(mode="json"))
            except OSError as ex:
                raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write {path}: {ex.strerror}") from None
        self._state = state


def _read(folder: Path) -> GfrState:
    path = folder / GFR_STATE_FILE
    try:
        return GfrState.model_validate(read_json(path))
    except FileNotFoundError:
        return GfrState()
    except ValidationError as ex:
        raise FairlaneError(
            ErrorCode.BAD_FILE, f"{path}: {ex}; mend it, or remove it and apply the file again"
        ) from None
