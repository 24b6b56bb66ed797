#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make stop`: remove exactly what running (or crashed) topologies made, by their state files, and what is left of hosts' programs.

`stop.py --after PID NAME` is started by each launcher: it waits for the end of that process, and removes what it has left. A launcher
that ends in order ends it too; so it has something to do only when the launcher was killed.
"""

from __future__ import annotations

import os
import select
import sys

from fairlane_controller.errors import FairlaneError
from fairlane_hosts import loader

from fairlane_topology import state


def main() -> int:
    """Clean the instances named as arguments, or all."""
    names = sys.argv[1:]
    if just_ended := names[:1] == ["--after"]:
        wait_for_end(int(names[1]))
        names = [name for name in names[2:] if name in state.instances()]
        if not names:
            return 0
    there = state.instances()
    for name in names:
        if name not in there:
            known = ", ".join(there) or "none"
            print(
                f"error: no topology {name!r} left its state in {state.state_root()}; there: {known}", file=sys.stderr
            )
            return 2
    if not (names or there):
        print("nothing of ours is running")
    for name in names or there:
        removed = state.clean(name, just_ended=just_ended)
        print(f"topology {name}: removed {len(removed)} processes and interfaces", *removed, sep="\n  ")
    try:  # what killed runs left in the kernel: names of congestion controls, cgroup folders; others' running ones stay
        removed = loader.cleanup() if os.geteuid() == 0 else []
    except FairlaneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if removed:
        print("hosts: removed " + ", ".join(removed))
    return 0


def wait_for_end(parent: int) -> None:
    """Wait until the process that started this one has ended."""
    try:
        process = os.pidfd_open(parent)
    except ProcessLookupError:
        return
    if os.getppid() == parent:  # else it had ended before, and the pid is another's
        select.select([process], [], [])


if __name__ == "__main__":
    sys.exit(main())
