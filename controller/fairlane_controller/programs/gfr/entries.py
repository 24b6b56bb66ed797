# SPDX-License-Identifier: Apache-2.0
"""The entries that one switch should have: ports' schemes, VCs' packets, marks, meters and shares, as values of `p4src/gfr.p4`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fairlane import P4TableAction, P4TableEntry, P4TableMatch, parse_dscp

from . import names
from .config import MARKED_DSCPS, GfrState, ManagedPort, VcConfig, VcMatch, network_of
from .model import guaranteed_shares, police_meters, share_words

WIDTHS = {"ingress_port": 9, "vid": 12, "dscp": 6}


def port_shares(port: ManagedPort, vcs: Sequence[VcConfig], active: Collection[str] | None = None) -> dict[str, float]:
    """(3) for the VCs of a port, in their order, in bit/s on the line.

    The active ones (`active` None: all) share C_GFR. Each other one has the w_i that it would get beside them, so that it begins with
    a fair share and not with nothing.
    """
    running = [vc for vc in vcs if active is None or vc.name in active]
    w = guaranteed_shares([vc.mcr for vc in running], port.capacity, [vc.weight for vc in running])
    shares = {vc.name: w_bps for vc, w_bps in zip(running, w, strict=True)}
    rest, parts = port.capacity - math.fsum(vc.mcr for vc in running), math.fsum(vc.weight for vc in running)
    return {
        vc.name: shares[vc.name]
        if vc.name in shares
        else vc.mcr + vc.weight * max(0.0, rest - vc.mcr) / (parts + vc.weight)
        for vc in vcs
    }


def fit_to_line(port: ManagedPort, vcs: Sequence[VcConfig], line_bps: float) -> ManagedPort:
    """The port on a line of another rate: C_GFR is that rate, and at least the sum of MCR.

    On a slower line LBO and HBO shrink in proportion, so that they take as much time to drain; at least two of the longest frames fit.

    Args:
        port: As configured.
        vcs: Its VCs.
        line_bps: What the line carries, in bit/s.
    """
    capacity = max(line_bps, math.fsum(vc.mcr for vc in vcs))
    part, least = min(1.0, capacity / port.capacity), 2 * max((vc.mfs_cells for vc in vcs), default=0)
    lbo = min(port.lbo_cells, max(round(port.lbo_cells * part), least))
    hbo = min(port.hbo_cells, max(round(port.hbo_cells * part), lbo + 1))
    return port.model_copy(update={"capacity": capacity, "lbo_cells": lbo, "hbo_cells": hbo})


def port_entries(
    port: ManagedPort, vcs: Sequence[VcConfig], active: Collection[str] | None, state: GfrState
) -> Iterator[P4TableEntry]:
    """What changes with the active VCs of a port: `port_scheme` with N, and each VC's slot, queue and share in `vc_share`."""
    n = sum(active is None or vc.name in active for vc in vcs)
    match, action = P4TableMatch(egress_port=port.port), P4TableAction(port.scheme, **_scheme(port, max(1, n)))
    yield P4TableEntry(names.TABLE_PORT_SCHEME, match=match, action=action)
    shares, slots, queues = port_shares(port, vcs, active), state.numbers[port.switch], state.numbers[str(port)]
    for vc in vcs:
        words = share_words(shares[vc.name], port.capacity)
        words |= {"slot": slots[f"{port} {vc.name}"], "queue": queues[vc.name]}
        words["threshold"] = max(1, math.ceil(port.threshold_mbs * vc.mbs_cells))
        match = P4TableMatch(egress_port=port.port, vc=state.numbers[""][vc.name])
        yield P4TableEntry(names.TABLE_VC_SHARE, match=match, action=P4TableAction("set_share", **words))


def _scheme(port: ManagedPort, n: int) -> dict[str, int]:
    """The arguments of the action that is the port's scheme; factors are in 1/256."""
    arguments = {"qmax": port.qmax_cells, "per_vc_queue": int(port.queues == "wrr")}
    if port.scheme != "drop_tail":
        arguments["lbo"] = port.lbo_cells
    if port.scheme not in ("drop_tail", "wfba"):
        arguments["hbo"] = port.hbo_cells
    if port.scheme == "wfba":
        arguments["z"] = round(256 * port.wfba_z)
    if port.scheme == "dfba":
        span = min((1 << 32) - 1, round((1 << 32) / (port.hbo_cells - port.lbo_cells)))
        arguments |= {"z": round(256 * port.dfba_z), "alpha": round(256 * port.dfba_alpha), "inv_span": span}
    if port.scheme == "proposed":
        arguments |= {"n": n, "rate_form": int(port.rate_form == "alpha"), "alpha": round(256 * port.rate_alpha)}
        arguments |= {"at_arrival": int(port.rate_at == "arrival"), "period_us": round(port.rate_period * 1e6)}
    return arguments


def mark_entries() -> Iterator[P4TableEntry]:
    """`clp_mark`: the DSCPs that mean CLP 1, and a VLAN tag's DEI."""
    for name, value, mask in [*(("dscp", parse_dscp(text), 0x3F) for text in MARKED_DSCPS), ("dei", 1, 1)]:
        match, action = P4TableMatch({name: (value, mask)}), P4TableAction("set_clp", clp=1)
        yield P4TableEntry("clp_mark", match=match, action=action, priority=2 if name == "dscp" else 1)


def edge_entries(ingress_port: int, vc: VcConfig, vc_id: int, capacity_bps: float) -> Iterator[P4TableEntry]:
    """`vc_police` and `vc_police_marked` of a VC at one ingress port, with their meters, and `vc_edge` that leads to them.

    Args:
        ingress_port: Where the VC enters.
        vc: The VC.
        vc_id: Its id in the network.
        capacity_bps: The least C_GFR of its ports: its PCR where it has none of its own.
    """
    pcr = capacity_bps if vc.pcr is None else vc.pcr
    meters = police_meters(vc.mcr, pcr, vc.mbs_cells, vc.mfs_frame_bytes, capacity_bps)
    mark = parse_dscp(vc.mark_dscp)
    edge: dict[str, Any] = {"mfs": vc.mfs_frame_bytes, "mark_dscp": mark or 0, "set_dscp": int(mark is not None)}
    for table, meter, action in (
        ("vc_police", meters[0], P4TableAction("police")),
        ("vc_police_marked", meters[1], P4TableAction("police_marked")),
        ("vc_edge", None, P4TableAction("set_edge", **edge)),
    ):
        yield P4TableEntry(
            table, match=P4TableMatch(ingress_port=ingress_port, vc=vc_id), action=action, meter_config=meter
        )


def classify_entries(match: VcMatch, vc_id: int) -> Iterator[P4TableEntry]:
    """`vc_classify` and `vc_classify_v6`: packets of a VC.

    Of two entries that match a packet the one that compares more bits decides; of equally many, the one with the ingress port, else with
    the VLAN, else with the DSCP, else with the longer `src`. So two entries of one priority have equal masks: they match no packet
    together unless they are the same.
    """
    values = {"ingress_port": match.ingress_port or None, "vid": match.vlan or None, "dscp": parse_dscp(match.dscp)}
    fields = {name: (value, (1 << WIDTHS[name]) - 1) for name, value in values.items() if value is not None}
    for name in ("src", "dst"):
        network = network_of(getattr(match, name))
        if network is not None and network.prefixlen:
            fields[name] = int(network.network_address), int(network.netmask)
    priority = sum(mask.bit_count() for _, mask in fields.values())
    for name in WIDTHS:
        priority = priority << 1 | (name in fields)
    priority = priority << 8 | fields.get("src", (0, 0))[1].bit_count()
    for version in match.versions:
        yield P4TableEntry(
            names.TABLE_VC_CLASSIFY[version],
            match=P4TableMatch(fields),
            action=P4TableAction("set_vc", vc=vc_id),
            priority=1 + priority,  # greater is matched first (P4Runtime 1.5 §9.1.1)
        )
