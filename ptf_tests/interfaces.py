# SPDX-License-Identifier: Apache-2.0
"""The interface pairs between a switch and ptf, in the network namespace that we are in: up and quiet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairlane_switch.interfaces import run


def make_interfaces(ports: Sequence[int], mtu: int) -> tuple[dict[int, str], dict[int, str]]:
    """(switch's ends, ptf's ends) of one veth pair a port, up and quiet: with no IPv6 nothing but the tests and the switch sends on them."""
    for setting in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{setting}/disable_ipv6").write_text("1")
    run("ip", "link", "set", "lo", "up")
    switch_ends = {port: f"s{port}" for port in ports}
    ptf_ends = {port: f"p{port}" for port in ports}
    for port in ports:
        run("ip", "link", "add", switch_ends[port], "type", "veth", "peer", "name", ptf_ends[port])
        for name in (switch_ends[port], ptf_ends[port]):
            run("ip", "link", "set", name, "mtu", mtu, "up")
    return switch_ends, ptf_ends
