# SPDX-License-Identifier: Apache-2.0
"""What a configuration says beside what the switches hold: per entry missing, different or extra; reads only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from finsy import P4Schema, P4TableEntry

from fairlane_controller.config.model import FairlaneConfig, PortConfig
from fairlane_controller.config.ports import differing, read_infos, wanted
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.control import ask, loop_runs
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.program.registry import check_program, load_program
from fairlane_controller.programs.gfr import names as gfr_program
from fairlane_controller.programs.gfr.deploy import Plan, make_plan
from fairlane_controller.programs.gfr.entries import Active, port_entries
from fairlane_controller.programs.gfr.line import at_capacity
from fairlane_controller.programs.gfr.paths import Place, vcs_of
from fairlane_controller.programs.gfr.setup import is_gfr
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.policies import PortLimit, Scheme, read_limits, read_policies
from fairlane_controller.programs.qthresh.wanted import (
    TABLE_CLASS,
    class_entries,
    limit_of_port,
    managed_places,
    policy_entry,
    settings_said,
)
from fairlane_controller.state.loop_state import PolicyState
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.updates import Plain, action_text, match_text, plain_updates
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
    """One switch: what differs, and the updates that bring it to what the file says."""

    switch: str
    rows: list[Row] = field(default_factory=lambda: list[Row]())
    updates: list[Plain] = field(default_factory=lambda: list[Plain]())
    settings: dict[str, PolicyState] = field(default_factory=lambda: dict[str, PolicyState]())
    "By `port/class`."
    ports: dict[int, Plain] = field(default_factory=lambda: dict[int, Plain]())
    "Settings of ports that differ, with the file's keys, by port."
    limits_before: list[Plain] = field(default_factory=lambda: list[Plain]())
    "Limits of ports whose queue changes, as they are: a change of the queue takes its limit along."
    schema: P4Schema | None = None


@dataclass
class Comparison:
    """All switches of a topology beside a configuration."""

    switches: list[SwitchDiff]
    plan: Plan | None = None
    "GFR: what would be in force."
    loop: Plain | None = None
    "Options that the running loop should have; None: it has them, or there is no loop, or the file says nothing."
    forgotten: bool = False
    "GFR: the switches hold it, but what is remembered is another configuration."

    @property
    def rows(self) -> list[Row]:
        """Everything that is not as the file says."""
        return [row for one in self.switches for row in one.rows]

    @property
    def same(self) -> bool:
        """Whether there is nothing to do."""
        return not self.rows


async def compare(config: FairlaneConfig, run: RunState) -> Comparison:
    """Read all switches and compare; the configuration was checked on `run`. Raises what a switch answers."""
    store = LoopStore(run.folder)
    plan: Plan | None = None
    gfr_store = GfrStore(run.folder) if is_gfr(run) else None
    active, lines = None, dict[Place, float]()
    if gfr_store is not None:
        part = config.gfr_part(gfr_store.state.config)
        if part is not None:
            plan = make_plan(part, gfr_store.state, time.time(), run, "the configuration")
            active, lines = await _of_gfr_loop(run)

    async def one(name: str) -> SwitchDiff:
        found = SwitchDiff(name)
        await _ports(found, config, run)
        async with SwitchClient(endpoint_of(run.switch(name))) as client:
            if plan is not None and name in plan.switches:
                held = await read_entries(client, gfr_program.TABLES)
                entries = [*_on_measured_lines(plan, name, active, lines), *plan.entries(name, active)]
                _entries(client, found, held, entries_by_key(client, entries).values(), by_gfr=True)
            elif run.program not in ("qthresh", "gfr"):
                await _program(client, found, config, run)
            elif gfr_store is None:
                await _qthresh(client, found, config, run, store)
        return found

    switches = list(await asyncio.gather(*(one(switch.name) for switch in run.switches)))
    loop, row = await _loop(config, run)
    if row is not None:
        switches.append(SwitchDiff("loop", [row]))
    forgotten = plan is not None and gfr_store is not None and plan.state.config != gfr_store.state.config
    return Comparison(switches, plan, loop, forgotten)


async def _loop(config: FairlaneConfig, run: RunState) -> tuple[Plain | None, Row | None]:
    """What the file says of the running loop, beside its options."""
    if config.loop is None or not loop_runs(run.folder):
        return None, None
    held: Plain = await ask(run.folder, {"op": "loop_options"})
    wanted = {**held, **config.loop.model_dump(mode="json", exclude_unset=True)}
    names = [name for name in wanted if wanted[name] != held.get(name)]
    if not names:
        return None, None
    words = [", ".join(f"{name}={_word(data.get(name))}" for name in names) for data in (wanted, held)]
    return wanted, Row("loop", "options", "", DIFFERENT, *words)


async def _ports(found: SwitchDiff, config: FairlaneConfig, run: RunState) -> None:
    """Settings of ports that the file says; the switch is asked for them only when it says some."""
    ports = [port for port in config.ports or () if port.switch == found.switch and wanted(port)]
    if not ports:
        return
    infos = await read_infos(run, found.switch)
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
    return format_rate(value) if key == "rate" and value else _word(value)


async def _of_gfr_loop(run: RunState) -> tuple[dict[Place, list[str]] | None, dict[Place, float]]:
    """Active VCs of each port, and what its line carries, as a running loop has them; without one all VCs are active."""
    if not loop_runs(run.folder):
        return None, {}
    status = await ask(run.folder, {"op": "status"})
    ports = {(agent["switch"], port["port"]): port for agent in status for port in agent["ports"]}
    return {at: port["active"] for at, port in ports.items()}, {at: port["capacity_bps"] for at, port in ports.items()}


def _on_measured_lines(plan: Plan, switch: str, active: Active | None, lines: dict[Place, float]) -> list[P4TableEntry]:
    """Entries of ports whose configuration lets the loop follow the line (`follow_capacity`), as the loop has them."""
    made: list[P4TableEntry] = []
    crossing = vcs_of(plan.state.config, plan.run)
    for port in plan.state.config.ports:
        bps = lines.get(port.place, port.capacity)
        if port.switch != switch or not port.follow_capacity or bps == port.capacity:
            continue
        vcs = crossing[port.place]
        on_line = at_capacity(port, bps, sum(vc.mcr for vc in vcs))
        made += port_entries(plan.state.allocation, on_line, vcs, active.get(port.place) if active else None)
    return made


# ---- the programs ----------------------------------------------------------------------------------------------------


async def _program(client: SwitchClient, found: SwitchDiff, config: FairlaneConfig, run: RunState) -> None:
    program = load_program(run.program)
    part = config.part_of(program)
    if part.ports is None and part.sections is None:
        return
    check_program(program, client.table_names())
    current = await read_entries(client, program.tables)
    _entries(client, found, current, program.plan(part, run, {}).wanted(found.switch, current).entries)


async def _qthresh(
    client: SwitchClient, found: SwitchDiff, config: FairlaneConfig, run: RunState, store: LoopStore
) -> None:
    limits = await read_limits(client)
    _limits(client, found, config.ports or (), limits, run)
    if config.policies is not None:
        await _policies(client, found, config, run, store, limits)
    if config.classes is not None:
        held = await client.read_table(TABLE_CLASS)
        _entries(client, found, _by_key(held), class_entries(config, found.switch))


def _limits(
    client: SwitchClient, found: SwitchDiff, ports: Iterable[PortConfig], held: dict[int, PortLimit], run: RunState
) -> None:
    """Limits of the ports that the file speaks of; of others nothing is said."""
    entries: list[P4TableEntry] = []
    forced: list[tuple[PortLimit, PortLimit]] = []
    there: list[P4TableEntry] = []
    for port in ports:
        if port.switch != found.switch or port.managed is None:
            continue
        old = held.get(port.port)
        if old is not None:
            there.append(old.entry)
        moved = {"queue_packets", "queue_bytes"} & found.ports.get(port.port, {}).keys()
        limit = limit_of_port(port, run) if port.managed else None
        if limit is not None:
            if old is not None:  # what the file leaves out stays
                if port.limit_packets is None and port.queue_packets is None:
                    limit = replace(limit, max_packets=old.max_packets)
                if port.limit_bytes is None:
                    limit = replace(limit, max_bytes=old.max_bytes)
                if port.report_period is None:
                    limit = replace(limit, report_period_us=old.report_period_us)
            entries.append(limit.entry)
            if old is not None and moved:
                forced.append((old, limit))
    _entries(client, found, _by_key([client.canonical(entry) for entry in there]), entries)
    schema = client.switch.p4info
    for old, new in forced:
        found.limits_before += plain_updates([~old.entry], schema)
        if old == new:  # no difference now, but the change of the queue would make one
            found.updates += plain_updates([~new.entry], schema)


async def _policies(
    client: SwitchClient,
    found: SwitchDiff,
    config: FairlaneConfig,
    run: RunState,
    store: LoopStore,
    limits: dict[int, PortLimit],
) -> None:
    held = await read_policies(client)
    managed = managed_places(config, run)
    entries: list[P4TableEntry] = []
    said: set[tuple[int, int]] = set()
    for one in config.policies or ():
        if one.switch != found.switch:
            continue
        key = (one.port, one.traffic_class)
        said.add(key)
        limit = managed.get((one.switch, one.port)) or limits.get(one.port)
        before = store.policy(one.switch, *key)
        new = policy_entry(one, held.get(key), limit, before)
        if new.settings is None and key not in held:
            continue  # drop-tail is what is in force without an entry
        entries.append(new.policy.entry)
        if new.settings is not None:
            _settings(found, key, new.settings, before)
    # Drop-tail without a word in the file is what an entry that nobody wrote would be.
    rest = [policy for key, policy in held.items() if key not in said and policy.scheme is Scheme.DROP_TAIL]
    _entries(
        client, found, _by_key(await client.read_table(program.TABLE_POLICY)), [*entries, *(p.entry for p in rest)]
    )


def _settings(found: SwitchDiff, key: tuple[int, int], wanted: PolicyState, held: PolicyState) -> None:
    new, old = settings_said(wanted), settings_said(held)
    names = [name for name in {**new, **old} if new.get(name) != old.get(name) and name != "weight"]
    if not names:
        if wanted.weight != held.weight:  # the entry says it too, and is what counts
            found.settings[f"{key[0]}/{key[1]}"] = wanted
        return
    found.settings[f"{key[0]}/{key[1]}"] = wanted

    def words(data: dict[str, Any]) -> str:
        return ", ".join(f"{name}={_word(data.get(name))}" for name in names)

    place = f"port={key[0]} class={key[1]}"
    found.rows.append(Row(found.switch, "settings", place, DIFFERENT, words(new), words(old)))


def _word(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---- entries ---------------------------------------------------------------------------------------------------------


def _by_key(entries: Iterable[P4TableEntry]) -> dict[str, P4TableEntry]:
    return {entry_key(entry): entry for entry in entries if not entry.is_const}


def _entries(
    client: SwitchClient,
    found: SwitchDiff,
    held: dict[str, P4TableEntry],
    wanted: Iterable[P4TableEntry],
    *,
    by_gfr: bool = False,
) -> None:
    """Rows and updates that lead from `held` to exactly `wanted`; GFR's own updates are made when it is applied."""
    schema = found.schema = client.switch.p4info
    made = {entry_key(entry): entry for entry in map(client.canonical, wanted)}

    def row(status: str, new: P4TableEntry | None, old: P4TableEntry | None) -> None:
        shown = new or old
        assert shown is not None
        place = match_text(shown, schema)
        texts = [action_text(entry, schema) if entry is not None else "" for entry in (new, old)]
        found.rows.append(Row(found.switch, shown.table_id, place, status, *texts))

    for change in difference(held, made, gfr_program.TABLES if by_gfr else ()):
        status = MISSING if change.before is None else EXTRA if change.after is None else DIFFERENT
        row(status, change.after, change.before)
        found.updates.append(change.to_json())
