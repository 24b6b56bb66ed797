# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from fairlane import Place, PortState, RunState, duration_text, parse_dscp
from fairlane.text import bad_config, format_rate

from .config import RATE_PERIOD_MIN_S, GfrConfig, PortConfig, VcConfig
from .entries import classify_entries
from .model import CELL_LINE_BITS
from .names import PERIOD_CELLS_MAX
from .paths import path_of, vcs_of

DEFAULT_MTU_BYTES = 1500


def check_config(config: GfrConfig, source: str, run: RunState | None = None) -> None:
    """Raise BAD_FILE with the first problems.

    Args:
        config: The configuration.
        source: Where it stands.
        run: The topology where it is known; it adds its own bounds.
    """
    problems = problems_of(config, run)
    if problems:
        raise bad_config(source, problems)


def problems_of(config: GfrConfig, run: RunState | None = None, at: Mapping[Place, str] | None = None) -> list[str]:
    """Everything that is wrong with it, each `ports[0].lbo_cells: what, and what is allowed`; `at`: where ports stand, as `ports[2]`."""
    crossing, problems, names = vcs_of(config, run), list[str](), list[str]()
    for index, port in enumerate(config.ports):
        problems += _port((at or {}).get(port.place) or f"ports[{index}]", port, crossing[port.place], run)
    for index, vc in enumerate(config.vcs):
        if vc.name in names:
            problems.append(
                f"vcs[{index}].name: {vc.name!r} is the name of vcs[{names.index(vc.name)}] too; names must be unique"
            )
        names.append(vc.name)
        problems += _vc(f"vcs[{index}]", vc, config, run)
    return [*problems, *_clashes(config)]


def _port(at: str, port: PortConfig, vcs: Sequence[VcConfig], run: RunState | None) -> Iterator[str]:
    if not port.lbo_cells < port.hbo_cells:
        yield f"{at}.lbo_cells: {port.lbo_cells} must be below hbo_cells ({port.hbo_cells})"
    if not port.hbo_cells < port.qmax_cells:
        yield f"{at}.hbo_cells: {port.hbo_cells} must be below qmax_cells ({port.qmax_cells})"
    counted_s = math.floor(1e6 * PERIOD_CELLS_MAX * CELL_LINE_BITS / port.capacity) / 1e6
    period_s = max(RATE_PERIOD_MIN_S, counted_s if port.rate_form == "alpha" else 0.0)
    if port.rate_period > period_s:
        yield (
            f"{at}.rate_period: {duration_text(port.rate_period)} must be at most {duration_text(period_s)}: a period is of rate_form 'alpha', "
            f"and of at most {PERIOD_CELLS_MAX} cells at {format_rate(port.capacity)}"
        )
    over = math.fsum(vc.mcr for vc in vcs) - port.capacity
    if over > 1e-6 * port.capacity:  # call admission
        total, capacity = format_rate(port.capacity + over), format_rate(port.capacity)
        sums = f"the MCRs of {len(vcs)} VCs sum up to {total} on {port}"
        yield f"{at}.capacity: {sums}, {format_rate(over)} more than its capacity of {capacity}"
    if run is not None:
        yield from run.unknown_place(at, port.switch, port.port)
    state = _state(port, run)
    if run is None or state is None:
        return
    # The program must refuse before the queue behind it does, or its counters leak. A packet has one cell or more.
    bounds = {name: getattr(state, name) for name in ("port_cells", "queue_cells", "queue_packets")}
    name, bound = min(
        ((name, bound) for name, bound in bounds.items() if bound),
        key=lambda one: one[1],
        default=("", port.qmax_cells),
    )
    if port.qmax_cells > bound:
        yield f"{at}.qmax_cells: {port.qmax_cells} is above the buffer of {port} ({name} {bound}): must be at most {bound}"
    # The program counts cells of an atm line; on another line its bits are not the port's.
    if state.link_layer in ("", "atm") and 0 < state.rate_bps < port.capacity:
        rate, more = format_rate(state.rate_bps), format_rate(port.capacity - state.rate_bps)
        yield f"{at}.capacity: {format_rate(port.capacity)} is {more} more than the port's rate of {rate}"
    if port.queues == "wrr":
        scheduler = "strict" if run.target == "bmv2" else state.scheduler
        if scheduler not in ("", "wrr", "drr"):
            yield f"{at}.queues: 'wrr' needs a port whose scheduler is wrr or drr, and {port} has {scheduler!r}: must be 'fifo' there"
        if 0 < state.queues <= len(vcs):
            yield f"{at}.queues: 'wrr' needs a queue for each of {len(vcs)} VCs and one more, and {port} has {state.queues}: give it more, or 'fifo'"


def _vc(at: str, vc: VcConfig, config: GfrConfig, run: RunState | None) -> Iterator[str]:
    if vc.pcr is not None and vc.pcr < vc.mcr:
        yield f"{at}.pcr: {format_rate(vc.pcr)} must be at least mcr ({format_rate(vc.mcr)})"
    if vc.mbs_cells < vc.mfs_cells:
        yield f"{at}.mbs_cells: {vc.mbs_cells} must be at least a frame of mfs_bytes ({vc.mfs_bytes} bytes are {vc.mfs_cells} cells)"
    mark = parse_dscp(vc.mark_dscp)
    if vc.edge and mark is not None and mark not in map(parse_dscp, config.clp_dscp):
        valid = ", ".join(config.clp_dscp)
        yield f"{at}.mark_dscp: {vc.mark_dscp!r} is not in clp_dscp, so no other switch would see the mark; valid: {valid}"
    entrances = [(f"{at}.match[{number}]", one) for number, one in enumerate(vc.match)]
    for here, one in [*entrances, *((f"{at}.edge[{number}]", one) for number, one in enumerate(vc.edge))]:
        if run is not None:
            yield from run.unknown_place(here, one.switch, one.ingress_port or None, "ingress_port")
    for number, edge in enumerate(vc.edge):
        here, place = f"{at}.edge[{number}]", f"{edge.switch}:{edge.ingress_port}"
        if not any(one.switch == edge.switch and one.ingress_port in (0, edge.ingress_port) for one in vc.match):
            yield f"{here}: nothing in match finds {vc.name} at {place}, so nothing would be policed there"
    managed = ", ".join(map(str, config.ports)) or "none"
    for number, one in enumerate(vc.path):
        if config.port(one.switch, one.port) is None:
            yield f"{at}.path[{number}]: {one.switch}:{one.port} is no port of this configuration; valid: {managed}"
    path = path_of(config, vc, run)
    if not path:
        yield f"{at}.match: {vc.name} crosses no managed port (managed: {managed}): name its switches in match, or its ports in path"
    # No link on its way carries a frame longer than its MTU, so an MFS above it promises what cannot be sent.
    mtus = [(_mtu(port, run), port) for port in config.ports if port.place in path]
    for mtu, port in sorted(mtus, key=lambda one: one[0])[:1]:
        if vc.mfs_bytes > mtu:
            yield f"{at}.mfs_bytes: {vc.mfs_bytes} is above the MTU of {port}: must be at most {mtu} (ports[].mtu_bytes, where the topology says none)"


def _clashes(config: GfrConfig) -> Iterator[str]:
    """Matches of different VCs that are the same; of others it is said which one decides (`classify_entries`)."""
    owners: dict[object, str] = {}
    for index, vc in enumerate(config.vcs):
        for number, match in enumerate(vc.match):
            owner = owners.setdefault(
                (match.switch, *(str(entry.match) for entry in classify_entries(match, 0))), vc.name
            )
            if owner != vc.name:
                must = "one of them must say more (ingress_port, src, dst, vlan, dscp)"
                yield f"vcs[{index}].match[{number}]: {vc.name} matches the same packets as {owner} at switch {match.switch}: {must}"


def _mtu(port: PortConfig, run: RunState | None) -> int:
    """The MTU of a port in bytes of IP packet: the configuration's, else the run state's."""
    state = _state(port, run)
    return port.mtu_bytes or (state.mtu if state is not None else 0) or DEFAULT_MTU_BYTES


def _state(port: PortConfig, run: RunState | None) -> PortState | None:
    """What the topology says of a port; None where it says nothing."""
    switch = next((one for one in run.switches if one.name == port.switch), None) if run is not None else None
    return switch.port(port.port) if switch is not None else None
