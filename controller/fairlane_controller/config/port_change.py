# SPDX-License-Identifier: Apache-2.0
"""A change of a port with all that follows from it: the program's entries of the port."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane_controller.gnmi.ports import PortChange, PortInfo, find_port
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import PortStep, Step
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import PortState
from fairlane_controller.switch.changeset import ChangeSet
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import changed_arguments


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
    """The change, and the program's entries of the port, which follow its queues.

    A limit of the program is never above the capacity, not even for a moment: it goes down before the queue does, and up after it.
    """
    endpoint = sites.endpoint(switch)
    async with sites.ports(switch, packet_bytes) as ports:
        before = find_port(await ports.ports(queues=bool(change.weights)), port, endpoint)
        sentences = await ports.set_port(port, change, dry_run=True)
    step = PortStep(switch, port, change.inverse(before), change, packet_bytes)
    entries, of_entries = await _program_change(sites, switch, port, change)
    note = "" if change.queues is None else "queues that were added stay: a switch that runs cannot take one away"
    return PortPlan([step, *entries] if _grows(change, before) else [*entries, step], [*sentences, *of_entries], note)


async def _program_change(sites: Sites, switch: str, port: int, change: PortChange) -> tuple[list[Step], list[str]]:
    """What a change of a port's queues means for its program, and a sentence for each entry; nothing where it means none."""
    of_queues = (change.queue_packets, change.queue_bytes, change.queues, change.scheduler)
    if sites.folder is None or sites.run is None or of_queues.count(None) == len(of_queues):
        return [], []
    program = load_program(sites.run.program)
    state = (sites.run.switch(switch).port(port) or PortState(port=port)).model_copy(update=change.values_by_name)
    client = await sites.reader(switch)
    if not client.has_pipeline or program.missing_table(client.table_names()) is not None:
        return [], []
    current = await read_entries(client, program.tables)
    wanted = entries_by_key(client, program.entries_for_queues(state, current))
    keys = {*wanted}
    now = program.ports_of(switch, current).get(port)
    if now is not None and (change.queue_packets is not None or change.queue_bytes is not None):
        new = program.settings_for_queue(now, change.queue_packets, change.queue_bytes)
        keys |= entries_by_key(client, program.entries(state, now)).keys()
        wanted |= entries_by_key(client, program.entries(state, new))
    changes = difference({key: current[key] for key in keys if key in current}, wanted, program.tables)
    if not changes:
        return [], []
    return [ChangeSet({switch: changes})], [
        f"{after.table_id} of port {port} = {changed_arguments(before, after, client.switch.p4info, program.units)}"
        for before, after in (one.entries for one in changes)
        if after is not None
    ]


def _grows(change: PortChange, before: PortInfo) -> bool:
    """Whether the port gets more queues, or its queue more room."""
    if change.queues is not None:
        return True
    packets, size = before.queue_packets or 0, before.queue_bytes or UNLIMITED
    new_packets = packets if change.queue_packets is None else change.queue_packets
    return (new_packets, size if change.queue_bytes is None else change.queue_bytes or UNLIMITED) > (packets, size)
