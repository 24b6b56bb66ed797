# SPDX-License-Identifier: Apache-2.0
"""Taking away the clsact filters that hosts' programs are on kernels before 6.6, which have no tcx links."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from .bpf import FILTER_PRIORITY
from .errors import HostsError

TIMEOUT_S = 10
WAYS = ("ingress", "egress")


def remove_all(netns: Path) -> list[str]:
    """Remove our filters in a network namespace, and clsact where it has no others; what was removed, by name."""
    removed = list[str]()
    for link in _json(netns, "ip", "-j", "link", "show"):
        interface: str = link["ifname"]
        there = {way: _json(netns, "tc", "-j", "filter", "show", "dev", interface, way) for way in WAYS}
        ours = [way for way, entries in there.items() if any(entry.get("pref") == FILTER_PRIORITY for entry in entries)]
        for way in ours:
            run_in(netns, "tc", "filter", "del", "dev", interface, way, "pref", str(FILTER_PRIORITY))
            removed.append(f"filter {interface} {way}")
        if ours and all(entry.get("pref") == FILTER_PRIORITY for entries in there.values() for entry in entries):
            run_in(netns, "tc", "qdisc", "del", "dev", interface, "clsact")
    return removed


def _json(netns: Path, *command: str) -> list[dict[str, Any]]:
    return json.loads(run_in(netns, *command) or "[]")


def run_in(netns: Path, *command: str) -> str:
    """What a command says in a namespace; nothing when it fails: there is no such hook, or the namespace is gone. Raises HostsError `lease`."""
    inside = ["nsenter", f"--net={netns}", *command]
    try:
        done = subprocess.run(inside, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise HostsError("lease", f"{' '.join(command)} does not end within {TIMEOUT_S} s") from error
    return done.stdout if done.returncode == 0 else ""
