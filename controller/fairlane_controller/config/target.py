# SPDX-License-Identifier: Apache-2.0
"""The topology that a configuration is for: the running one that it names, with the addresses that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlane_controller.config.model import SwitchConfig
from fairlane_controller.config.read import Loaded, folder_for
from fairlane_controller.documents import is_table
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file
from fairlane_controller.state.run_state import (
    DEFAULT_PROGRAM,
    RunState,
    SwitchState,
    read_run_state,
    state_root,
    write_topology,
)
from fairlane_controller.state.store import STATE_FILE


def find_run(loaded: Loaded, state: str | None) -> RunState:
    """The run state that `--state` names, else the file, else the only one.

    A file with a name and switches describes a topology by itself where none of that name runs: `ensure_run_folder` gives it a run state.

    Raises:
        FairlaneError: NO_TOPOLOGY when there is none; BAD_FILE when the file's own switches have no name to be found by.
    """
    topology = loaded.config.topology
    try:
        return addressed(loaded, read_run_state(folder_for(topology.name, state)))
    except FairlaneError as ex:
        if ex.code is not ErrorCode.NO_TOPOLOGY or state is not None or not topology.switches:
            raise
    if not topology.name:
        problem = "topology.switches: no topology runs that has them: give topology.name, by which commands find them"
        raise loaded.source.error([problem])
    return RunState(
        name=topology.name,
        target=topology.target,
        program=loaded.config.program or DEFAULT_PROGRAM,
        switches=tuple(_described(one, _folder(loaded)) for one in topology.switches),
        folder=state_root() / topology.name,
    )


def ensure_run_folder(run: RunState) -> None:
    """Make the run-state folder of a topology that only a file describes, so that every command finds it. Raises BAD_FILE."""
    if (run.folder / STATE_FILE).exists():
        return
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
    except OSError as ex:
        raise bad_file(f"cannot make {run.folder}: {ex.strerror}") from None
    write_topology(run.folder, run.model_dump(mode="json", by_alias=True, exclude={"folder"}, exclude_none=True))


def running(loaded: Loaded, state: str | None) -> RunState | None:
    """As `find_run`; None when no topology runs and `state` asks for none."""
    try:
        return find_run(loaded, state)
    except FairlaneError as ex:
        if state is not None or ex.code is not ErrorCode.NO_TOPOLOGY:
            raise
        return None


def addressed(loaded: Loaded, run: RunState) -> RunState:
    """The run state with the addresses, device ids and TLS files of the file's switches; paths are relative to the file."""
    given = {one.name: _described(one, _folder(loaded)) for one in loaded.config.topology.switches}

    def with_address(switch: SwitchState) -> SwitchState:
        new = given.get(switch.name)
        if new is None:
            return switch
        return switch.model_copy(update={"grpc": new.grpc, "device_id": new.device_id, "tls": new.tls or switch.tls})

    return run.model_copy(update={"switches": tuple(map(with_address, run.switches))})


def _folder(loaded: Loaded) -> Path:
    """The folder that paths of the file are relative to."""
    return loaded.path.parent if loaded.path is not None else Path()


def _described(switch: SwitchConfig, base: Path) -> SwitchState:
    """A switch as the file alone describes it."""

    def located(value: Any) -> Any:
        if is_table(value):
            return {key: located(one) for key, one in value.items()}
        return base / value.expanduser() if isinstance(value, Path) else value

    return SwitchState.model_validate(located(switch.model_dump(by_alias=True)))
