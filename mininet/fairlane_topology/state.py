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
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.processes import OwnedProcess
from fairlane_controller.state.store import STATE_FILE, Store

__all__ = ["OwnedProcess"]

TOPOLOGY = "topology"
PORTS = "port/"
"""Documents `port/SWITCH/PORT`: what was set of a port since the state was written."""
LAUNCHER = "launcher"
WATCHER = "clean-up"
"""What is written down of the process that waits for the launcher's end."""
STOP_TIMEOUT_S = 5.0
ENDING_TIMEOUT_S = 20.0
"""How long the watcher may take to remove what a killed launcher has left."""


def state_root() -> Path:
    """The folder that holds one sub-folder per running topology."""
    return Path(os.environ.get("FAIRLANE_STATE_DIR") or "/run/fairlane")


def folder(instance: str) -> Path:
    """The folder of one instance. Raises ValueError for a name that is none: a path would be removed by `clean`."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", instance):
        raise ValueError(f"{instance!r} is not the name of a topology; there are {', '.join(instances()) or 'none'}")
    return state_root() / instance


def write(instance: str, state: dict[str, Any]) -> None:
    """Write the state whole or not at all. Raises OSError."""
    update(instance, lambda _: state)


def update(instance: str, change: Callable[[dict[str, Any] | None], dict[str, Any] | None]) -> None:
    """Replace the state by what `change` makes of it (None: there is none); no other process writes in between."""
    folder(instance).mkdir(parents=True, exist_ok=True)
    try:
        with Store(folder(instance)) as store:
            store.update(TOPOLOGY, change)
    except FairlaneError as error:
        raise OSError(error.message) from None


def read(instance: str) -> dict[str, Any] | None:
    """The state of an instance, with what was set of its ports since it was written; None when there is none or it is not readable."""
    try:
        with Store(folder(instance)) as store:
            state, newer = store.get(TOPOLOGY), store.all(PORTS)
    except FairlaneError:
        return None
    for (switch, number), port in ports_of(state or {}).items():
        port.update(newer.get(f"{switch}/{number}") or {})
    return state


def remember_rate(instance: str, switch: str, port: int, rate_bps: int) -> None:
    """Put a port's new rate over what was written of it. Raises OSError."""

    def put(known: dict[str, Any] | None) -> dict[str, Any]:
        return {**(known or {}), "rate_bps": rate_bps}

    try:
        with Store(folder(instance)) as store:
            store.update(f"{PORTS}{switch}/{port}", put)
    except FairlaneError as error:
        raise OSError(error.message) from None


def ports_of(state: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """The ports in a state, by switch and number."""
    return {
        (switch["name"], port["port"]): port for switch in state.get("switches", []) for port in switch.get("ports", [])
    }


def instances() -> list[str]:
    """Names of all instances that left a state file."""
    return sorted(path.parent.name for path in state_root().glob(f"*/{STATE_FILE}"))


def running(instance: str) -> bool:
    """True when the launcher of an instance, or anything it started, is alive."""
    state = read(instance)
    return state is not None and any(process.is_alive() for process in _processes(state))


def _processes(state: dict[str, Any]) -> list[OwnedProcess]:
    return [OwnedProcess.from_json(item) for item in state.get("pids", [])]


def wait_while_ending(instance: str, timeout_s: float = ENDING_TIMEOUT_S) -> None:
    """Wait while the watcher of a launcher that has died removes what that one made."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        alive = {process.what for process in _processes(read(instance) or {}) if process.is_alive()}
        if WATCHER not in alive or LAUNCHER in alive:
            return
        time.sleep(0.05)


def stop_processes(processes: list[OwnedProcess], timeout_s: float = STOP_TIMEOUT_S) -> list[str]:
    """Stop processes: SIGTERM (and SIGHUP, which ends an interactive shell), then SIGKILL after the time limit. Returns what was stopped."""
    alive = [process for process in processes if process.is_alive() and process.pid != os.getpid()]
    for process in alive:
        for number in (signal.SIGTERM, signal.SIGHUP):
            _signal(process, number)
    deadline = time.monotonic() + timeout_s
    while any(process.is_alive() for process in alive) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in alive:
        _signal(process, signal.SIGKILL)
    deadline = time.monotonic() + timeout_s
    while any(process.is_alive() for process in alive) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [f"{process.what} (pid {process.pid})" for process in alive]


def namespace_members(pids: Iterable[int], namespaces: Iterable[str] = ()) -> list[OwnedProcess]:
    """The processes that live in the network namespaces of these processes, or in those of these names, those that live in ours apart."""
    wanted = {*namespaces, *map(namespace_of, pids)} - {None, namespace_of(os.getpid())}
    found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()] if wanted else []
    processes = [OwnedProcess.identify_child(pid, "left by a host") for pid in found]
    return [process for process in processes if namespace_of(process.pid) in wanted]


def namespace_of(pid: int) -> str | None:
    """Name of a process's network namespace; None when it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115
    except OSError:
        return None


def _signal(process: OwnedProcess, number: signal.Signals) -> None:
    if process.is_alive():
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return


def clean(instance: str, *, just_ended: bool = False) -> list[str]:
    """Remove exactly what an instance made: its processes, interfaces and folder. Returns what was removed; nothing to remove is fine.

    `just_ended`: its launcher has ended this moment. So the hosts' namespaces are still its own by their numbers, also where a host's
    shell is gone already and something else keeps the namespace.
    """
    state = read(instance)
    removed: list[str] = []
    if state is not None:
        processes = _processes(state)
        hosts = [process.pid for process in processes if process.what.startswith("host ") and process.is_alive()]
        listed = {process.pid for process in processes}
        namespaces = [host["netns"] for host in state.get("hosts", []) if host.get("netns")] if just_ended else []
        rest = [process for process in namespace_members(hosts, namespaces) if process.pid not in listed]
        removed += stop_processes([*processes, *rest])
        removed += remove_interfaces(state.get("interfaces", []))
    if folder(instance).exists():
        shutil.rmtree(folder(instance))
    return removed


def remove_interfaces(names: list[str]) -> list[str]:
    """Delete the named interfaces of this namespace that still exist (a veth goes with its peer)."""
    removed: list[str] = []
    for name in names:
        if Path(f"/sys/class/net/{name}").exists():
            done = subprocess.run(["ip", "link", "delete", name], capture_output=True, text=True, timeout=10)
            if done.returncode == 0:
                removed.append(f"interface {name}")
    return removed
