# SPDX-License-Identifier: Apache-2.0
"""The entries that one switch should hold: ports' schemes, VCs' packets, marks, meters and shares, as values of `p4src/gfr.p4`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fairlane import RunState, parse_dscp
from finsy import P4MeterConfig, P4TableAction, P4TableEntry, P4TableMatch

from . import names as program
from .allocation import Allocation, SlotAssignment
from .config import GfrConfig, GfrScheme, PortConfig, Queues, RateAt, VcConfig
from .match import Ternary
from .model import (
    MeterSettings,
    ShareWords,
    fixed_8,
    guaranteed_shares,
    inverse_span,
    police_marked_settings,
    police_settings,
    share_words,
)
from .paths import Place, path_of, vcs_of

Active = Mapping[Place, Collection[str]]
"""Names of the active VCs of each managed port; a port that is not in it has all of its VCs active."""


@dataclass(frozen=True)
class VcShare:
    """What one VC gets on one port."""

    vc: str
    w_bps: float
    "(3); of a VC that is not active: what it would get if it began now."
    active: bool
    words: ShareWords


def port_shares(port: PortConfig, vcs: Sequence[VcConfig], active: Collection[str] | None = None) -> list[VcShare]:
    """(3) for the VCs of a port, in their order. `active` None: all of them.

    The active ones share C_GFR. Each other one has the w_i that it would get beside them, so that it begins with a
    fair share and not with nothing. W is C_GFR in both cases.
    """
    running = [vc for vc in vcs if active is None or vc.name in active]
    names = {vc.name for vc in running}
    w = guaranteed_shares([vc.mcr for vc in running], port.capacity, [vc.weight for vc in running])
    shares = {vc.name: w_bps for vc, w_bps in zip(running, w, strict=True)}
    rest, parts = port.capacity - math.fsum(vc.mcr for vc in running), math.fsum(vc.weight for vc in running)
    for vc in vcs:
        if vc.name not in names:
            shares[vc.name] = vc.mcr + vc.weight * max(0.0, rest - vc.mcr) / (parts + vc.weight)
    return [
        VcShare(vc.name, shares[vc.name], vc.name in names, share_words(shares[vc.name], port.capacity, port.capacity))
        for vc in vcs
    ]


# ---- entries ---------------------------------------------------------------------------------------------------------


def scheme_entry(port: PortConfig, active: int) -> P4TableEntry:
    """`port_scheme`: the scheme of an egress port; `active` is N (1 where nobody is)."""
    per_vc_queue = 1 if port.queues is Queues.WRR else 0
    arguments: dict[str, int] = {"qmax": port.qmax_cells, "per_vc_queue": per_vc_queue}
    bounds = {"lbo": port.lbo_cells, "hbo": port.hbo_cells}
    match port.scheme:
        case GfrScheme.DROP_TAIL:
            pass
        case GfrScheme.DOUBLE_EPD | GfrScheme.PERVC_THRESHOLD:
            arguments |= bounds
        case GfrScheme.DFBA:
            arguments |= bounds
            arguments["z"] = fixed_8("dfba_z", port.dfba_z)
            arguments["alpha"] = fixed_8("dfba_alpha", port.dfba_alpha, 1.0)
            arguments["inv_span"] = inverse_span(port.lbo_cells, port.hbo_cells)
        case GfrScheme.WFBA:
            arguments["lbo"] = port.lbo_cells
            arguments["z"] = fixed_8("wfba_z", port.wfba_z)
        case GfrScheme.PROPOSED:
            arguments |= bounds
            arguments["n"] = max(1, active)
            arguments["rate_form"] = program.RATE_FORMS.index(port.rate_form.value)
            arguments["alpha"] = fixed_8("rate_alpha", port.rate_alpha, 1.0)
            arguments["at_arrival"] = int(port.rate_at is RateAt.ARRIVAL)
            arguments["period_us"] = round(port.rate_period * 1e6)
    return P4TableEntry(
        program.TABLE_PORT_SCHEME,
        match=P4TableMatch(egress_port=port.port),
        action=P4TableAction(port.scheme.value, **arguments),
    )


def classify_entry(entry: Ternary, vc_id: int) -> P4TableEntry:
    """`vc_classify` or `vc_classify_v6`: packets of a VC; the more precise entry has the higher priority."""
    return P4TableEntry(
        program.TABLE_VC_CLASSIFY[entry.version],
        match=P4TableMatch({name: (value, mask) for name, value, mask in entry.fields}),
        action=P4TableAction(program.ACTION_SET_VC, vc=vc_id),
        priority=entry.priority,
    )


def mark_entries(clp_dscp: Sequence[str]) -> list[P4TableEntry]:
    """`clp_mark`: the DSCPs that mean CLP 1, and a VLAN tag's DEI."""
    numbers = {number for number in map(parse_dscp, clp_dscp) if number is not None}
    matches: list[tuple[dict[str, tuple[int, int]], int]] = [({"dscp": (n, 0x3F)}, 2) for n in sorted(numbers)]
    matches.append(({"dei": (1, 1)}, 1))
    return [
        P4TableEntry(
            program.TABLE_CLP_MARK,
            match=P4TableMatch(fields),
            action=P4TableAction(program.ACTION_SET_CLP, clp=1),
            priority=priority,
        )
        for fields, priority in matches
    ]


def edge_entries(ingress_port: int, vc: VcConfig, vc_id: int, settings: MeterSettings) -> list[P4TableEntry]:
    """`vc_police` and `vc_police_marked` of a VC at one ingress port, with their meters, and `vc_edge` that leads to them."""
    match = {"ingress_port": ingress_port, "vc": vc_id}
    mark = parse_dscp(vc.mark_dscp)
    edge = P4TableAction(
        program.ACTION_SET_EDGE, mfs=vc.mfs_frame_bytes, mark_dscp=mark or 0, set_dscp=0 if mark is None else 1
    )
    police, marked = P4TableAction(program.ACTION_POLICE), P4TableAction(program.ACTION_POLICE_MARKED)
    marked_settings = police_marked_settings(settings)
    return [
        P4TableEntry(program.TABLE_VC_POLICE, match=P4TableMatch(match), action=police, meter_config=_meter(settings)),
        P4TableEntry(
            program.TABLE_VC_POLICE_MARKED,
            match=P4TableMatch(match),
            action=marked,
            meter_config=_meter(marked_settings),
        ),
        P4TableEntry(program.TABLE_VC_EDGE, match=P4TableMatch(match), action=edge),
    ]


def _meter(settings: MeterSettings) -> P4MeterConfig:
    return P4MeterConfig(
        cir=settings.cir_bytes_per_s,
        cburst=settings.cburst_bytes,
        pir=settings.pir_bytes_per_s,
        pburst=settings.pburst_bytes,
    )


def share_entry(port: PortConfig, vc: VcConfig, vc_id: int, assignment: SlotAssignment, share: VcShare) -> P4TableEntry:
    """`vc_share`: slot, queue and share of a VC on an egress port."""
    words = share.words
    return P4TableEntry(
        program.TABLE_VC_SHARE,
        match=P4TableMatch(egress_port=port.port, vc=vc_id),
        action=P4TableAction(
            program.ACTION_SET_SHARE,
            slot=assignment.slot,
            queue=assignment.queue,
            w=words.w,
            weight=words.weight,
            share=words.share,
            inv_share=words.inv_share,
            inv_rest=words.inv_rest,
            threshold=max(1, math.ceil(port.threshold_mbs * vc.mbs_cells)),
        ),
    )


# ---- all of a switch -------------------------------------------------------------------------------------------------


def pcr_of(config: GfrConfig, vc: VcConfig, run: RunState | None) -> tuple[float, float]:
    """(PCR, C_GFR) of a VC in bit/s: its own PCR or the least capacity of its ports, which is C_GFR here."""
    ports = [config.port(*place) for place in path_of(config, vc, run)]
    capacity = min(port.capacity for port in ports if port is not None)
    return (capacity if vc.pcr is None else vc.pcr), capacity


def port_entries(
    allocation: Allocation, port: PortConfig, vcs: Sequence[VcConfig], active: Collection[str] | None
) -> list[P4TableEntry]:
    """What changes with the active VCs of a port: its scheme (N) and every VC's share."""
    shares = port_shares(port, vcs, active)
    assignments = allocation.assignments_by_key()
    made = [scheme_entry(port, sum(share.active for share in shares))]
    for vc, share in zip(vcs, shares, strict=True):
        assignment = assignments[port.switch, port.port, vc.name]
        made.append(share_entry(port, vc, allocation.vc_ids[vc.name], assignment, share))
    return made


def switch_entries(
    config: GfrConfig,
    allocation: Allocation,
    switch: str,
    run: RunState | None = None,
    active: Active | None = None,
) -> list[P4TableEntry]:
    """Every entry of GFR's tables that `switch` should hold: shares before what leads packets to them.

    `config` was checked and `allocation` made for it. Nothing for a switch that the configuration does not name.
    """
    if switch not in config.switches:
        return []
    crossing = vcs_of(config, run)
    made: list[P4TableEntry] = []
    for port in config.ports:
        if port.switch == switch:
            running = active.get(port.place) if active is not None else None
            made += port_entries(allocation, port, crossing[port.place], running)
    made += mark_entries(config.clp_dscp)
    for vc in config.vcs:
        vc_id = allocation.vc_ids[vc.name]
        for edge in vc.edge:
            if edge.switch == switch:
                pcr, capacity = pcr_of(config, vc, run)
                settings = police_settings(vc.mcr, pcr, vc.mbs_cells, vc.mfs_frame_bytes, capacity)
                made += edge_entries(edge.ingress_port, vc, vc_id, settings)
        for match in vc.match:
            if match.switch == switch:
                made += [classify_entry(entry, vc_id) for entry in match.ternaries()]
    return made
