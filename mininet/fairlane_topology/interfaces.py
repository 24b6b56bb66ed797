# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet links: a veth pair, or two pairs with the wire between them where a link is emulated and no switch has it in its process.

    switches in one process   h1-eth0 ── s1-eth1 (▒wire▒ s1)      s1-eth2 ── s2-eth1 carry nothing: their state is the ports'
    plain                     h1-eth0 ── s1-eth1 (s1)
    emulated                  h1-eth0 ── w0a (▒wire▒) w0b ── s1-eth1 (s1)

Every interface has all offloads off: checksums on the wire are real, and no frame is larger than the MTU, which is the
link's at every end from the start: switch and wire read it when they open an interface.
"""

from __future__ import annotations

from typing import Any

from fairlane_switch.interfaces import disable_offloads, quiet, run
from mininet.link import Intf, Link
from mininet.util import makeIntfPair

VETH_MTU = 1500
"""What a new one has."""


class HostInterface(Intf):
    """A host's interface: when Mininet takes it down and up again, it gets what it had from the start, of which Linux forgets routes and neighbours."""

    def __str__(self) -> str:
        """`h1-eth0`: it is `eth0` in its own namespace only."""
        return f"{self.node.name}-{self.name}" if self.name == "eth0" else str(self.name)

    def ifconfig(self, *args: Any) -> str:
        """Run ifconfig for this interface; Mininet takes a link down and up with it."""
        was_down = args == ("up",) and "UP" not in super().ifconfig()
        answer = super().ifconfig(*args)
        if was_down and self.ip:
            self.node.configure()
        return answer


class FairlaneLink(Link):
    """A veth pair; with `wire_ends` two pairs, whose inner ends (in the switch's namespace) belong to the wire."""

    def __init__(self, *args: Any, mtu: int, wire_ends: tuple[str, ...], **params: Any) -> None:
        self.mtu = mtu
        self.wire_ends = wire_ends
        super().__init__(*args, **params)

    def makeIntfPair(  # type: ignore[override]
        self, name1: str, name2: str, _addr1: None, _addr2: None, node1: Any, node2: Any, **_: Any
    ) -> None:
        """Make the pairs (Mininet calls this with the names of the outer ends)."""
        pairs = [(name1, node1, name2, node2)]
        if self.wire_ends:
            pairs = [(name1, node1, self.wire_ends[0], None), (name2, node2, self.wire_ends[1], None)]
        for outer, node, inner, inner_node in pairs:
            makeIntfPair(outer, inner, node1=node, node2=inner_node, deleteIntfs=False)
            for interface, place in ((outer, node), (inner, inner_node)):
                if self.mtu != VETH_MTU:
                    run(*in_namespace(place), "ip", "link", "set", interface, "mtu", self.mtu)
        for inner in self.wire_ends:
            quiet(inner)
            run("ip", "link", "set", inner, "up")
            disable_offloads(inner)


def in_namespace(node: Any) -> list[str]:
    """What runs a command in a node's namespace; nothing for None, which is ours."""
    return [] if node is None else ["mnexec", "-a", str(node.pid)]
