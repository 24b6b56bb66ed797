# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole and on the topology that runs: every refusal says the key, the value, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fairlane import PortState, RunState, duration_text, parse_dscp
from fairlane.text import bad_config, format_rate

from .admission import refusals
from .config import GfrConfig, PortConfig, Queues, RateForm, VcConfig
from .match import Ternary, first_clash
from .model import CELL_LINE_BITS, guaranteed_shares
from .names import PERIOD_CELLS_MAX, QUEUES_MAX, RATE_PERIOD_MIN_US, VC_IDS, VC_SLOTS
from .paths import path_of, vcs_of

DEFAULT_MTU_BYTES = 1500
FRAME_SCHEDULERS = ("wrr", "drr")


def check_config(config: GfrConfig, source: str, run: RunState | None = None) -> None:
    """BAD_FILE with the first problems; `run` is the topology where it is known, and adds its own bounds."""
    problems = problems_of(config, run)
    if problems:
        raise bad_config(source, problems)


def problems_of(config: GfrConfig, run: RunState | None = None) -> list[str]:
    """Everything that is wrong with it, each `ports[0].lbo_cells: what, and what is allowed`."""
    return [
        *_ports(config, run),
        *_vcs(config, run),
        *_matches(config),
        *_rates(config, run),
    ]


# ---- ports -----------------------------------------------------------------------------------------------------------


def _ports(config: GfrConfig, run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[str, int], int] = {}
    crossing = vcs_of(config, run)
    for index, port in enumerate(config.ports):
        at = f"ports[{index}]"
        if port.place in seen:
            yield f"{at}: {port.switch}:{port.port} is ports[{seen[port.place]}] too; a port may occur once"
        seen.setdefault(port.place, index)
        if not port.lbo_cells < port.hbo_cells:
            yield f"{at}.lbo_cells: {port.lbo_cells} must be below hbo_cells ({port.hbo_cells})"
        if not port.hbo_cells < port.qmax_cells:
            yield f"{at}.hbo_cells: {port.hbo_cells} must be below qmax_cells ({port.qmax_cells})"
        yield from _period(at, port)
        if run is not None:
            yield from _port_on(at, port, run, len(crossing[port.place]))


def _period(at: str, port: PortConfig) -> Iterator[str]:
    least = RATE_PERIOD_MIN_US / 1e6
    if port.rate_form is not RateForm.ALPHA and port.rate_period > least:
        yield (
            f"{at}.rate_period: {duration_text(port.rate_period)} counts with rate_form 'alpha' only: "
            f"must be {duration_text(least)} with {port.rate_form.value!r}"
        )
    most = PERIOD_CELLS_MAX * CELL_LINE_BITS / port.capacity
    if port.rate_period > max(most, least):
        yield (
            f"{at}.rate_period: {duration_text(port.rate_period)} of {format_rate(port.capacity)} are more than the {PERIOD_CELLS_MAX} cells "
            f"that the program counts together: must be at most {duration_text(math.floor(most * 1e6) / 1e6)}"
        )


def _port_on(at: str, port: PortConfig, run: RunState, vcs: int) -> Iterator[str]:
    if run.target == "bmv2" and port.queues is Queues.WRR:
        yield (
            f"{at}.queues: 'wrr' is not possible on BMv2, whose queues of a port are served by strict priority only "
            "(per-VC queues would starve each other): must be 'fifo' there"
        )
    yield from run.unknown_place(at, port.switch, port.port)
    state = _state(port, run)
    if state is None:
        return
    yield from _buffer(at, port, state)
    # The program counts cells of an atm line; on another line its bits are not the port's.
    if state.link_layer in ("", "atm") and 0 < state.rate_bps < port.capacity:
        over = format_rate(port.capacity - state.rate_bps)
        yield f"{at}.capacity: {format_rate(port.capacity)} is {over} more than the port's rate of {format_rate(state.rate_bps)}"
    if port.queues is Queues.WRR:
        if state.scheduler and state.scheduler not in FRAME_SCHEDULERS:
            yield (
                f"{at}.queues: 'wrr' needs a port whose scheduler is wrr or drr, and {port.switch}:{port.port} has "
                f"{state.scheduler!r}: must be 'fifo', or start the topology with scheduler wrr"
            )
        if 0 < state.queues < vcs + 1:
            yield f"{at}.queues: {'1 VC needs' if vcs == 1 else f'{vcs} VCs need'} {vcs + 1} queues, and {port.switch}:{port.port} has {state.queues}"


def _buffer(at: str, port: PortConfig, state: PortState) -> Iterator[str]:
    """The program must refuse before the queue behind it does, or its counters leak."""
    bounds = {"port_cells": state.port_cells, "queue_cells": state.queue_cells, "queue_packets": state.queue_packets}
    for name, bound in bounds.items():
        if 0 < bound < port.qmax_cells:
            unit = "packets, each of one cell or more" if name == "queue_packets" else "cells"
            yield (
                f"{at}.qmax_cells: {port.qmax_cells} is above the buffer of {port.switch}:{port.port} "
                f"({name} {bound} {unit}): must be at most {bound}"
            )
            return


# ---- VCs -------------------------------------------------------------------------------------------------------------


def _vcs(config: GfrConfig, run: RunState | None) -> Iterator[str]:
    if len(config.vcs) >= VC_IDS:
        yield f"vcs: {len(config.vcs)} VCs; there may be at most {VC_IDS - 1}"
    seen: dict[str, int] = {}
    for index, vc in enumerate(config.vcs):
        at = f"vcs[{index}]"
        if vc.name in seen:
            yield f"{at}.name: {vc.name!r} is the name of vcs[{seen[vc.name]}] too; names must be unique"
        seen.setdefault(vc.name, index)
        yield from _vc(at, vc, config)
        yield from _vc_places(at, vc, config, run)
        yield from _mfs(at, vc, config, run)


def _vc(at: str, vc: VcConfig, config: GfrConfig) -> Iterator[str]:
    if not vc.match:
        yield f"{at}.match: no packet would belong to {vc.name}: must be given, with a switch at least"
    if vc.pcr is not None and vc.pcr < vc.mcr:
        yield f"{at}.pcr: {format_rate(vc.pcr)} is below mcr ({format_rate(vc.mcr)}) by {format_rate(vc.mcr - vc.pcr)}: must be at least mcr"
    if vc.mbs_cells < vc.mfs_cells:
        yield (
            f"{at}.mbs_cells: {vc.mbs_cells} is less than one frame of mfs_bytes ({vc.mfs_bytes} bytes are {vc.mfs_cells} cells): "
            f"must be at least {vc.mfs_cells}"
        )
    mark = parse_dscp(vc.mark_dscp)
    known = [parse_dscp(text) for text in config.clp_dscp]
    if vc.edge and mark is not None and mark not in known:
        yield (
            f"{at}.mark_dscp: {vc.mark_dscp!r} is not in clp_dscp, so no other switch would see the mark; "
            f"valid: {', '.join(config.clp_dscp)}"
        )


def _vc_places(at: str, vc: VcConfig, config: GfrConfig, run: RunState | None) -> Iterator[str]:
    matched = {match.switch for match in vc.match}
    for number, match in enumerate(vc.match):
        yield from _check_place(f"{at}.match[{number}]", match.switch, match.ingress_port, "ingress_port", run)
    for number, edge in enumerate(vc.edge):
        here = f"{at}.edge[{number}]"
        yield from _check_place(here, edge.switch, edge.ingress_port, "ingress_port", run)
        ports = {match.ingress_port for match in vc.match if match.switch == edge.switch}
        if edge.switch not in matched:
            yield f"{here}: nothing in match finds {vc.name} at switch {edge.switch}, so nothing would be policed there"
        elif 0 not in ports and edge.ingress_port not in ports:
            listed = ", ".join(str(port) for port in sorted(ports))
            yield f"{here}.ingress_port: {vc.name} is matched at {edge.switch} port {listed} only; must be one of these"
    for number, place in enumerate(vc.path):
        if config.port(place.switch, place.port) is None:
            listed = ", ".join(f"{port.switch}:{port.port}" for port in config.ports) or "none"
            yield f"{at}.path[{number}]: {place.switch}:{place.port} is no port of this configuration; valid: {listed}"
    if vc.match and not path_of(config, vc, run):
        listed = ", ".join(f"{port.switch}:{port.port}" for port in config.ports) or "none"
        yield f"{at}.match: {vc.name} crosses no managed port (managed: {listed}): name its switches in match, or its ports in path"


def _check_place(at: str, switch: str, port: int, key: str, run: RunState | None) -> Iterator[str]:
    if run is not None:
        yield from run.unknown_place(at, switch, port or None, key)


def _mfs(at: str, vc: VcConfig, config: GfrConfig, run: RunState | None) -> Iterator[str]:
    """No link on its way carries a frame longer than its MTU, so an MFS above it promises what cannot be sent."""
    for switch, number in path_of(config, vc, run):
        port = config.port(switch, number)
        mtu, known = mtu_of(port, run) if port is not None else (DEFAULT_MTU_BYTES, False)
        if vc.mfs_bytes > mtu:
            source = "" if known else ", taken as 1500 since nothing says more: set ports[].mtu_bytes for jumbo frames"
            yield f"{at}.mfs_bytes: {vc.mfs_bytes} is above the MTU of {switch}:{number} ({mtu} bytes{source}): must be at most {mtu}"
            return


def mtu_of(port: PortConfig, run: RunState | None) -> tuple[int, bool]:
    """The MTU of a port in bytes of IP packet, and whether something said so: the configuration, else the run state."""
    if port.mtu_bytes is not None:
        return port.mtu_bytes, True
    state = _state(port, run)
    if state is not None and state.mtu:
        return state.mtu, True
    return DEFAULT_MTU_BYTES, False


# ---- matches, rates --------------------------------------------------------------------------------------------------


def _matches(config: GfrConfig) -> Iterator[str]:
    by_switch: dict[str, list[tuple[Ternary, str, str]]] = {}
    for index, vc in enumerate(config.vcs):
        for number, match in enumerate(vc.match):
            at = f"vcs[{index}].match[{number}]"
            try:
                entries = match.ternaries()
            except ValueError as ex:
                yield f"{at}: {ex}"
                continue
            by_switch.setdefault(match.switch, []).extend((entry, vc.name, at) for entry in entries)
    for switch, found in sorted(by_switch.items()):
        clash = first_clash([(entry, vc) for entry, vc, _ in found])
        if clash is not None:
            (first, one, _), (second, other, at) = found[clash[0]], found[clash[1]]
            how = "the same packets as" if first == second else "packets of the same precision as"
            yield f"{at}: {other} matches {how} {one} at switch {switch}: one of them must say more (ingress_port, src, dst, vlan, dscp)"


def _rates(config: GfrConfig, run: RunState | None) -> Iterator[str]:
    crossing = vcs_of(config, run)
    for index, vc in enumerate(config.vcs):
        for switch, number in path_of(config, vc, run):
            port = config.port(switch, number)
            if port is not None and vc.mcr > port.capacity:
                over = format_rate(vc.mcr - port.capacity)
                yield (
                    f"vcs[{index}].mcr: {format_rate(vc.mcr)} is {over} more than the capacity of {switch}:{number} "
                    f"({format_rate(port.capacity)})"
                )
    refused = refusals(config, run)
    yield from refused
    if refused:
        return
    for place, vcs in crossing.items():
        port = config.port(*place)
        if port is None or not vcs:
            continue
        shares = guaranteed_shares([vc.mcr for vc in vcs], port.capacity, [vc.weight for vc in vcs])
        for vc, w_bps in zip(vcs, shares, strict=True):
            if w_bps < 1:
                index = config.vcs.index(vc)
                yield f"vcs[{index}].mcr: nothing of {place[0]}:{place[1]} is left for {vc.name}: mcr must be above 0, or other VCs' lower"
    for switch in config.switches:
        slots = sum(len(vcs) for (name, _), vcs in crossing.items() if name == switch)
        if slots > VC_SLOTS:
            yield f"vcs: {slots} VCs on the ports of switch {switch}; it has {VC_SLOTS} slots"
    for index, port in enumerate(config.ports):
        if port.queues is Queues.WRR and len(crossing[port.place]) >= QUEUES_MAX:
            yield f"ports[{index}].queues: {len(crossing[port.place])} VCs; a port has at most {QUEUES_MAX} queues"


def _state(port: PortConfig, run: RunState | None) -> PortState | None:
    """What the topology says of a port; None where it says nothing."""
    switch = next((one for one in run.switches if one.name == port.switch), None) if run is not None else None
    return switch.port(port.port) if switch is not None else None
