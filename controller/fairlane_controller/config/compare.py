# SPDX-License-Identifier: Apache-2.0
"""What a configuration says beside what the switches hold: per entry missing, different or extra; reads only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy import P4Schema, P4TableEntry

from fairlane_controller.config.model import FairlaneConfig
from fairlane_controller.config.ports import differing, file_settings, read_infos
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history.sites import Sites
from fairlane_controller.program.contract import Config, Plan, Program
from fairlane_controller.program.registry import check_program, load_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.entities import EntityChange, Entries, same_entity
from fairlane_controller.switch.updates import Plain, action_text, match_text, plain_change
from fairlane_controller.units import format_rate

MISSING, DIFFERENT, EXTRA = "missing", "different", "extra"


@dataclass(frozen=True)
class Row:
    """One thing that is not as the file says."""

    switch: str
    what: str
    "A table, `settings` of the loop, or `port`."
    place: str
    status: str
    "missing: the switch has not got it; different; extra: the file has not got it."
    wanted: str
    held: str

    def to_json(self) -> dict[str, str]:
        """Plain data."""
        return {
            "switch": self.switch,
            "what": self.what,
            "place": self.place,
            "status": self.status,
            "file": self.wanted,
            "switch_holds": self.held,
        }


@dataclass
class SwitchDiff:
    """One switch: what differs, and the changes that bring it to what the file says."""

    switch: str
    rows: list[Row] = field(default_factory=lambda: list[Row]())
    changes: list[EntityChange] = field(default_factory=lambda: list[EntityChange]())
    resets: Sequence[Any] = ()
    ports: dict[int, Plain] = field(default_factory=lambda: dict[int, Plain]())
    "Settings of ports that differ, with the file's keys, by port."
    schema: P4Schema | None = None

    @property
    def updates(self) -> list[Plain]:
        """The changes as plain data."""
        return [plain_change(one) for one in self.changes]


@dataclass
class Comparison:
    """All switches of a topology beside a configuration."""

    switches: list[SwitchDiff]
    documents: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    "What is to be remembered,"
    documents_back: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    "and what an undo puts back instead of what it was."
    loop: tuple[Plain, Plain] | None = None
    "Options of the running loop, before and after; None: it has them, or there is no loop, or the file says nothing."

    @property
    def rows(self) -> list[Row]:
        """Everything that is not as the file says."""
        return [row for one in self.switches for row in one.rows]

    @property
    def same(self) -> bool:
        """Whether there is nothing to do."""
        return not self.rows


async def compare(config: FairlaneConfig, sites: Sites) -> Comparison:
    """Read all switches and compare; the configuration was checked on the topology. Raises what a switch answers."""
    run = sites.run
    assert run is not None
    program = load_program(run.program)
    part = config.part_of(program, run)
    plan = await plan_on(program, part, sites) if part.ports or part.sections is not None else None

    async def compare_switch(name: str) -> SwitchDiff:
        found = SwitchDiff(name)
        await _ports(found, config, sites)
        client = await sites.reader(name)
        check_program(program, client.table_names())
        if plan is not None:
            await _program(client, found, program, part, plan)
        return found

    switches = list(await asyncio.gather(*(compare_switch(switch.name) for switch in run.switches)))
    documents = {one.document: one.value for each in switches for one in (plan.remembered(each.switch) if plan else ())}
    loop, row = await _loop(config, sites)
    if row is not None:
        switches.append(SwitchDiff("loop", [row]))
    if plan is None:
        return Comparison(switches, loop=loop)
    return Comparison(switches, {**documents, **plan.documents}, plan.documents_back, loop)


async def plan_on(program: Program, part: Config, sites: Sites) -> Plan:
    """The plan of a configuration for a topology, with what a running loop has decided."""
    assert sites.run is not None
    if sites.loop_folder is None:
        return program.plan(part, sites.run)
    status: list[Plain] = await ask(sites.loop_folder, {"op": "status"})
    return program.plan_beside_loop(part, sites.run, {one["switch"]: one for one in status})


async def compare_on(config: FairlaneConfig, run: RunState) -> Comparison:
    """As `compare`, with connections of its own."""
    async with Sites(run) as sites:
        return await compare(config, sites)


async def _program(client: SwitchClient, found: SwitchDiff, program: Program, part: Config, plan: Plan) -> None:
    """The program's entries, and what is remembered beside them."""
    current = await read_entries(client, program.tables)
    expected = plan.wanted(found.switch, current)
    wanted, found.resets = entries_by_key(client, expected.entries), expected.resets
    for one in plan.remembered(found.switch):
        if one.wanted:
            words = [
                ", ".join(f"{name}={_format_value(data[name])}" for name in one.wanted)
                for data in (one.wanted, one.current)
            ]
            found.rows.append(Row(found.switch, "settings", one.place, DIFFERENT, *words))
    _entries(client, found, current, wanted, program)
    ports = program.ports_of(found.switch, current)
    for port, changed in found.ports.items():
        place = (found.switch, port)
        if (
            not {"queue_packets", "queue_bytes"} & changed.keys()
            or place not in (part.ports or {})
            or port not in ports
        ):
            continue
        for key in entries_by_key(client, program.entries(part.states[place], ports[port])):
            if key in current and same_entity(current[key], wanted.get(key)):
                # There is no difference now, but the change of the queue would make one.
                found.changes.append(EntityChange(current[key], current[key]))


async def _loop(config: FairlaneConfig, sites: Sites) -> tuple[tuple[Plain, Plain] | None, Row | None]:
    """What the file says of the running loop, beside its options."""
    if config.loop is None or sites.loop_folder is None:
        return None, None
    current: Plain = await ask(sites.loop_folder, {"op": "loop_options"})
    wanted = {**current, **config.loop.model_dump(mode="json", exclude_unset=True)}
    names = [name for name in wanted if wanted[name] != current.get(name)]
    if not names:
        return None, None
    words = [", ".join(f"{name}={_format_value(data.get(name))}" for name in names) for data in (wanted, current)]
    return (current, wanted), Row("loop", "options", "", DIFFERENT, *words)


async def _ports(found: SwitchDiff, config: FairlaneConfig, sites: Sites) -> None:
    """Settings of ports that the file says; the switch is asked for them only when it says some."""
    ports = [port for port in config.ports or () if port.switch == found.switch and file_settings(port)]
    if not ports:
        return
    infos = await read_infos(sites, found.switch)
    for port in ports:
        info = infos.get(port.port)
        if info is None:
            raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"switch {found.switch} has no port {port.port}")
        said, held = differing(port, info)
        if said:
            found.ports[port.port] = said
            texts = [", ".join(f"{key}={_setting(key, value)}" for key, value in data.items()) for data in (said, held)]
            found.rows.append(Row(found.switch, "port", f"port={port.port}", DIFFERENT, *texts))


def _setting(key: str, value: Any) -> str:
    return format_rate(value) if key == "rate" and value else _format_value(value)


def _format_value(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---- entries ---------------------------------------------------------------------------------------------------------


def _entries(client: SwitchClient, found: SwitchDiff, current: Entries, wanted: Entries, program: Program) -> None:
    """Rows and updates that lead from `current` to exactly `wanted`."""
    schema = found.schema = client.switch.p4info

    def row(status: str, new: P4TableEntry | None, old: P4TableEntry | None) -> None:
        shown = new or old
        assert shown is not None
        place = match_text(shown, schema)
        texts = [action_text(entry, schema, program.units) if entry is not None else "" for entry in (new, old)]
        found.rows.append(Row(found.switch, shown.table_id, place, status, *texts))

    for change in difference(current, wanted, program.tables):
        before, after = change.entries
        row(MISSING if before is None else EXTRA if after is None else DIFFERENT, after, before)
        found.changes.append(change)
