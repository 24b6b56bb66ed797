# SPDX-License-Identifier: Apache-2.0
"""The managed ports that a VC crosses: configured, or found by the routes of its destination, or all ports of its switches."""

from __future__ import annotations

from fairlane import RunState, SwitchState

from .config import GfrConfig, VcConfig, VcMatch

Place = tuple[str, int]
"""(switch, egress port)."""


def path_of(config: GfrConfig, vc: VcConfig, run: RunState | None = None) -> list[Place]:
    """The managed ports on the VC's path, in the order of the configuration.

    `path` says them. Without: a match with a `dst` goes where the run state's routes of that switch lead; where there is no
    `dst` or no route, the VC may leave by any managed port of the switch.
    """
    if vc.path:
        crossed: set[Place] = {(place.switch, place.port) for place in vc.path}
    else:
        crossed = {place for match in vc.match for place in _ports_of(config, match, run)}
    return [port.place for port in config.ports if port.place in crossed]


def vcs_of(config: GfrConfig, run: RunState | None = None) -> dict[Place, list[VcConfig]]:
    """The VCs of each managed port, in the order of the configuration."""
    found: dict[Place, list[VcConfig]] = {port.place: [] for port in config.ports}
    for vc in config.vcs:
        for place in path_of(config, vc, run):
            found[place].append(vc)
    return found


def _ports_of(config: GfrConfig, match: VcMatch, run: RunState | None) -> list[Place]:
    managed = [port.place for port in config.ports if port.switch == match.switch]
    states = {switch.name: switch for switch in run.switches} if run is not None else {}
    leads_to = _routed(states[match.switch], match) if match.switch in states else None
    return managed if leads_to is None else [place for place in managed if place[1] in leads_to]


def _routed(switch: SwitchState, match: VcMatch) -> set[int] | None:
    """Ports that packets to `dst` may leave by: the longest route that holds all of it, and those of parts of it. None: unknown."""
    wanted = match.dst_network
    if wanted is None:
        return None
    ports: set[int] = set()
    best: tuple[int, int] | None = None
    for route in switch.routes:
        network = route.network
        if network.version != wanted.version or not network.overlaps(wanted):  # pyright: ignore[reportArgumentType]
            continue
        if network.prefixlen > wanted.prefixlen:
            ports.add(route.port)
        elif best is None or network.prefixlen > best[0]:
            best = (network.prefixlen, route.port)
    if best is not None:
        ports.add(best[1])
    return ports or None
