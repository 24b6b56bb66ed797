#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make stop`: remove exactly what running (or crashed) topologies made, by their state files."""

from __future__ import annotations

import sys

import fl_state


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
    return 0


if __name__ == "__main__":
    sys.exit(main())
