# SPDX-License-Identifier: Apache-2.0
"""The topology that a configuration is for: the running one that it names, with the addresses that it gives."""

from __future__ import annotations

from pathlib import Path

from fairlane_controller.config.model import TlsConfig
from fairlane_controller.config.read import Loaded
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.run_state import (
    DEFAULT_PROGRAM,
    RunState,
    SwitchState,
    TlsState,
    find_folder,
    read_run_state,
    state_root,
    write_topology,
)
from fairlane_controller.state.store import STATE_FILE


def find_run(loaded: Loaded, state: str | None) -> RunState:
    """The run state that `--state` names, else the file, else the only one; NO_TOPOLOGY when there is none.

    A file with a name and switches describes a topology by itself where none of that name runs: `keep` gives it a run state.
    """
    try:
        return addressed(loaded, read_run_state(find_folder(state or loaded.config.topology.name or None)))
    except FairlaneError as ex:
        if ex.code is not ErrorCode.NO_TOPOLOGY or state is not None or not loaded.config.topology.switches:
            raise
        return described(loaded)


def described(loaded: Loaded) -> RunState:
    """The run state of the file's own switches; BAD_FILE when they have no name to be found by."""
    topology = loaded.config.topology
    if not topology.name:
        raise loaded.source.error(
            ["topology.switches: no topology runs that has them: give topology.name, by which commands find them"]
        )
    base = loaded.path.parent if loaded.path is not None else Path()
    switches = tuple(
        SwitchState(
            name=one.name,
            device_id=one.device_id,
            grpc=one.grpc,
            tls=_tls(one.tls, base),
            json=_resolve_path(one.json_file, base),
            p4info=_resolve_path(one.p4info, base),
        )
        for one in topology.switches
    )
    program = loaded.config.program or DEFAULT_PROGRAM
    folder = state_root() / topology.name
    return RunState(name=topology.name, target=topology.target, program=program, switches=switches, folder=folder)


def keep(run: RunState) -> None:
    """Make the run-state folder of a topology that only a file describes, so that every command finds it. Raises BAD_FILE."""
    if (run.folder / STATE_FILE).exists():
        return
    try:
        run.folder.mkdir(parents=True, exist_ok=True)
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot make {run.folder}: {ex.strerror}") from None
    write_topology(run.folder, run.model_dump(mode="json", by_alias=True, exclude={"folder"}, exclude_none=True))


def running(loaded: Loaded, state: str | None) -> RunState | None:
    """As `find_run`; None when no topology runs and `state` asks for none."""
    if state is not None:
        return find_run(loaded, state)
    try:
        return find_run(loaded, None)
    except FairlaneError as ex:
        if ex.code is not ErrorCode.NO_TOPOLOGY:
            raise
        return None


def addressed(loaded: Loaded, run: RunState) -> RunState:
    """The run state with the addresses, device ids and TLS files of the file's switches; paths are relative to the file."""
    given = {switch.name: switch for switch in loaded.config.topology.switches}
    base = loaded.path.parent if loaded.path is not None else Path()
    if not given:
        return run
    switches = tuple(
        switch.model_copy(
            update={
                "grpc": given[switch.name].grpc,
                "device_id": given[switch.name].device_id,
                "tls": _tls(given[switch.name].tls, base) or switch.tls,
            }
        )
        if switch.name in given
        else switch
        for switch in run.switches
    )
    return run.model_copy(update={"switches": switches})


def _tls(given: TlsConfig | None, base: Path) -> TlsState | None:
    if given is None:
        return None
    return TlsState(
        ca=base / given.ca.expanduser(), cert=_resolve_path(given.cert, base), key=_resolve_path(given.key, base)
    )


def _resolve_path(path: Path | None, base: Path) -> Path | None:
    return None if path is None else base / path.expanduser()
