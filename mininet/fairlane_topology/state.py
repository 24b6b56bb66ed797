# SPDX-License-Identifier: Apache-2.0
"""The run state: what a running topology made, written down so that it can be found and removed exactly, also after a crash.

One folder per instance below `/run/fairlane` (or `$FAIRLANE_STATE_DIR`): `state.db` (docs/controller.md), sockets, logs.
A process is named by its pid *and* its start time, so a pid that was used again is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.processes import OwnedProcess, namespace_of
from fairlane_controller.state.run_state import TOPOLOGY, read_topology, run_folders, state_root
from fairlane_controller.state.store import Store
from fairlane_switch.process import STOP_TIMEOUT_S, wait_until

__all__ = ["OwnedProcess", "state_root"]

LAUNCHER = "launcher"
WATCHER = "clean-up"
"""What is written down of the process that waits for the launcher's end."""
ENDING_TIMEOUT_S = 20.0
"""How long the watcher may take to remove what a killed launcher has left."""


def folder(instance: str) -> Path:
    """The folder of one instance. Raises ValueError for a name that is none: a path would be removed by `clean`."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", instance):
        raise ValueError(f"{instance!r} is not the name of a topology; there are {', '.join(instances()) or 'none'}")
    return state_root() / instance


def instances() -> list[str]:
    """Names of all instances that left a state file."""
    return [path.name for path in run_folders()]


def write(instance: str, state: dict[str, Any]) -> None:
    """Write the state whole or not at all; what was set of its ports since stays. Raises FairlaneError."""
    folder(instance).mkdir(parents=True, exist_ok=True)
    with Store(folder(instance)) as store:
        store.put({TOPOLOGY: state})


def read(instance: str) -> dict[str, Any] | None:
    """What was written of an instance; None when there is none or it is not readable."""
    try:
        return read_topology(folder(instance))
    except FairlaneError:
        return None


def alive(instance: str) -> list[str]:
    """What is alive of an instance: its launcher, and what that has started."""
    return [process.what for process in _processes(read(instance)) if process.is_alive()]


def wait_while_ending(instance: str) -> None:
    """Wait while the watcher of a launcher that has died removes what that one made."""

    def ended() -> bool:
        there = alive(instance)
        return WATCHER not in there or LAUNCHER in there

    wait_until(ended, ENDING_TIMEOUT_S)


def clean(instance: str, *, just_ended: bool = False) -> list[str]:
    """Remove exactly what an instance made: its processes, interfaces and folder. Returns what was removed; nothing to remove is fine.

    `just_ended`: its launcher has ended this moment. So the hosts' namespaces are still its own by their numbers, also where a host's
    shell is gone already and something else keeps the namespace.
    """
    state = read(instance) or {}
    processes = _processes(state)
    hosts = [process.pid for process in processes if process.what.startswith("host ") and process.is_alive()]
    namespaces = [host["netns"] for host in state.get("hosts", []) if just_ended and host.get("netns")]
    listed = {process.pid for process in processes}
    rest = [process for process in namespace_members(hosts, namespaces) if process.pid not in listed]
    removed = stop_processes([*processes, *rest]) + remove_interfaces(state.get("interfaces", []))
    with suppress(FileNotFoundError):
        shutil.rmtree(folder(instance))
    return removed


def stop_processes(processes: Iterable[OwnedProcess]) -> list[str]:
    """Stop processes: SIGTERM (and SIGHUP, which ends an interactive shell), then SIGKILL after the time limit. Returns what was stopped."""
    ours = [process for process in processes if process.is_alive() and process.pid != os.getpid()]
    for signals in ((signal.SIGTERM, signal.SIGHUP), (signal.SIGKILL,)):
        for process in ours:
            for number in signals:
                if process.is_alive():
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, number)
        wait_until(lambda: not any(process.is_alive() for process in ours), STOP_TIMEOUT_S)
    return [f"{process.what} (pid {process.pid})" for process in ours]


def namespace_members(pids: Iterable[int], namespaces: Iterable[str] = ()) -> list[OwnedProcess]:
    """The processes that live in the network namespaces of these processes, or in those of these names, those that live in ours apart."""
    wanted = {*namespaces, *map(namespace_of, pids)} - {None, namespace_of(os.getpid())}
    return OwnedProcess.in_namespaces(wanted, "left by a host") if wanted else []


def remove_interfaces(names: Sequence[str]) -> list[str]:
    """Delete the named interfaces of this namespace that still exist (a veth goes with its peer); returns what was removed."""
    removed: list[str] = []
    for name in names:
        if Path(f"/sys/class/net/{name}").exists():
            done = subprocess.run(["ip", "link", "delete", name], capture_output=True, timeout=10)
            removed += [f"interface {name}"] if done.returncode == 0 else []
    return removed


def _processes(state: dict[str, Any] | None) -> list[OwnedProcess]:
    return [OwnedProcess.from_json(item) for item in (state or {}).get("pids", [])]
