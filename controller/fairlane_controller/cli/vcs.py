# SPDX-License-Identifier: Apache-2.0
"""`fairlane vcs`: what each VC asks, gets and is owed."""

from __future__ import annotations

import asyncio

from fairlane_controller.cli.live_options import IntervalOption, OnlyPortOption, check_port, parse_interval
from fairlane_controller.cli.output import print_json, print_table
from fairlane_controller.cli.targets import JsonOption, StateOption, SwitchOption, resolve
from fairlane_controller.live.model import VcRow
from fairlane_controller.live.pictures import need_switches, take_two
from fairlane_controller.live.vc_state import Served, line_rate_bps, served
from fairlane_controller.units import format_per_s, format_rate, rounded


def vcs_command(
    interval: IntervalOption = "1s",
    port: OnlyPortOption = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each VC at each managed port: its MCR and w_i, what it gets (r_i), what waits (Q_i), what is refused, and whether MCR is met.

    MCR met: `yes`, `no` (with the part it gets), `asks less` (it sends less and loses nothing), `idle`. Frames by verdict: `fairlane gfr
    show`; changes: `fairlane vc`.

    Examples: `fairlane vcs`, `fairlane vcs --interval 5s`, `fairlane vcs --json`
    """
    interval_s = parse_interval(interval)
    targets = resolve(state, switch)
    check_port(targets, port)
    snapshot, _ = asyncio.run(take_two(targets, interval_s))
    rows = [vc for vc in need_switches(snapshot, "gfr").vcs if port is None or vc.port == port]
    if as_json:
        print_json([{**vc.to_json(), "mcr_met": _json_met(vc)} for vc in rows])
        return
    columns = (
        "switch",
        "port",
        "VC",
        "active",
        "MCR",
        "w_i",
        "rate",
        "MCR met",
        "Q_i (cells)",
        "accepted",
        "refused",
        "refused/s",
    )
    table = [
        (vc.switch, vc.port, vc.vc, {None: "-", True: "yes", False: "no"}[vc.active], format_rate(vc.mcr_bps), format_rate(rounded(vc.w_bps, 4)), format_rate(rounded(line_rate_bps(vc))), _met(vc), vc.waiting_cells, vc.accepted_packets, vc.refused_packets, format_per_s(vc.drops_per_s))
        for vc in rows
    ]  # fmt: skip
    print_table(
        "VCs (rates in bits on the line)", columns, table, empty="there is none; add one with `fairlane vc add`"
    )


def _json_met(vc: VcRow) -> str | None:
    found = served(vc)
    return None if found is None else found.value


def _met(vc: VcRow) -> str:
    found = served(vc)
    if found is None:
        return "-"
    rate = line_rate_bps(vc)
    if found is Served.NO and vc.mcr_bps and rate is not None:
        return f"no ({rate / vc.mcr_bps:.0%})"
    return found.value
