# SPDX-License-Identifier: Apache-2.0
"""Which port a flow leaves by: the longest prefix of the switch's own routes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from finsy import P4TableAction, P4TableEntry

from fairlane_controller.switch.shared import ACTION_FORWARD, TABLE_ROUTE

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Routes:
    """Prefix → port; answers are remembered."""

    def __init__(self, entries: Iterable[P4TableEntry] = ()) -> None:
        found = [route for entry in entries if (route := _route(entry)) is not None]
        self._routes = sorted(found, key=lambda route: -route[0].prefixlen)
        self._known: dict[Address, int | None] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def port(self, dst: Address) -> int | None:
        """The egress port towards an address; None where no route forwards it."""
        if dst not in self._known:
            hit = next((port for net, port in self._routes if net.version == dst.version and dst in net), None)
            if len(self._known) >= 65_536:
                self._known.clear()
            self._known[dst] = hit
        return self._known[dst]


def _route(entry: P4TableEntry) -> tuple[Network, int] | None:
    action, match = entry.action, dict(entry.match or {})
    if not isinstance(action, P4TableAction) or action.name != ACTION_FORWARD or len(match) != 1:
        return None
    version = 4 if entry.table_id == TABLE_ROUTE[4] else 6
    value, bits = _lpm(next(iter(match.values())), 32 if version == 4 else 128)
    make: Any = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    return make((value, bits)), int(action.args["port"])


def _lpm(value: Any, width: int) -> tuple[int, int]:
    """finsy's LPM values: (value, prefix length); a bare number is a whole address."""
    if isinstance(value, tuple):
        number, bits = value  # pyright: ignore[reportUnknownVariableType]
        return int(number), int(bits)  # pyright: ignore[reportUnknownArgumentType]
    return int(value), width
