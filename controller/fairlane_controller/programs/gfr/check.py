# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

import math
from collections import Counter
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
    crossing, problems = vcs_of(config, run), list[str]()
    for index, port in enumerate(config.ports):
        found = _port(port, crossing[port.place], run)
        problems += [f"{(at or {}).get(port.place) or f'ports[{index}]'}{problem}" for problem in found]
    for index, vc in enumerate(config.vcs):
        problems += [f"vcs[{index}]{problem}" for problem in _vc(vc, config, run)]
    counts = Counter(vc.name for vc in config.vcs)
    problems += [
        f"vcs: the name {name!r} occurs {count} times; it may once" for name, count in counts.items() if count > 1
    ]
    return [*problems, *_twice(config)]


def _port(port: PortConfig, vcs: Sequence[VcConfig], run: RunState | None) -> Iterator[str]:
    for low, high in (("lbo_cells", "hbo_cells"), ("hbo_cells", "qmax_cells")):
        if not getattr(port, low) < getattr(port, high):
            yield f".{low}: {getattr(port, low)} must be below {high} ({getattr(port, high)})"
    counted_s = math.floor(1e6 * PERIOD_CELLS_MAX * CELL_LINE_BITS / port.capacity) / 1e6
    period_s = max(RATE_PERIOD_MIN_S, counted_s if port.rate_form == "alpha" else 0.0)
    if port.rate_period > period_s:
        bound = f"must be at most {duration_text(period_s)} with this capacity and rate_form {port.rate_form!r}"
        yield f".rate_period: {duration_text(port.rate_period)} {bound}"
    total = math.fsum(vc.mcr for vc in vcs)
    if total > port.capacity * (1 + 1e-6):  # call admission
        over, capacity = format_rate(total - port.capacity), format_rate(port.capacity)
        sums = f"the MCRs of {len(vcs)} VCs sum up to {format_rate(total)} on {port}"
        yield f".capacity: {sums}, {over} more than its capacity of {capacity}"
    yield from run.unknown_place("", port.switch, port.port) if run is not None else ()
    state = _state(port, run)
    if run is None or state is None:
        return
    # The program must refuse before the queue behind it does, or its counters leak. A packet has one cell or more.
    bounds = {name: getattr(state, name) or port.qmax_cells for name in ("port_cells", "queue_cells", "queue_packets")}
    name = min(bounds, key=bounds.__getitem__)
    if port.qmax_cells > bounds[name]:
        yield f".qmax_cells: {port.qmax_cells} must be at most {bounds[name]}, the buffer of {port} ({name})"
    # The program counts cells of an atm line; on another line its bits are not the port's.
    if state.link_layer in ("", "atm") and 0 < state.rate_bps < port.capacity:
        rate = format_rate(state.rate_bps)
        yield f".capacity: {format_rate(port.capacity)} must be at most the rate of {port}, {rate}"
    scheduler = "strict" if run.target == "bmv2" else state.scheduler
    if port.queues == "wrr" and (scheduler not in ("", "wrr", "drr") or 0 < state.queues <= len(vcs)):
        needs = f"'wrr' needs the scheduler wrr or drr and {len(vcs) + 1} queues"
        yield f".queues: {needs}, and {port} has {scheduler or 'wrr'!r} and {state.queues}: must be 'fifo' there"


def _vc(vc: VcConfig, config: GfrConfig, run: RunState | None) -> Iterator[str]:
    if vc.pcr is not None and vc.pcr < vc.mcr:
        yield f".pcr: {format_rate(vc.pcr)} must be at least mcr ({format_rate(vc.mcr)})"
    if vc.mbs_cells < vc.mfs_cells:
        yield f".mbs_cells: {vc.mbs_cells} must be at least {vc.mfs_cells}, a frame of mfs_bytes ({vc.mfs_bytes})"
    if vc.edge and vc.mark_dscp and parse_dscp(vc.mark_dscp) not in map(parse_dscp, config.clp_dscp):
        valid = ", ".join(config.clp_dscp)
        yield f".mark_dscp: {vc.mark_dscp!r} is not in clp_dscp: no other switch would see the mark; valid: {valid}"
    for number, edge in enumerate(vc.edge):
        if not any(one.switch == edge.switch and one.ingress_port in (0, edge.ingress_port) for one in vc.match):
            yield f".edge[{number}]: nothing in match finds {vc.name} at {edge.switch}:{edge.ingress_port}"
    for key, entrances in (("match", vc.match), ("edge", vc.edge)):
        for number, one in enumerate(entrances):
            if run is not None:
                yield from run.unknown_place(f".{key}[{number}]", one.switch, one.ingress_port or None, "ingress_port")
    managed, path = ", ".join(map(str, config.ports)) or "none", path_of(config, vc, run)
    if not path or {(one.switch, one.port) for one in vc.path} - {*path}:
        yield f".path: {vc.name} must cross managed ports ({managed}): name its switches in match, or its ports in path"
    # No link on its way carries a frame longer than its MTU, so an MFS above it promises what cannot be sent.
    mtu, port = min(((_mtu(port, run), str(port)) for port in config.ports if port.place in path), default=(0, ""))
    if mtu and vc.mfs_bytes > mtu:
        yield f".mfs_bytes: {vc.mfs_bytes} must be at most {mtu}, the MTU of {port} (mtu_bytes of the port, where the topology says none)"


def _twice(config: GfrConfig) -> Iterator[str]:
    """Matches of different VCs that are the same; of others it is defined which one decides (`classify_entries`)."""
    owners: dict[object, str] = {}
    for index, vc in enumerate(config.vcs):
        for number, match in enumerate(vc.match):
            entries = [str(entry.match) for entry in classify_entries(match, 0)]
            owner = owners.setdefault((match.switch, *entries), vc.name)
            if owner != vc.name:
                same = f"{vc.name} matches the same packets as {owner} at switch {match.switch}"
                yield f"vcs[{index}].match[{number}]: {same}: one of them must say more (ingress_port, src, dst, vlan, dscp)"


def _mtu(port: PortConfig, run: RunState | None) -> int:
    """The MTU of a port in bytes of IP packet: the configuration's, else the run state's."""
    state = _state(port, run)
    return port.mtu_bytes or (state.mtu if state is not None else 0) or DEFAULT_MTU_BYTES


def _state(port: PortConfig, run: RunState | None) -> PortState | None:
    """What the topology says of a port; None where it says nothing."""
    switch = next((one for one in run.switches if one.name == port.switch), None) if run is not None else None
    return switch.port(port.port) if switch is not None else None
