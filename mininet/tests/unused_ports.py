# SPDX-License-Identifier: Apache-2.0
"""Loopback ports of nobody, for switches that no topology numbers."""

from __future__ import annotations

import random

from fairlane_topology.ports import can_bind

UNNUMBERED = range(10_000, 20_000)
"""Where `unused` looks: below the ephemeral range, and apart from the ports of topologies and of BMv2's Thrift."""
_next_unnumbered = random.SystemRandom().choice(UNNUMBERED)


def unused() -> int:
    """A free loopback port that this function has not returned before in this process. Raises RuntimeError.

    The kernel's own choice (port 0) is no such port before somebody listens there: it gives the same one twice in one of 70
    lines of 20 switches, and any outgoing connection may take it.
    """
    global _next_unnumbered
    for _ in UNNUMBERED:
        port = _next_unnumbered
        _next_unnumbered = port + 1 if port + 1 in UNNUMBERED else UNNUMBERED[0]
        if can_bind("127.0.0.1", port):
            return port
    raise RuntimeError(f"no port from {UNNUMBERED[0]} to {UNNUMBERED[-1]} is free")
