# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fairlane import Place, RunState, duration_text, port_state
from fairlane.switch import QUEUES_MAX
from fairlane.text import format_rate

from .config import RATE_PERIOD_MIN_S, GfrState, ManagedPort, VcConfig, place_of
from .entries import classify_entries
from .model import CELL_LINE_BITS
from .names import PERIOD_CELLS_MAX

DEFAULT_MTU_BYTES = 1500


def problems_of(state: GfrState, run: RunState | None = None, at: Mapping[Place, str] | None = None) -> list[str]:
    """Everything that is wrong with a configuration, each `ports[0].lbo_cells: what, and what is allowed`.

    Args:
        state: The configuration.
        run: The topology where it is known; it adds its own bounds.
        at: Where ports stand, as `ports[2]`.
    """
    crossing, problems = state.vcs_of(), list[str]()
    for index, port in enumerate(state.ports):
        found = _port(port, crossing[port.place], run)
        problems += [f"{(at or {}).get(port.place) or f'ports[{index}]'}{problem}" for problem in found]
    for index, vc in enumerate(state.vcs):
        problems += [f"vcs[{index}]{problem}" for problem in _vc(vc, state, run)]
    counts = Counter(vc.name for vc in state.vcs)
    twice = (f"vcs: the name {name!r} occurs {count} times; it may once" for name, count in counts.items() if count > 1)
    return [*problems, *twice, *_same_matches(state)]


def _port(port: ManagedPort, vcs: Sequence[VcConfig], run: RunState | None) -> Iterator[str]:
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
    if port.queues == "wrr" and len(vcs) >= QUEUES_MAX:
        yield f".queues: 'wrr' needs {len(vcs) + 1} queues, and a port has at most {QUEUES_MAX}: must be 'fifo' there"
    if run is None:
        return
    yield from run.unknown_place("", port.switch, port.port)
    state = port_state(run, port.place)
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


def _vc(vc: VcConfig, state: GfrState, run: RunState | None) -> Iterator[str]:
    if vc.pcr is not None and vc.pcr < vc.mcr:
        yield f".pcr: {format_rate(vc.pcr)} must be at least mcr ({format_rate(vc.mcr)})"
    if vc.mbs_cells < vc.mfs_cells:
        yield f".mbs_cells: {vc.mbs_cells} must be at least {vc.mfs_cells}, a frame of mfs_bytes ({vc.mfs_bytes})"
    for number, (switch, port) in enumerate(vc.edges):
        if not any(one.switch == switch and one.ingress_port in (0, port) for one in vc.match):
            yield f".edge[{number}]: nothing in match finds {vc.name} at {switch}:{port}"
    managed, path = ", ".join(map(str, state.ports)) or "none", state.path_of(vc)
    if not path or {*map(place_of, vc.path)} - {port.place for port in path}:
        yield f".path: {vc.name} must cross managed ports ({managed}): name its switches in match, or its ports in path"
    if run is None:
        return
    for number, (switch, port) in enumerate(vc.edges):
        yield from run.unknown_place(f".edge[{number}]", switch, port)
    for number, one in enumerate(vc.match):
        yield from run.unknown_place(f".match[{number}]", one.switch, one.ingress_port or None, "ingress_port")
    # No link on its way carries a frame longer than its MTU, so an MFS above it promises what cannot be sent.
    for port in path:
        if vc.mfs_bytes > (mtu := port_state(run, port.place).mtu or DEFAULT_MTU_BYTES):
            yield f".mfs_bytes: {vc.mfs_bytes} must be at most {mtu}, the MTU of {port}"


def _same_matches(state: GfrState) -> Iterator[str]:
    """Matches of different VCs that are the same; of others it is defined which one decides (`classify_entries`)."""
    owners: dict[object, str] = {}
    for index, vc in enumerate(state.vcs):
        for number, match in enumerate(vc.match):
            entries = [str(entry.match) for entry in classify_entries(match, 0)]
            owner = owners.setdefault((match.switch, *entries), vc.name)
            if owner != vc.name:
                same = f"{vc.name} matches the same packets as {owner} at switch {match.switch}"
                yield f"vcs[{index}].match[{number}]: {same}: one of them must say more (ingress_port, src, dst, vlan, dscp)"
