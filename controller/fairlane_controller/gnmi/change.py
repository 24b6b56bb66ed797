# SPDX-License-Identifier: Apache-2.0
"""A change of a port with all that follows from it: the program's port limit, the run state, and what takes it back."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import describe
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortsClient, find_port
from fairlane_controller.history.ops import Context, Request, register
from fairlane_controller.history.standard import apply_table_write
from fairlane_controller.programs.gfr.deploy import is_gfr
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.policies import PortLimit, read_limits
from fairlane_controller.state.events import EVENTS_FILE, EventLog
from fairlane_controller.state.run_state import TOPOLOGY, RunState
from fairlane_controller.state.store import Store
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.setup import endpoint_of
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.typed import typed

OP = "port_set"
"""Request of the history: `{"op": "port_set", "switch", "port", "change": {…}}`, the names of `PortChange`."""
_IN_STATE = (
    "rate_bps",
    "queue_packets",
    "queue_bytes",
    "queue_cells",
    "port_cells",
    "queues",
    "scheduler",
    "link_layer",
)


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
    """Make a change, all or nothing. With a run state a managed port's limit in the program follows its queue's capacity.

    The limit is never above the capacity, not even for a moment: it goes down before the queue does, and up after it.
    """
    async with open_ports(endpoint, run, packet_bytes=packet_bytes) as ports:
        before = find_port(await ports.ports(queues=bool(change.weights)), port, endpoint)
        limits = await _limits(endpoint, run, port, change)
        done = Changed()
        if dry_run:
            done.told = await ports.set_port(port, change, dry_run=True)
            done.told += [_limit_told(limits[1])] if limits else []
            return done
        lower = limits is not None and limits[1].max_packets <= limits[0].max_packets
        if limits is not None and lower:
            await _write_limit(run, endpoint, limits[1])
        try:
            done.told = await ports.set_port(port, change)
        except FairlaneError:
            if limits is not None and lower:
                await _write_limit(run, endpoint, limits[0])
            raise
        if limits is not None:
            if not lower:
                await _raise_limit(ports, run, endpoint, limits, change.inverse(before))
            done.told.append(_limit_told(limits[1]))
        inverse = change.inverse(before)
        if run is not None:
            try:
                remember(run.folder, endpoint.name, port, change)
            except FairlaneError as ex:
                raise await _put_back(ports, run, endpoint, port, limits, inverse, ex) from None
            _tell(run, endpoint.name, port, change, inverse)
    if inverse.named:
        done.undo = [{"op": OP, "switch": endpoint.name, "port": port, "change": inverse.named}]
        if packet_bytes is not None:
            done.undo[0]["packet_bytes"] = packet_bytes
    if change.queues is not None:
        done.note = "queues that were added stay: a switch that runs cannot take one away"
    return done


async def _limits(
    endpoint: Endpoint, run: RunState | None, port: int, change: PortChange
) -> tuple[PortLimit, PortLimit] | None:
    """The limit of a managed port as it is and as it must be; None when nothing is to be done."""
    if run is None or is_gfr(run) or (change.queue_packets is None and change.queue_bytes is None):
        return None
    try:
        async with SwitchClient(endpoint) as client:
            now = (await read_limits(client)).get(port)
    except FairlaneError as ex:
        if ex.code in (ErrorCode.WRONG_PROGRAM, ErrorCode.NO_PIPELINE):
            return None
        raise
    if now is None:
        return None
    packets = now.max_packets if change.queue_packets is None else change.queue_packets
    size = now.max_bytes if change.queue_bytes is None else change.queue_bytes or UNLIMITED
    new = PortLimit(port, packets, size, now.report_period_us)
    return None if new == now else (now, new)


def _limit_told(limit: PortLimit) -> str:
    size = "" if limit.max_bytes == UNLIMITED else f", {limit.max_bytes} bytes"
    return f"port_limit of port {limit.port} = {limit.max_packets} packets{size}"


async def _write_limit(run: RunState | None, endpoint: Endpoint, limit: PortLimit) -> None:
    if run is None:
        return
    update = {
        "update": "modify",
        "table": program.TABLE_PORT_LIMIT,
        "match": {"egress_port": limit.port},
        "action": program.ACTION_SET_PORT_LIMIT,
        "args": {
            "max_packets": limit.max_packets,
            "max_bytes": limit.max_bytes,
            "report_period_us": limit.report_period_us,
        },
    }
    request = {"op": "table_write", "switch": endpoint.name, "updates": [update]}
    await apply_table_write(Context(run.folder, run), request)


async def _raise_limit(
    ports: PortsClient,
    run: RunState | None,
    endpoint: Endpoint,
    limits: tuple[PortLimit, PortLimit],
    inverse: PortChange,
) -> None:
    """The queue is larger already: it gets its old size again when the limit is refused."""
    try:
        await _write_limit(run, endpoint, limits[1])
    except FairlaneError:
        await ports.set_port(limits[0].port, inverse)
        raise


async def _put_back(
    ports: PortsClient,
    run: RunState,
    endpoint: Endpoint,
    port: int,
    limits: tuple[PortLimit, PortLimit] | None,
    inverse: PortChange,
    problem: FairlaneError,
) -> FairlaneError:
    """The problem, after the switch has its old values again: so the next attempt begins where this one did."""
    grows = limits is not None and limits[0].max_packets > limits[1].max_packets
    try:
        if limits is not None and not grows:
            await _write_limit(run, endpoint, limits[0])
        if inverse.named:
            await ports.set_port(port, inverse)
        if limits is not None and grows:
            await _write_limit(run, endpoint, limits[0])
    except FairlaneError as second:
        had = describe(inverse) or "nothing that can be taken back"
        text = f"{endpoint} port {port} keeps the new values, for the old ones ({had}) cannot be put back: {second.message}"
        return FairlaneError(problem.code, f"{problem.message}; {text}")
    return FairlaneError(problem.code, f"{problem.message}; {endpoint} port {port} has its old values again")


def _tell(run: RunState, switch: str, port: int, change: PortChange, inverse: PortChange) -> None:
    """The event `changed` of the log: who changed what from what to what."""
    before = inverse.named
    if before == change.named:
        return
    by, command = _user(), typed()
    was = f" (was {describe(inverse)})" if before else ""
    log = EventLog(run.folder / EVENTS_FILE)
    try:
        log.write(
            "changed",
            switch=switch,
            port=port,
            by=by,
            command=command,
            before=before,
            after=change.named,
            why=f"{by} set {describe(change)}{was} by `{command}`",
        )
    finally:
        log.close()


def _user() -> str:
    """Who asks: the one who called sudo, else the owner of the process."""
    name = os.environ.get("SUDO_USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without an account
        return f"user {os.getuid()}"


def remember(folder: Path, switch: str, port: int, change: PortChange) -> None:
    """Put the new values into the topology's document; what else stands there stays. Raises BAD_FILE."""
    values = {name: value for name, value in change.named.items() if name in _IN_STATE}
    if not values:
        return

    def put(data: dict[str, Any]) -> dict[str, Any]:
        for one in cast("list[dict[str, Any]]", data.get("switches") or []):
            for entry in cast("list[dict[str, Any]]", one.get("ports") or []):
                if (one.get("name"), entry.get("port")) == (switch, port):
                    entry.update(values)
        return data

    with Store(folder) as store:
        store.update(TOPOLOGY, put)


async def apply_port_set(context: Context, request: Request) -> list[Request]:
    """The history's side of `port_set`."""
    endpoint = endpoint_of(context.run.switch(str(request["switch"])))
    change = PortChange.of(request["change"])
    length = request.get("packet_bytes")
    packet_bytes = None if length is None else int(length)
    done = await change_port(endpoint, context.run, int(request["port"]), change, packet_bytes=packet_bytes)
    return done.undo


def port_of(ports: list[PortInfo], text: str, where: object) -> PortInfo:
    """A port by its number or its interface; UNKNOWN_NAME with those that there are."""
    if text.isdecimal():
        return find_port(ports, int(text), where)
    for one in ports:
        if one.interface == text:
            return one
    there = ", ".join(f"{one.port} ({one.interface})" if one.interface else str(one.port) for one in ports) or "none"
    raise FairlaneError(ErrorCode.UNKNOWN_NAME, f"{where} has no port {text!r}; it has {there}")


register(OP, apply_port_set)
