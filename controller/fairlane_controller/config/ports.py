# SPDX-License-Identifier: Apache-2.0
"""Settings of ports that P4Runtime cannot set (rate, queue, scheduler, state): those of a file, of the switch, and what a program makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlane_controller.config.model import PortConfig
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortChange, PortInfo, find_port
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import PortStep, Step
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import changed_arguments

Plain = dict[str, Any]

NAMES = {option.key or name: name for name, option in PortChange.options.items()}
"""Keys of a port in the file that are such settings, and their names in `PortChange`."""

# ---- a file's settings and the switch's ------------------------------------------------------------------------------


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
            for key in NAMES
            if (value := current_value(info, key)) is not None and (value or not _is_limit(key))
        }
        for number, info in infos.items()
    }


def _is_limit(key: str) -> bool:
    return key.endswith(("_packets", "_bytes", "_cells"))


def current_value(info: PortInfo, key: str) -> Any:
    """The current setting of the switch, in the form of the file; None when it is not known."""
    if key == "enabled":
        return info.admin_up
    value = getattr(info, NAMES[key])
    return 0 if value is None and _is_limit(key) and key != "queue_packets" else value


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


async def plan_port(
    sites: Sites, switch: str, port: int, change: PortChange, packet_bytes: int | None = None
) -> PortPlan:
    """A change of a port, and of the program's entries of the port, which follow its queues.

    Args:
        sites: where the change is made.
        switch: name of the switch.
        port: number of the port.
        change: its new settings.
        packet_bytes: on BMv2 the frame length by which bit/s become packets/s.

    Raises:
        FairlaneError: UNKNOWN_NAME for the port, or what the target refuses.
    """
    async with sites.ports(switch, packet_bytes) as ports:
        found = await ports.ports(queues=bool(change.weights))
        before = change.inverse(find_port(found, port, sites.endpoint(switch)))
        sentences = await ports.set_port(port, change, dry_run=True)
    step = PortStep(switch, port, before, change, packet_bytes)
    entries: list[Step] = []
    program = load_program(sites.run.program) if sites.run is not None and sites.folder is not None else None
    if program is not None and concerns_entries(change):
        client = await sites.reader(switch)
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
    state = (run.switch(step.switch).port(step.port) if run is not None else None) or PortState(port=step.port)
    state = state.model_copy(update=step.after.values_by_name)
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
