# SPDX-License-Identifier: Apache-2.0
"""The clsact filters that a killed holder left: only kernels before 6.6, which have no tcx links, need them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import HostsError

PRIORITY = 0xFA1
"""Of our filters (TC_PRIORITY in hosts/loader/host_programs.c)."""
TCX_KERNEL = (6, 6)
TIMEOUT_S = 10
WAYS = ("ingress", "egress")


def remove_left(pids: Iterable[int]) -> list[str]:
    """Remove our filters in the network namespaces of these processes; what was removed, by name."""
    paths = dict[int, Path]()
    for pid in pids:
        path = Path(f"/proc/{pid}/ns/net")
        try:
            paths.setdefault(path.stat().st_ino, path)
        except OSError:
            continue  # it has ended
    return [name for path in paths.values() for name in _remove_in(path)]


def _remove_in(netns: Path) -> list[str]:
    removed = list[str]()
    for link in _json(netns, "ip", "-j", "link", "show"):
        interface: str = link["ifname"]
        there = {way: _json(netns, "tc", "-j", "filter", "show", "dev", interface, way) for way in WAYS}
        ours = [way for way, entries in there.items() if any(entry.get("pref") == PRIORITY for entry in entries)]
        for way in ours:
            _run(netns, "tc", "filter", "del", "dev", interface, way, "pref", str(PRIORITY))
            removed.append(f"filter {interface} {way}")
        if ours and all(entry.get("pref") == PRIORITY for entries in there.values() for entry in entries):
            _run(netns, "tc", "qdisc", "del", "dev", interface, "clsact")
    return removed


def _json(netns: Path, *command: str) -> list[dict[str, Any]]:
    return json.loads(_run(netns, *command) or "[]")


def _run(netns: Path, *command: str) -> str:
    """What a command says in a namespace; nothing when it fails: there is no such hook, or the namespace is gone. Raises HostsError `holder`."""
    inside = ["nsenter", f"--net={netns}", *command]
    try:
        done = subprocess.run(inside, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostsError("holder", f"{' '.join(command)} does not end within {TIMEOUT_S} s") from error
    return done.stdout if done.returncode == 0 else ""
