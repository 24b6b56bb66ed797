# SPDX-License-Identifier: Apache-2.0
"""A change of a port with all that follows from it: the program's settings of the port, the run state, and what takes it back."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlane_controller.errors import FairlaneError
from fairlane_controller.gnmi.embedded import describe
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, find_port
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.history.standard import apply_table_write
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.events import write_event
from fairlane_controller.state.intent import announce, taking_back
from fairlane_controller.state.run_state import PortState, RunState, remember_port
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.difference import difference, entries_by_key, read_entries
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import changed_arguments, plain_change
from fairlane_controller.typed import typed

OP = "port_set"
"""Request of the history: `{"op": "port_set", "switch", "port", "change": {…}}`, the names of `PortChange`."""


@dataclass
class Changed:
    """What was done, or would be."""

    told: list[str] = field(default_factory=lambda: list[str]())
    undo: list[Request] = field(default_factory=lambda: list[Request]())
    note: str = ""
    "What cannot be taken back."


async def change_port(
    endpoint: Endpoint,
    run: RunState | None,
    port: int,
    change: PortChange,
    *,
    dry_run: bool = False,
    packet_bytes: int | None = None,
) -> Changed:
    """Make a change, all or nothing. With a run state the program's settings of the port follow its queues.

    A limit of the program is never above the capacity, not even for a moment: it goes down before the queue does, and up after it.
    """
    async with open_ports(endpoint, run, packet_bytes=packet_bytes) as ports:
        before = find_port(await ports.ports(queues=bool(change.weights)), port, endpoint)
        requests, sentences = await _program_change(endpoint, run, port, change)
        if dry_run:
            return Changed([*await ports.set_port(port, change, dry_run=True), *sentences])
        inverse, grows, undo = change.inverse(before), _grows(change, before), list[Request]()
        back: list[Request] = []
        if inverse.values_by_name:
            back = [{"op": OP, "switch": endpoint.name, "port": port, "change": inverse.values_by_name}]
            if packet_bytes is not None:
                back[0]["packet_bytes"] = packet_bytes
        if not grows:
            undo = await _write(run, requests)
        await announce(back)
        try:
            done = Changed([*await ports.set_port(port, change), *sentences], back)
        except FairlaneError:
            with taking_back():
                await _write(run, undo)
            raise
        if grows:
            try:
                undo = await _write(run, requests)
            except FairlaneError:
                await ports.set_port(port, inverse)
                raise
        if run is not None:
            try:
                await asyncio.to_thread(remember_port, run.folder, endpoint.name, port, change.values_by_name)
            except FairlaneError as ex:
                raise await _put_back(ports, run, f"{endpoint} port {port}", port, inverse, undo, ex, grows) from None
            _tell(run, endpoint.name, port, change, inverse)
    if change.queues is not None:
        done.note = "queues that were added stay: a switch that runs cannot take one away"
    return done


async def _program_change(
    endpoint: Endpoint, run: RunState | None, port: int, change: PortChange
) -> tuple[list[Request], list[str]]:
    """The write that a change of a port's queues means for its program, and a sentence for each entry; nothing where it means none."""
    of_queues = (change.queue_packets, change.queue_bytes, change.queues, change.scheduler)
    if run is None or of_queues.count(None) == len(of_queues):
        return [], []
    program = load_program(run.program)
    state = (run.switch(endpoint.name).port(port) or PortState(port=port)).model_copy(update=change.values_by_name)
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


async def _write(run: RunState | None, requests: Sequence[Request]) -> list[Request]:
    """Write entries; returns what takes them back."""
    if run is None:
        return []
    return [back for one in requests for back in await apply_table_write(Context(run.folder, run), one)]


async def _put_back(
    ports: PortsClient,
    run: RunState,
    where: str,
    port: int,
    inverse: PortChange,
    undo: Sequence[Request],
    problem: FairlaneError,
    grew: bool,
) -> FairlaneError:
    """The problem, after the switch has its old values again: so the next attempt begins where this one did."""
    try:
        with taking_back():
            if grew:
                await _write(run, undo)
            if inverse.values_by_name:
                await ports.set_port(port, inverse)
            if not grew:
                await _write(run, undo)
    except FairlaneError as second:
        had = describe(inverse) or "nothing that can be taken back"
        text = f"{where} keeps the new values, for the old ones ({had}) cannot be put back: {second.message}"
        return FairlaneError(problem.code, f"{problem.message}; {text}")
    return FairlaneError(problem.code, f"{problem.message}; {where} has its old values again")


def _tell(run: RunState, switch: str, port: int, change: PortChange, inverse: PortChange) -> None:
    """The event `changed` of the log: who changed what from what to what."""
    before = inverse.values_by_name
    if before == change.values_by_name:
        return
    by, command = _user(), typed()
    was = f" (was {describe(inverse)})" if before else ""
    values = {"by": by, "command": command, "before": before, "after": change.values_by_name}
    why = f"{by} set {describe(change)}{was} by `{command}`"
    write_event(run.folder, "changed", switch=switch, port=port, **values, why=why)


def _user() -> str:
    """Who asks: the one who called sudo, else the owner of the process."""
    name = os.environ.get("SUDO_USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without an account
        return f"user {os.getuid()}"


async def apply_port_set(context: Context, request: Request) -> list[Request]:
    """The history's side of `port_set`."""
    endpoint = endpoint_of(context.run.switch(str(request["switch"])))
    change = PortChange.from_values(request["change"])
    length = request.get("packet_bytes")
    packet_bytes = None if length is None else int(length)
    done = await change_port(endpoint, context.run, int(request["port"]), change, packet_bytes=packet_bytes)
    return done.undo


register(OP, apply_port_set)
