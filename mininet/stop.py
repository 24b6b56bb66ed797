#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make stop`: remove exactly what running (or crashed) topologies made, by their state files, and what is left of hosts' programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fl_state

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hosts"))  # this runs under the system's Python

from fairlane_hosts import loader
from fairlane_hosts.errors import HostsError


def main() -> int:
    """Clean the instances named as arguments, or all."""
    names = sys.argv[1:] or fl_state.instances()
    unknown = [name for name in names if name not in fl_state.instances()]
    if unknown:
        there = ", ".join(fl_state.instances()) or "none"
        print(
            f"error: no topology {unknown[0]!r} left its state in {fl_state.state_root()}; there: {there}",
            file=sys.stderr,
        )
        return 2
    if not names:
        print("nothing of ours is running")
    for name in names:
        removed = fl_state.clean(name)
        print(
            f"topology {name}: removed {len(removed)} processes and interfaces"
            + "".join(f"\n  {item}" for item in removed)
        )
    return _clean_hosts()


def _clean_hosts() -> int:
    """What killed runs left in the kernel: names of congestion controls, cgroup folders. Others' running ones stay."""
    if os.geteuid() != 0:
        return 0  # who may not make them has not made them
    try:
        removed = loader.cleanup()
    except HostsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if removed:
        print("hosts: removed " + ", ".join(removed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
