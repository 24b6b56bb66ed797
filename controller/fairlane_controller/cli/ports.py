# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports [set|measure|packets]`: ports and queues over gNMI, or over Thrift on BMv2."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from fairlane_controller.cli.conventions import App, option
from fairlane_controller.cli.model_options import with_options
from fairlane_controller.cli.objects import need_changes
from fairlane_controller.cli.options import (
    RATES_OVER,
    DryRunOption,
    IntervalOption,
    JsonOption,
    PortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.show import measure_command
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import PortRef, packet_bytes_option, rate_bps
from fairlane_controller.config.compare import PortPlan, plan_port
from fairlane_controller.config.model import PortConfig
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, find_port
from fairlane_controller.history import Sites, changing
from fairlane_controller.history.steps import make
from fairlane_controller.live.pictures import take_two
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.typed import typed
from fairlane_controller.units import format_rate, format_size, parse_count, parse_size

ports_app = App(invoke_without_command=True, no_args_is_help=False)
ports_app.command("measure")(measure_command)
PolledPorts = tuple[str, float, list[tuple[PortInfo, PortInfo]]]
"""A switch, the time between its two readings (seconds; 0: there was one), and each port before and now."""
_LIMITS = [name for name, one in PortChange.options.items() if one.unit and name != "rate_bps"]
_READERS = {"bit/s": ("RATE", rate_bps), "bytes": ("SIZE", parse_size)}
"""By unit: what an option takes, and what reads it; all other units are counts."""


@ports_app.callback()
def ports(
    ctx: typer.Context,
    queues: Annotated[bool, typer.Option("--each-queue", "-q", help="Each queue too.")] = False,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every port: link state, rate, scheduler, limits, what waits, leaves and is dropped, and why; or change ports.

    Examples: `fairlane ports`, `fairlane ports --each-queue --json`, `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`
    """
    if ctx.invoked_subcommand is not None:
        return
    found = asyncio.run(poll_ports(resolve(state, switch), queues, interval))
    if as_json:
        print_json([{"switch": name, **now.to_json(), "tx_bps": _tx_bps(before, now, elapsed_s)} for name, elapsed_s, pairs in found for before, now in pairs])  # fmt: skip
    else:
        print_ports(found, queues=queues)


@ports_app.command("packets")
def packets(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show where every packet is: received and copied = transmitted + dropped, by reason + waiting + on the line.

    `missing` is the rest, always 0.

    Examples: `fairlane ports packets`, `fairlane ports packets -s s1 --json`
    """
    targets = resolve(state, switch)
    if targets.run is not None and targets.run.target == "bmv2":
        raise FairlaneError(ErrorCode.BAD_INPUT, "ports packets: BMv2 keeps no accounts of its packets")

    async def read(endpoint: Endpoint) -> dict[str, Any]:
        async with GnmiPorts(endpoint) as client:
            return {"switch": endpoint.name, **await client.accounts()}

    async def read_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(read, targets.endpoints))

    rows = asyncio.run(read_all())
    if as_json:
        print_json(rows)
        return
    cells = [[*(row | {"drops": _reasons(row["drops"])}).values()] for row in rows]
    print_table("packets", [name.replace("_", " ") for name in rows[0]], cells)


def print_ports(found: list[PolledPorts], *, queues: bool) -> None:
    """A line for each port, and with `queues` one for each queue that was used."""
    columns = ("switch", "port", "interface", "link", "rate", "scheduler", "queues", "limits", "waiting", "tx", "dropped", "why")  # fmt: skip
    rows = [
        (name, now.port, now.interface, _link(now), "unlimited" if now.rate_bps == 0 else format_rate(now.rate_bps), now.scheduler, now.queues, _limits(now), now.waiting_packets, format_rate(_tx_bps(before, now, elapsed_s)), now.dropped_packets, _reasons(now.drops))
        for name, elapsed_s, pairs in found
        for before, now in pairs
    ]  # fmt: skip
    print_table("ports", columns, rows)
    if queues:
        used = [
            (name, now.port, q.queue, q.weight, q.waiting_packets, format_size(q.waiting_bytes), q.sent_packets, q.dropped_packets)
            for name, _, pairs in found
            for _, now in pairs
            for q in now.queue_list
            if q.sent_packets or q.waiting_packets or q.dropped_packets or q.weight != 1
        ]  # fmt: skip
        columns = ("switch", "port", "queue", "weight", "waiting", "bytes", "sent", "dropped")
        print_table("queues that had a packet or have a weight", columns, used, empty="none yet")


async def poll_ports(targets: Targets, queues: bool, interval_s: float) -> list[PolledPorts]:
    """Read the ports of all switches twice, `interval_s` seconds apart (0: once), with all that was dropped at their queues."""

    async def read_switch(endpoint: Endpoint) -> PolledPorts:
        async with open_ports(endpoint, targets.run) as client:
            before, began_s = await client.ports(), time.monotonic()
            await asyncio.sleep(interval_s)
            now = await client.ports(queues=queues)
            # A busy machine sleeps longer than it was asked to.
            elapsed_s = time.monotonic() - began_s if interval_s else 0.0
        old = {port.port: port for port in before}
        return endpoint.name, elapsed_s, [(old.get(port.port, port), port) for port in now]

    found = await asyncio.gather(*map(read_switch, targets.endpoints))
    snapshot, _ = await take_two(targets, 0)

    def with_drops(switch: str, port: PortInfo) -> PortInfo:
        """With what the program refused too, as `fairlane status` has it."""
        row = snapshot.port(switch, port.port)
        if row is None or row.dropped_packets is None:
            return port
        return replace(port, dropped_packets=row.dropped_packets, drops=snapshot.queue_drops(row))

    return [(name, s, [(old, with_drops(name, now)) for old, now in pairs]) for name, s, pairs in found]


def _tx_bps(before: PortInfo, now: PortInfo, elapsed_s: float) -> float | None:
    if not elapsed_s or before.sent_bytes is None or now.sent_bytes is None:
        return None
    return 8 * (now.sent_bytes - before.sent_bytes) / elapsed_s


def _link(port: PortInfo) -> str | None:
    if port.oper_up is None:
        return None
    return "up" if port.oper_up else "no carrier" if port.admin_up else "down"


def _limits(port: PortInfo) -> str:
    limits = {name.replace("_", " "): getattr(port, name) for name in _LIMITS}
    return ", ".join(f"{name} {value}" for name, value in limits.items() if value)


def _reasons(drops: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in drops.items())


def _set_options() -> Iterator[inspect.Parameter]:
    """An option for each thing that can be set at a port; its help is that of the configuration file."""
    for name, one in PortChange.options.items():
        flag, doc = f"--{name.removesuffix('_bps').replace('_', '-')}", PortConfig.model_fields[one.key or name].description  # fmt: skip
        if one.unit:
            metavar, _ = _READERS.get(one.unit, (one.unit.upper(), None))
            yield option(name, int, flag, help=doc, metavar=metavar, parser=partial(_read, one.unit, flag))
        elif name == "enabled":
            yield option(name, bool, "--up/--down", help=doc, metavar="")
        else:
            yield option(name, str if one.words else int, flag, help=doc)


def _read(unit: str, flag: str, text: str) -> int:
    """A number, or `none`, which is 0 for the switch."""
    if text.lower() == "none":
        return 0
    return _READERS[unit][1](text, flag) if unit in _READERS else parse_count(text, unit, flag)


@ports_app.command("set")
@with_options([*_set_options()])
def set_(
    port: PortArgument,
    changes: dict[str, Any],
    weight: Annotated[list[str] | None, typer.Option("--queue-weight", help="QUEUE=WEIGHT; repeatable.", metavar="QUEUE=WEIGHT")] = None,
    packet_bytes: Annotated[int | None, packet_bytes_option("BMv2: the frame length by which bit/s become packets/s; default as measured.")] = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Change a port while it runs, all or nothing. A managed port's limit in the program follows its queue's capacity.

    PORT may be an interface too: s1:s1-eth3. The value `none` removes a rate or a limit.

    Examples: `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`, `fairlane ports set s1:3 --scheduler drr --queue-weight 1=3`,
    `fairlane ports set s1:3 --down`
    """
    targets, change = resolve(state, switch, port), PortChange(**changes, weights=dict(map(_weight, weight or ())))
    need_changes("ports set", change.values_by_name)
    switch_name = targets.one("a port is").name
    number, plan = asyncio.run(_set(targets, port, change, packet_bytes, dry_run))
    if as_json:
        done = {"change": change.values_by_name, "done": plan.sentences}
        print_json({"switch": switch_name, "port": number, "dry_run": dry_run, **done})
        return
    say(f"{switch_name}:{number} {'would be set' if dry_run else 'is set'}: {change.describe()}")
    for sentence in (*plan.sentences, plan.note):
        if sentence:
            say(f"  {sentence}")


def _weight(text: str) -> tuple[int, int]:
    queue, _, weight = text.partition("=")
    if not (queue.isdecimal() and weight.isdecimal()):
        raise FairlaneError(ErrorCode.BAD_INPUT, f"--queue-weight {text!r}: must be QUEUE=WEIGHT, e.g. 1=3")
    return int(queue), int(weight)


async def _set(
    targets: Targets, port: PortRef, change: PortChange, packet_bytes: int | None, dry_run: bool
) -> tuple[int, PortPlan]:
    """Plan the change of the port, and make it as one change of the history; returns the port's number and the plan."""
    (endpoint,) = targets.endpoints
    async with open_ports(endpoint, targets.run) as client:
        number = find_port(await client.ports(), port.name, endpoint).port
    if packet_bytes is None:
        packet_bytes = await _measured_bytes(targets, endpoint.name, number)
    run = targets.run or RunState(name=endpoint.name)
    async with Sites(run, (endpoint,)) as sites:
        if dry_run:
            return number, await plan_port(sites, endpoint.name, number, change, packet_bytes)
        async with changing(targets.folder, typed(), targets.run) as recorded:
            plan = await plan_port(sites, endpoint.name, number, change, packet_bytes)
            await make(plan.steps, sites)
            recorded.note = plan.note
    return number, plan


async def _measured_bytes(targets: Targets, switch: str, port: int) -> int | None:
    """The packet length L_D that a running loop has measured at a port of a BMv2, in bytes; None where it is not known."""
    folder, run = targets.loop_folder, targets.run
    if folder is None or run is None or run.target != "bmv2":
        return None
    rows: list[dict[str, Any]] = await ask(folder, {"op": "measure"})
    found = [row.get("l_d_bytes") for row in rows if (row["switch"], row["port"]) == (switch, port)]
    return round(found[0]["value"]) if found and found[0] else None
