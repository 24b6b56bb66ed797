# SPDX-License-Identifier: Apache-2.0
"""What is in force, as a configuration: read from the switches, the loop's settings and what is remembered of VCs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from finsy import P4TableAction, P4TableEntry

from fairlane_controller.config.apply import read_note
from fairlane_controller.config.model import FairlaneConfig, config_model
from fairlane_controller.config.ports import read_ports
from fairlane_controller.loop.control import ask, loop_runs
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.program.registry import check_program, load_program
from fairlane_controller.programs.gfr.setup import is_gfr
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.programs.qthresh.policies import Policy, PortLimit, Scheme, read_limits, read_policies
from fairlane_controller.programs.qthresh.wanted import TABLE_CLASS
from fairlane_controller.state.loop_state import Mode, PolicyState
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import Entries, read_entries
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import match_of, match_text

Plain = dict[str, Any]
_WIDTHS = {"ingress_port": 0x1FF, "dscp": 0x3F, "pcp": 0x7}


@dataclass
class Shown:
    """What one switch holds, as tables of the file."""

    ports: list[Plain] = field(default_factory=lambda: list[Plain]())
    classes: list[Plain] = field(default_factory=lambda: list[Plain]())
    policies: list[Plain] = field(default_factory=lambda: list[Plain]())
    entries: Entries = field(default_factory=lambda: Entries())
    "Of a program's own tables."
    notes: list[str] = field(default_factory=lambda: list[str]())
    "What it holds that a file cannot say."


async def in_force(run: RunState) -> tuple[FairlaneConfig, list[str]]:
    """The configuration in force, and what a file cannot say of it, in words."""
    store = LoopStore(run.folder)
    shown = await asyncio.gather(*(_switch(run, switch.name, store) for switch in run.switches))
    data: Plain = {"program": run.program, "topology": {"name": run.folder.name}}
    loop = await loop_options(run)
    if loop:
        data["loop"] = loop
    ports = [port for one in shown for port in one.ports]
    if is_gfr(run):
        config = GfrStore(run.folder).state.config.model_dump(mode="json", exclude_defaults=True)
        known = {(port["switch"], port["port"]): port for port in ports}
        for port in config.get("ports", ()):
            known[port["switch"], port["port"]] = {**port, **known.get((port["switch"], port["port"]), {})}
        data |= {"clp_dscp": list(GfrStore(run.folder).state.config.clp_dscp), "vcs": config.get("vcs", [])}
        ports = [known[place] for place in sorted(known)]
    elif run.program != "qthresh":
        program = load_program(run.program)
        part = program.read_config(
            {switch.name: one.entries for switch, one in zip(run.switches, shown, strict=True)}, {}
        )
        if part.sections is not None:
            data |= part.sections.model_dump(mode="json", by_alias=True, exclude_unset=True)
        known = {(port["switch"], port["port"]): port for port in ports}
        for (switch, port), chosen in (part.ports or {}).items():
            known.setdefault((switch, port), {"switch": switch, "port": port}).update(
                chosen.model_dump(mode="json", by_alias=True, exclude_unset=True)
            )
        ports = [known[place] for place in sorted(known)]
    else:
        data["classes"] = [rule for one in shown for rule in one.classes]
        data["policies"] = [policy for one in shown for policy in one.policies]
    data["ports"] = ports
    return config_model().model_validate(data), [note for one in shown for note in one.notes]


async def loop_options(run: RunState) -> Plain | None:
    """The running loop's options, else those that were applied last."""
    if loop_runs(run.folder):
        found = await ask(run.folder, {"op": "loop_options"})
        return dict(found) if found else None
    note = read_note(run.folder)
    return note["config"].get("loop") if note else None


async def _switch(run: RunState, name: str, store: LoopStore) -> Shown:
    shown = Shown()
    state = run.switch(name)
    ports = {number: {"switch": name, "port": number, **held} for number, held in (await read_ports(run, name)).items()}
    async with SwitchClient(endpoint_of(state)) as client:
        if run.program != "qthresh" and not is_gfr(run):
            check_program(run.program, client.table_names())
            shown.entries = await read_entries(client, load_program(run.program).tables)
        elif not is_gfr(run):
            for limit in (await read_limits(client)).values():
                ports[limit.port] = {**ports.get(limit.port, {"switch": name, "port": limit.port}), **_limit(limit)}
            held = await read_policies(client)
            shown.policies = [_policy(name, held[key], store.policy(name, *key)) for key in sorted(held)]
            await _classes(client, shown)
    shown.ports = [ports[number] for number in sorted(ports)]
    return shown


def _limit(limit: PortLimit) -> Plain:
    data: Plain = {"managed": True, "limit_packets": limit.max_packets}
    if limit.max_bytes != UNLIMITED:
        data["limit_bytes"] = limit.max_bytes
    data["report_period"] = f"{limit.report_period_us}us"
    return data


def _policy(switch: str, held: Policy, settings: PolicyState) -> Plain:
    data: Plain = {"switch": switch, "port": held.port, "class": held.traffic_class, "scheme": held.scheme.value}
    if held.scheme is Scheme.DROP_TAIL:
        return data
    data |= {"mode": settings.mode.value, "weight": held.weight, "k": settings.k, "self_tuning": settings.self_tuning}
    if settings.mode is Mode.MANUAL:
        data["threshold"] = held.qthresh_packets
    for name in ("min_packets", "max_packets"):
        value = getattr(settings, name)
        if value is not None:
            data[name] = value
    return data


async def _classes(client: SwitchClient, shown: Shown) -> None:
    entries = [entry for entry in await client.read_table(TABLE_CLASS) if not entry.is_const]
    for entry in sorted(entries, key=lambda one: (-one.priority, str(one.match))):
        rule = _class(client.endpoint.name, entry)
        if rule is None:
            text = match_text(entry, client.switch.p4info)
            shown.notes.append(f"{client.endpoint.name}: {TABLE_CLASS} {text} is no rule of a file and is left out")
        else:
            shown.classes.append(rule)


def _class(switch: str, entry: P4TableEntry) -> Plain | None:
    """A rule of the file; None for an entry with another mask or priority, which others have written."""
    if not isinstance(entry.action, P4TableAction):
        return None
    data: Plain = {"class": int(entry.action.args["traffic_class"]), "switch": switch}
    match = dict(match_of(entry))
    rank = 0
    for place, (name, mask) in enumerate(_WIDTHS.items()):
        found: Any = match.get(name)
        if found is None:
            continue
        if int(found[1]) != mask:
            return None
        data[name] = int(found[0])
        rank += 4 >> place
    return data if rank == entry.priority and rank else None
