# SPDX-License-Identifier: Apache-2.0
"""The managed ports that a VC crosses: configured, or found by the routes of its destination, or all ports of its switches."""

from __future__ import annotations

from fairlane import Place, RunState

from .config import GfrConfig, VcConfig, VcMatch, network_of


def path_of(config: GfrConfig, vc: VcConfig, run: RunState | None = None) -> list[Place]:
    """The managed ports on the VC's path, in the order of the configuration.

    `path` says them. Without: a match with a `dst` goes where the run state's routes of that switch lead; where there is no
    `dst` or no route, the VC may leave by any managed port of the switch.
    """
    crossed = {(place.switch, place.port) for place in vc.path}
    if not vc.path:
        routed = [(match.switch, _ports_to(match, run)) for match in vc.match]
        crossed = {
            port.place
            for port in config.ports
            for switch, ports in routed
            if port.switch == switch and (not ports or port.port in ports)
        }
    return [port.place for port in config.ports if port.place in crossed]


def vcs_of(config: GfrConfig, run: RunState | None = None) -> dict[Place, list[VcConfig]]:
    """The VCs of each managed port, in the order of the configuration."""
    found: dict[Place, list[VcConfig]] = {port.place: [] for port in config.ports}
    for vc in config.vcs:
        for place in path_of(config, vc, run):
            found[place].append(vc)
    return found


def _ports_to(match: VcMatch, run: RunState | None) -> set[int]:
    """Ports by which packets to `dst` may leave: that of the longest route that has all of it, and of those of parts of it."""
    wanted = network_of(match.dst)
    switch = next((one for one in run.switches if one.name == match.switch), None) if run is not None else None
    if wanted is None or switch is None:
        return set()
    networks = [(route.network, route.port) for route in switch.routes]
    found = [
        (network.prefixlen, port)
        for network, port in networks
        if network.version == wanted.version and network.overlaps(wanted)  # pyright: ignore[reportArgumentType]
    ]
    whole = max((length for length, _ in found if length <= wanted.prefixlen), default=0)
    return {port for length, port in found if length >= whole}
