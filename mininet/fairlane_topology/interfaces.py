# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""Mininet links: a veth pair, or two pairs with the wire (`fairlane-wire`) between them when the link is emulated.

    plain      h1-eth0 ─────────── s1-eth1
    emulated   h1-eth0 ── w0a ▒wire▒ w0b ── s1-eth1

Every interface has all offloads off: checksums on the wire are real, and no frame is larger than the MTU, which is the
link's at every end from the start: switch and wire read it when they open an interface.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.util import makeIntfPair

VETH_MTU = 1500
"""What a new one has."""
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "lro", "rxvlan", "txvlan")


class HostInterface(Intf):
    """A host's interface: when it has been taken down, its routes and permanent neighbours come back with it, as its address does."""

    _kept: tuple[dict[str, bytes], str] | None = None
    """What Linux forgets: routes by family, neighbours."""

    def ifconfig(self, *args: Any) -> str:
        """Run ifconfig for this interface; Mininet takes a link down and up with it."""
        if args == ("down",) and self.ip and "UP" in super().ifconfig():
            self._kept = (
                {family: self._ip(family, "route", "save", "dev", self.name) for family in ("-4", "-6")},
                self._neighbours(),
            )
        said = super().ifconfig(*args)
        if args == ("up",) and self._kept is not None:
            (routes, neighbours), self._kept = self._kept, None
            for family, saved in routes.items():
                self._ip(family, "route", "restore", given=saved)
            self._ip("-force", "-batch", "-", given=neighbours.encode())
        return said

    def _neighbours(self) -> str:
        """The permanent neighbours, as `ip -batch` takes them."""
        shown = (
            line.split()
            for family in ("-4", "-6")
            for line in self._ip(family, "neigh", "show", "dev", self.name, "nud", "permanent").decode().splitlines()
        )
        return "".join(
            f"neigh replace {words[0]} lladdr {words[2]} dev {self.name} nud permanent\n"
            for words in shown
            if words[1] == "lladdr"
        )

    def _ip(self, *arguments: str, given: bytes = b"") -> bytes:
        """What `ip` says in the host's namespace; nothing where it fails (no IPv6, say). It wants a file, to read it several times."""
        command = ["mnexec", "-a", str(self.node.pid), "ip", *arguments]
        with tempfile.TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            return subprocess.run(command, stdin=file, capture_output=True, timeout=20).stdout


class VethLink(Link):
    """A bare veth pair."""

    mtu: int

    def __init__(self, *args: Any, mtu: int, **params: Any) -> None:
        self.mtu = mtu
        super().__init__(*args, **params)

    def makeIntfPair(  # type: ignore[override]
        self,
        intfname1: str,
        intfname2: str,
        addr1: Any = None,
        addr2: Any = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> None:
        """Make the pair (Mininet calls this)."""
        makeIntfPair(intfname1, intfname2, addr1, addr2, node1, node2, deleteIntfs=deleteIntfs)
        for name, node in ((intfname1, node1), (intfname2, node2)):
            set_mtu(name, self.mtu, node)


class WireLink(Link):
    """Two veth pairs whose inner ends (`wire_ends`, in the switch's namespace) belong to the wire."""

    wire_ends: tuple[str, str]
    mtu: int

    def __init__(self, *args: Any, wire_ends: tuple[str, str], mtu: int, **params: Any) -> None:
        self.wire_ends = wire_ends
        self.mtu = mtu
        super().__init__(*args, **params)

    def makeIntfPair(  # type: ignore[override]
        self,
        intfname1: str,
        intfname2: str,
        addr1: Any = None,
        addr2: Any = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> None:
        """Make both pairs (Mininet calls this with the names of the outer ends)."""
        del addr1, addr2  # hosts set their own
        for outer, inner, node in ((intfname1, self.wire_ends[0], node1), (intfname2, self.wire_ends[1], node2)):
            makeIntfPair(outer, inner, node1=node, deleteIntfs=deleteIntfs)
            set_mtu(outer, self.mtu, node)
            set_mtu(inner, self.mtu)
            quiet(inner)
            run(["ip", "link", "set", inner, "up"])
            disable_offloads(inner)


def run(command: list[str]) -> str:
    """Run a command that must succeed. Raises RuntimeError with the command and its own words."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def set_mtu(interface: str, mtu: int, node: Any = None) -> None:
    """Set the longest IP packet of a new veth, in a node's namespace if one is given. Raises RuntimeError with ip's words."""
    if mtu == VETH_MTU:
        return
    prefix = [] if node is None else ["mnexec", "-a", str(node.pid)]
    run([*prefix, "ip", "link", "set", interface, "mtu", str(mtu)])


def quiet(interface: str) -> None:
    """Keep the kernel from sending anything of its own (IPv6 discovery) on an interface of this namespace."""
    setting = Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
    if setting.exists():
        setting.write_text("1\n")


def disable_offloads(interface: str, node: Any = None) -> None:
    """Switch every offload of an interface off, in a node's namespace if one is given. Raises RuntimeError when one stays on."""
    prefix = [] if node is None else ["mnexec", "-a", str(node.pid)]
    for feature in OFFLOADS:
        subprocess.run([*prefix, "ethtool", "-K", interface, feature, "off"], capture_output=True, timeout=20)
    state = run([*prefix, "ethtool", "-k", interface])
    bad = [
        name
        for name in (
            "tx-checksumming",
            "tcp-segmentation-offload",
            "generic-segmentation-offload",
            "generic-receive-offload",
        )
        if f"{name}: on" in state
    ]
    if bad:
        raise RuntimeError(f"{interface}: these offloads stay on: {', '.join(bad)}")
