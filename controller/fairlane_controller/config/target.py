# SPDX-License-Identifier: Apache-2.0
"""The topology that a configuration is for: the running one that it names, with the addresses that it gives."""

from __future__ import annotations

from pathlib import Path

from fairlane_controller.config.model import TlsConfig
from fairlane_controller.config.read import Loaded
from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.run_state import RunState, TlsState, find_folder, read_run_state


def find_run(loaded: Loaded, state: str | None) -> RunState:
    """The run state that `--state` names, else the file, else the only one; NO_TOPOLOGY when there is none."""
    return addressed(loaded, read_run_state(find_folder(state or loaded.config.topology.name or None)))


def running(loaded: Loaded, state: str | None) -> RunState | None:
    """As `find_run`; None when no topology runs and `state` asks for none."""
    if state is not None:
        return find_run(loaded, state)
    try:
        return find_run(loaded, None)
    except FairlaneError:
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
    cert, key = (base / path.expanduser() if path is not None else None for path in (given.cert, given.key))
    return TlsState(ca=base / given.ca.expanduser(), cert=cert, key=key)
