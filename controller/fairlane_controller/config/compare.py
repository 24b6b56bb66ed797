# SPDX-License-Identifier: Apache-2.0
"""The plan of a configuration: what the file says beside what the switches have, and the steps that end the difference. Reads only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finsy import P4Schema

from fairlane_controller.config.model import FairlaneConfig, PortConfig
from fairlane_controller.config.read import Loaded, check
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file
from fairlane_controller.gnmi.ports import PortChange, PortInfo
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import LoopStep, PortStep, Step, port_step
from fairlane_controller.program.contract import Config, Plan, Program, port_state
from fairlane_controller.program.registry import check_program, load_program
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.state.store import STATE_FILE, Store
from fairlane_controller.switch.changeset import ChangeSet, difference, entries_by_key, read_entries
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.entities import EntityChange, Entries, same_entity
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import Plain, action_text, changed_arguments, match_text, plain_update
from fairlane_controller.units import format_rate

CONFIG = "config"
"""The document of the configuration that was applied last."""
MISSING, DIFFERENT, EXTRA = "missing", "different", "extra"
NAMES = {option.key or name: name for name, option in PortChange.options.items()}
"""Keys of a port in the file that are such settings, and their names in `PortChange`."""


@dataclass(frozen=True)
class Row:
    """One thing that is not as the file says."""

    switch: str
    what: str
    "A table, `settings` of the loop, `options` of the loop, or `port`."
    place: str
    status: str
    "missing: the switch has not got it; different; extra: the file has not got it."
    wanted: str
    current: str

    def to_json(self) -> dict[str, str]:
        """Plain data."""
        names = {"wanted": "file", "current": "switch_holds"}
        return {names.get(name, name): value for name, value in vars(self).items()}


@dataclass
class SwitchDiff:
    """One switch: what differs, and the changes that bring it to what the file says."""

    switch: str
    rows: list[Row] = field(default_factory=list[Row])
    changes: list[EntityChange] = field(default_factory=list[EntityChange])
    resets: Sequence[Any] = ()
    ports: list[PortStep] = field(default_factory=list[PortStep])
    schema: P4Schema | None = None
    loads = False
    "A configuration loads no program."

    @property
    def updates(self) -> list[Plain]:
        """The changes of entries as plain data."""
        return [plain_update(one.kind, one.entity) for one in self.changes]

    @property
    def notes(self) -> list[str]:
        """What is set or remembered beside its entries, in words."""
        beside = (row for row in self.rows if row.what in ("settings", "port", "options"))
        return [f"{row.what}{row.place and ' '}{row.place}: {row.current} becomes {row.wanted}" for row in beside]


@dataclass
class Comparison:
    """All switches of a topology beside a configuration."""

    switches: list[SwitchDiff]
    documents: dict[str, Any] = field(default_factory=dict[str, Any])
    "What is to be remembered,"
    documents_back: Mapping[str, Any] = field(default_factory=dict[str, Any])
    "and what an undo puts back instead of what it was."
    loop: LoopStep | None = None
    "The change of the running loop's options; None: it has them, or there is no loop, or the file says nothing."

    @property
    def rows(self) -> list[Row]:
        """Everything that is not as the file says."""
        return [row for one in self.switches for row in one.rows]

    @property
    def same(self) -> bool:
        """Whether there is nothing to do."""
        return not self.rows

    @property
    def steps(self) -> list[Step]:
        """What is to be done, in its order."""
        changed = [one for one in self.switches if one.changes]
        entries = ChangeSet({one.switch: one.changes for one in changed}, {one.switch: one.resets for one in changed})
        steps = ordered([port for one in self.switches for port in one.ports], [entries])
        return steps if self.loop is None else [*steps, self.loop]


async def compare(config: FairlaneConfig, sites: Sites) -> Comparison:
    """Read the switches that it concerns, and compare; the configuration was checked on the topology. Raises what a switch answers."""
    run = sites.run
    assert run is not None
    program = load_program(run.program)
    part = config.part_of(program, run)
    plan = await plan_on(program, part, sites) if part.ports or part.sections is not None else None
    named = {port.switch for port in config.ports or ()}
    names = named if plan is None else sites.endpoints if plan.concerned is None else named.union(plan.concerned)
    names = [switch.name for switch in run.switches if switch.name in names]

    async def compare_switch(name: str) -> SwitchDiff:
        found = SwitchDiff(name)
        await _ports(found, config, sites)
        check_program(program, (await sites.reader(name)).table_names())
        if plan is not None or any(concerns_entries(step.after) for step in found.ports):
            await _program(found, program, part, plan, sites)
        return found

    found = Comparison(list(await asyncio.gather(*(compare_switch(name) for name in names))))
    await _loop(found, config, sites)
    if plan is not None:
        documents = {one.document: one.value for name in names for one in plan.remembered(name)}
        found.documents, found.documents_back = {**documents, **plan.documents}, plan.documents_back
    return found


async def plan_on(program: Program, part: Config, sites: Sites) -> Plan:
    """The plan of a configuration for a topology, with what a running loop has decided."""
    assert sites.run is not None
    if sites.loop_folder is None:
        return program.plan(part, sites.run)
    status: list[Plain] = await ask(sites.loop_folder, {"op": "status"})
    return program.plan_beside_loop(part, sites.run, {one["switch"]: one for one in status})


async def compare_on(loaded: Loaded, run: RunState) -> Comparison:
    """Check, and compare with connections of its own; BAD_FILE before anything is read."""
    check(loaded, run)
    async with Sites(run) as sites:
        return await compare(loaded.config, sites)


async def _program(found: SwitchDiff, program: Program, part: Config, plan: Plan | None, sites: Sites) -> None:
    """The program's entries, and what is remembered beside them; without a plan only entries that follow a port's queues."""
    client = await sites.reader(found.switch)
    current = await read_entries(client, program.tables)
    wanted = dict(current)
    if plan is not None:
        expected = plan.wanted(found.switch, current)
        wanted, found.resets = entries_by_key(client, expected.entries), expected.resets
        for one in plan.remembered(found.switch):
            if one.wanted:
                _add(found, "settings", one.place, one.wanted, {key: one.current[key] for key in one.wanted})
    for step in found.ports:
        scales = (step.switch, step.port) not in (part.ports or {})
        old, new = entries_of_queue(program, client, sites.run, step, current, scales=scales)
        for key in {**old, **new}:
            if same_entity(wanted.get(key), current.get(key)):  # the file leaves it as it is
                wanted.pop(key, None)
                wanted |= {key: new[key]} if key in new else {}
    schema = found.schema = client.switch.p4info
    for change in difference(current, wanted, program.tables):
        before, after = change.entries
        status = MISSING if before is None else EXTRA if after is None else DIFFERENT
        texts = [action_text(one, schema, program.units) if one is not None else "" for one in (after, before)]
        shown = after or before
        assert shown is not None
        found.rows.append(Row(found.switch, shown.table_id, match_text(shown, schema), status, *texts))
        found.changes.append(change)


async def _loop(found: Comparison, config: FairlaneConfig, sites: Sites) -> None:
    """What the file says of the running loop, beside its options."""
    if config.loop is None or sites.loop_folder is None:
        return
    current: Plain = await ask(sites.loop_folder, {"op": "loop_options"})
    wanted = {**current, **config.loop.model_dump(mode="json", exclude_unset=True)}
    names = [name for name in wanted if wanted[name] != current.get(name)]
    if names:
        found.loop = LoopStep(current, wanted)
        of_loop = SwitchDiff("loop")
        _add(of_loop, "options", "", *({name: data.get(name) for name in names} for data in (wanted, current)))
        found.switches.append(of_loop)


def read_applied(folder: Path) -> dict[str, Any] | None:
    """What was applied last: `source` and `config`; None when nothing was. Raises BAD_FILE."""
    with Store(folder) as store:
        data = store.get(CONFIG)
    try:
        return None if data is None else {"source": str(data["source"]), "config": dict(data["config"])}
    except (ValueError, KeyError, TypeError) as ex:
        problem = f"{folder / STATE_FILE}: {CONFIG}: {type(ex).__name__}: {ex}; apply a configuration again"
        raise bad_file(problem) from None


async def _ports(found: SwitchDiff, config: FairlaneConfig, sites: Sites) -> None:
    """Settings of ports that the file gives; the switch is asked for them only when it gives some."""
    given = {one.port: file_settings(one) for one in config.ports or () if one.switch == found.switch}
    infos = await read_infos(sites, found.switch) if any(given.values()) else {}
    for port, settings in given.items():
        info = infos.get(port)
        if settings and info is None:
            raise ErrorCode.UNKNOWN_NAME(f"switch {found.switch} has no port {port}")
        if settings and info is not None:
            current = {key: info.setting(NAMES[key]) for key in settings}
            new = {key: value for key, value in settings.items() if value != current[key]}
            if new:
                found.ports.append(port_step_of(found.switch, port, new, info))
                _add(found, "port", f"port={port}", new, {key: current[key] for key in new})


def _add(found: SwitchDiff, what: str, place: str, wanted: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """A row of values that differ."""
    found.rows.append(Row(found.switch, what, place, DIFFERENT, *map(values_text, (wanted, current))))


def values_text(values: Mapping[str, Any]) -> str:
    """`rate=2 Mbit/s, threshold=-`."""
    return ", ".join(f"{key}={_text(key, value)}" for key, value in values.items())


def _text(key: str, value: Any) -> str:
    if key == "rate" and value:
        return format_rate(value)
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---- settings of ports that P4Runtime cannot set (rate, queue, scheduler, state) -------------------------------------------


async def read_infos(sites: Sites, switch: str) -> dict[int, PortInfo]:
    """What a switch reports of its ports; raises REFUSED where the target serves nothing of it."""
    async with sites.ports(switch) as ports:
        return {info.port: info for info in await ports.ports()}


async def read_ports(sites: Sites, switch: str) -> dict[int, Plain]:
    """The settings of each port with the file's keys, without limits that there are not; nothing where the target serves none.

    Raises:
        FairlaneError: The switch does not answer.
    """
    try:
        infos = await read_infos(sites, switch)
    except FairlaneError as ex:
        if ex.code in (ErrorCode.REFUSED, ErrorCode.BAD_FILE):
            return {}
        raise
    return {
        number: {
            key: value
            for key, name in NAMES.items()
            if (value := info.setting(name)) is not None and (value or not PortChange.options[name].is_limit)
        }
        for number, info in infos.items()
    }


def file_settings(port: PortConfig) -> Plain:
    """The settings that the file gives a port, by its keys."""
    given = port.model_dump(mode="json", include=set(NAMES), exclude_none=True)
    return {key: round(value) if key == "rate" else value for key, value in given.items()}


def port_step_of(switch: str, port: int, settings: Mapping[str, Any], info: PortInfo) -> PortStep:
    """The change to settings with the file's keys, of a port that has `info` now."""
    change = PortChange.from_values({NAMES[key]: value for key, value in settings.items()})
    return PortStep(switch, port, change.inverse(info), change)


# ---- what follows of it ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PortPlan:
    """What a change of a port means."""

    steps: list[Step]
    "In their order; for `history.steps.make`."
    sentences: list[str]
    "One for each thing that is, or would be, done."
    note: str = ""
    "What cannot be taken back."


async def plan_port(sites: Sites, switch: str, port: int, change: PortChange) -> PortPlan:
    """A change of a port, and of the program's entries of the port, which follow its queues.

    Args:
        sites: where the change is made.
        switch: name of the switch.
        port: number of the port.
        change: its new settings.

    Raises:
        FairlaneError: UNKNOWN_NAME for the port, or what the target refuses.
    """
    step = await port_step(sites, switch, port, change)
    async with sites.ports(switch) as ports:
        sentences = await ports.set_port(port, change, dry_run=True)
    entries: list[Step] = []
    if sites.run is not None and sites.folder is not None and concerns_entries(change):
        program, client = load_program(sites.run.program), await sites.reader(switch)
        if client.has_pipeline and program.missing_table(client.table_names()) is None:
            current = await read_entries(client, program.tables)
            old, new = entries_of_queue(program, client, sites.run, step, current)
            changes = difference(old, new, program.tables)
            entries += [ChangeSet({switch: changes})] if changes else []
            for was, after in (one.entries for one in changes):
                if after is not None:
                    values = changed_arguments(was, after, client.switch.p4info, program.units)
                    sentences.append(f"{after.table_id} of port {port} = {values}")
    note = "" if change.queues is None else "queues that were added stay: a switch that runs cannot take one away"
    return PortPlan(ordered([step], entries), sentences, note)


def concerns_entries(change: PortChange) -> bool:
    """Whether entries of a program may follow a change of a port."""
    return any(one is not None for one in (change.queue_packets, change.queue_bytes, change.queues, change.scheduler))


def entries_of_queue(
    program: Program,
    client: SwitchClient,
    run: RunState | None,
    step: PortStep,
    current: Entries,
    *,
    scales: bool = True,
) -> tuple[Entries, Entries]:
    """The entries of a port that follow its queues, as they are and as they are to be.

    Args:
        program: whose entries they are.
        client: of the switch.
        run: the topology.
        step: the change of the port.
        current: the entries that the switch has in the program's tables.
        scales: whether settings follow the queue's room, too; not where a configuration gives them.
    """
    state = port_state(run, (step.switch, step.port)).model_copy(update=step.after.values_by_name)
    old, new = dict[str, Any](), entries_by_key(client, program.entries_for_queues(state, current))
    now = program.ports_of(step.switch, current).get(step.port)
    packets, size = step.after.queue_packets, step.after.queue_bytes
    if scales and now is not None and (packets, size) != (None, None):
        old = entries_by_key(client, program.entries(state, now))
        new |= entries_by_key(client, program.entries(state, program.settings_for_queue(now, packets, size)))
    return {key: current[key] for key in {**old, **new} if key in current}, new


def ordered(ports: list[PortStep], entries: list[Step]) -> list[Step]:
    """The steps of a change in their order: a limit of a program is never above the capacity, not even for a moment."""
    return [*(one for one in ports if _grows(one)), *entries, *(one for one in ports if not _grows(one))]


def _grows(step: PortStep) -> bool:
    """Whether the port gets more queues, or its queue more room."""
    return step.after.queues is not None or _room(step.after) > _room(step.before)


def _room(settings: PortChange) -> tuple[int, int]:
    return settings.queue_packets or 0, settings.queue_bytes or UNLIMITED
