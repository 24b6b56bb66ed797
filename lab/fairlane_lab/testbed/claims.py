# SPDX-License-Identifier: Apache-2.0
"""Instance numbers of networks, unique on this machine: two runs at a time must not remove each other's network.

A claim is a lock on a file beside the run states; it ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import re
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from fairlane_topology import state as fl_state

from fairlane_lab.run_result import RunError


@contextmanager
def claimed_instances(count: int, first: int, last: int) -> Generator[list[int]]:
    """The lowest `count` numbers of `first`..`last` that no other process has claimed and no topology runs at, by the run states or by its interfaces. Raises RunError when there are too few."""
    root = fl_state.state_root()
    root.mkdir(parents=True, exist_ok=True)
    found: list[int] = []
    with ExitStack() as stack:
        for number in range(first, last + 1):
            file = (root / f".claim-{number}").open("a")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                continue
            stack.enter_context(file)
            if fl_state.alive(str(number)):  # somebody's `make run`, or what a killed run left for `make stop`
                continue
            if fl_state.read(str(number)) is None and _has_interfaces(number):  # of a run with another state folder
                continue
            found.append(number)
            if len(found) == count:
                yield found
                return
        raise RunError(
            f"only {len(found)} of {count} networks can be numbered: other runs have the rest of {first} to {last}"
        )


def _has_interfaces(number: int) -> bool:
    """Whether this machine has an interface of a topology with that number (docs/architecture.md, names)."""
    return any(re.match(rf"n{number}\D", name) for _, name in socket.if_nameindex())
