# SPDX-License-Identifier: Apache-2.0
"""A change of a port with all that follows from it: the program's settings of the port, the run state, and what takes it back."""

from __future__ import annotations

import asyncio
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.errors import FairlaneError
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, find_port
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import write_event
from fairlane_controller.state.intent import announce
from fairlane_controller.state.run_state import PortState, remember_port
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import changed_arguments, plain_change
from fairlane_controller.typed import typed


@dataclass(frozen=True)
class PortPlan:
    """What a change of a port means."""

    requests: list[Request]
    "In their order; for `history.ops.apply_all`."
    told: list[str]
    "A sentence for each thing that is, or would be, done."
    note: str = ""
    "What cannot be taken back."


async def plan_port(
    context: Context, switch: str, port: int, change: PortChange, packet_bytes: int | None = None
) -> PortPlan:
    """The change, and the program's settings of the port, which follow its queues.

    A limit of the program is never above the capacity, not even for a moment: it goes down before the queue does, and up after it.
    """
    endpoint = context.endpoint(switch)
    async with open_ports(endpoint, context.run, packet_bytes=packet_bytes) as ports:
        before = find_port(await ports.ports(), port, endpoint)
        told = await ports.set_port(port, change, dry_run=True)
    writes, sentences = await _program_change(context, endpoint, port, change)
    request: Request = {"op": "port_put", "switch": switch, "port": port, "change": change.values_by_name}
    if packet_bytes is not None:
        request["packet_bytes"] = packet_bytes
    note = "" if change.queues is None else "queues that were added stay: a switch that runs cannot take one away"
    return PortPlan([request, *writes] if _grows(change, before) else [*writes, request], [*told, *sentences], note)


async def _program_change(
    context: Context, endpoint: Endpoint, port: int, change: PortChange
) -> tuple[list[Request], list[str]]:
    """The write that a change of a port's queues means for its program, and a sentence for each entry; nothing where it means none."""
    of_queues = (change.queue_packets, change.queue_bytes, change.queues, change.scheduler)
    if not context.has_folder or of_queues.count(None) == len(of_queues):
        return [], []
    program = load_program(context.run.program)
    state = (context.run.switch(endpoint.name).port(port) or PortState(port=port)).model_copy(
        update=change.values_by_name
    )
    async with SwitchClient(endpoint) as client:
        if not client.has_pipeline or program.missing_table(client.table_names()) is not None:
            return [], []
        current = await read_entries(client, program.tables)
        wanted = entries_by_key(client, program.entries_for_queues(state, current))
        keys = {*wanted}
        now = program.ports_of(endpoint.name, current).get(port)
        if now is not None and (change.queue_packets is not None or change.queue_bytes is not None):
            new = program.settings_for_queue(now, change.queue_packets, change.queue_bytes)
            keys |= entries_by_key(client, program.entries(state, now)).keys()
            wanted |= entries_by_key(client, program.entries(state, new))
        changes = difference({key: current[key] for key in keys if key in current}, wanted, program.tables)
        schema = client.switch.p4info
    if not changes:
        return [], []
    request = {"op": "table_write", "switch": endpoint.name, "updates": [plain_change(one) for one in changes]}
    return [request], [
        f"{after.table_id} of port {port} = {changed_arguments(before, after, schema, program.units)}"
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


def _tell(folder: Path, switch: str, port: int, change: PortChange, inverse: PortChange) -> None:
    """The event `changed` of the log: who changed what from what to what."""
    before = inverse.values_by_name
    if before == change.values_by_name:
        return
    by, command = _user(), typed()
    was = f" (was {inverse.describe()})" if before else ""
    values = {"by": by, "command": command, "before": before, "after": change.values_by_name}
    why = f"{by} set {change.describe()}{was} by `{command}`"
    write_event(folder, "changed", switch=switch, port=port, **values, why=why)


def _user() -> str:
    """Who asks: the one who called sudo, else the owner of the process."""
    name = os.environ.get("SUDO_USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without an account
        return f"user {os.getuid()}"


async def put_port(context: Context, request: Request) -> list[Request]:
    """`{"op": "port_put", "switch", "port", "change": {…}}`, the names of `PortChange`: the port alone, and what the run state says of it."""
    switch, port, change = str(request["switch"]), int(request["port"]), PortChange.from_values(request["change"])
    endpoint = context.endpoint(switch)
    async with open_ports(endpoint, context.run, packet_bytes=request.get("packet_bytes")) as ports:
        inverse = change.inverse(find_port(await ports.ports(queues=bool(change.weights)), port, endpoint))
        undo = [{**request, "change": inverse.values_by_name}] if inverse.values_by_name else []
        await announce(undo)
        await ports.set_port(port, change)
        if context.has_folder:
            try:
                await asyncio.to_thread(remember_port, context.folder, switch, port, change.values_by_name)
            except FairlaneError as ex:
                text = await _put_back(ports, f"{endpoint} port {port}", port, inverse)
                raise FairlaneError(ex.code, f"{ex.message}; {text}") from None
            _tell(context.folder, switch, port, change, inverse)
    return undo


async def _put_back(ports: PortsClient, where: str, port: int, inverse: PortChange) -> str:
    """Give a port its old values, so that the next attempt begins where this one did; what came of it."""
    try:
        if inverse.values_by_name:
            await ports.set_port(port, inverse)
    except FairlaneError as ex:
        had = inverse.describe() or "nothing that can be taken back"
        return f"{where} keeps the new values, for the old ones ({had}) cannot be put back: {ex.message}"
    return f"{where} has its old values again"


register("port_put", put_port)
