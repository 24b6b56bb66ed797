# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports [show|set|measure|packets]`, and the verbs `set_queue_rate` and `set_queue_depth`."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, cast

import typer

from fairlane_controller import history
from fairlane_controller.cli.complete import complete_port
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.measuring import measure_command
from fairlane_controller.cli.model_options import option, with_options
from fairlane_controller.cli.options import (
    RATES_OVER,
    DryRunOption,
    IntervalOption,
    JsonOption,
    PortArgument,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import console, print_json, print_table
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import (
    PortRef,
    cells_of,
    packet_bytes_option,
    packets_of,
    parse_port,
    rate_bps,
)
from fairlane_controller.config.compare import PortPlan, plan_port
from fairlane_controller.config.model import PortConfig
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.accounts import PacketAccounts
from fairlane_controller.gnmi.embedded import GnmiPorts
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, port_of
from fairlane_controller.history.steps import make
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.pictures import take_two
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.typed import typed
from fairlane_controller.units import counted, format_rate, format_size, parse_count, parse_rate, parse_size

ports_app = App(
    invoke_without_command=True,
    no_args_is_help=False,
)
PolledPorts = tuple[str, float, list[tuple[PortInfo, PortInfo]]]
"""A switch, the time between two looks (0: there was one), and each port before and now."""
_NO_LIMIT = ("none", "unlimited")
_WEIGHT = re.compile(r"^(\d+)=(\d+)$")
_PPS = re.compile(r"^(\d+)(?:pps|packets/s)$")

QueuesOption = Annotated[bool, typer.Option("--each-queue", "-q", help="Each queue too.")]
EveryPortArgument = Annotated[
    PortRef | None,
    typer.Argument(
        help="Default every port of the switch.", metavar="PORT", parser=parse_port, autocompletion=complete_port
    ),
]
PacketBytesOption = Annotated[
    int | None, packet_bytes_option("BMv2: the frame length by which bit/s become packets/s; default as measured.")
]


@ports_app.callback()
def ports(
    ctx: typer.Context,
    queues: QueuesOption = False,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show ports and queues, or change them: rate, scheduler, capacity, link state.

    Examples: `fairlane ports`, `fairlane ports --each-queue --json`, `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`
    """
    if ctx.invoked_subcommand is None:
        show(queues, interval, state, switch, as_json)


@ports_app.command("show")
def show(
    queues: QueuesOption = False,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every port: link state, rate, scheduler, capacity, what waits, what leaves, what is dropped and why."""
    targets = resolve(state, switch)
    found = asyncio.run(poll_ports(targets, queues, interval))
    if as_json:
        print_json(
            [
                {"switch": name, **now.to_json(), "tx_bps": _tx_bps(before, now, elapsed_s)}
                for name, elapsed_s, pairs in found
                for before, now in pairs
            ]
        )
        return
    print_ports(found, queues=queues)


ports_app.command("measure")(measure_command)


@ports_app.command("packets")
def packets(state: StateOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    """Show where every packet is: received and copied = transmitted + dropped, by reason + waiting + being sent.

    `missing` is what is left over, always 0.

    Examples: `fairlane ports packets`, `fairlane ports packets -s s1 --json`
    """
    targets = resolve(state, switch)
    if targets.run is not None and targets.run.target == "bmv2":
        raise FairlaneError(ErrorCode.BAD_INPUT, "ports packets: BMv2 keeps no accounts of its packets")

    async def read_accounts(endpoint: Endpoint) -> tuple[str, PacketAccounts]:
        async with GnmiPorts(endpoint) as client:
            return endpoint.name, await client.accounts()

    async def all_() -> list[tuple[str, PacketAccounts]]:
        return list(await asyncio.gather(*(read_accounts(endpoint) for endpoint in targets.endpoints)))

    found = asyncio.run(all_())
    if as_json:
        print_json([{"switch": name, **accounts.to_json()} for name, accounts in found])
        return
    columns = (
        "switch",
        "received",
        "copied",
        "transmitted",
        "packet-ins",
        "dropped",
        "why",
        "waiting",
        "on the line",
        "missing",
    )
    rows = [
        (name, one.received, one.copied, one.transmitted, one.packet_ins, one.dropped, ", ".join(f"{reason} {count}" for reason, count in sorted(one.drops.items())), one.waiting, one.on_line, one.missing)
        for name, one in found
    ]  # fmt: skip
    print_table(
        "packets: received + copied = transmitted + dropped + waiting + on the line", columns, rows, empty="no switch"
    )


def print_ports(found: list[PolledPorts], *, queues: bool) -> None:
    """A line a port, and with `queues` one a queue that was used."""
    columns = (
        "switch",
        "port",
        "interface",
        "link",
        "rate",
        "scheduler",
        "capacity",
        "waiting",
        "tx",
        "dropped",
        "why",
    )
    rows = [
        (name, now.port, now.interface, _link(now), _rate(now), _scheduler(now), _capacity(now), _waiting(now), format_rate(_tx_bps(before, now, elapsed_s)), now.dropped_packets, ", ".join(f"{reason} {count}" for reason, count in now.drops.items()))
        for name, elapsed_s, pairs in found
        for before, now in pairs
    ]  # fmt: skip
    print_table("ports", columns, rows, empty="no switch has one")
    if queues:
        _print_queues(found)


def _print_queues(found: list[PolledPorts]) -> None:
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
    async def read_switch(endpoint: Endpoint) -> PolledPorts:
        async with open_ports(endpoint, targets.run) as client:
            before, began_s = await client.ports(), time.monotonic()
            if interval_s:
                await asyncio.sleep(interval_s)
            now = await client.ports(queues=queues)
            elapsed_s = (
                time.monotonic() - began_s if interval_s else 0.0
            )  # a busy machine looks again later than it was to
        old = {port.port: port for port in before}
        return endpoint.name, elapsed_s, [(old.get(port.port, port), port) for port in now]

    found = await asyncio.gather(*(read_switch(endpoint) for endpoint in targets.endpoints))
    snapshot, _ = await take_two(targets, 0)
    return [(name, s, [(old, _with_drops(snapshot, name, now)) for old, now in pairs]) for name, s, pairs in found]


def _with_drops(snapshot: Snapshot, switch: str, port: PortInfo) -> PortInfo:
    """The port with all that was dropped at its queue, as `fairlane status` has it: what its program refused too."""
    row = snapshot.port(switch, port.port)
    if row is None or row.dropped_packets is None:
        return port
    return replace(port, dropped_packets=row.dropped_packets, drops=snapshot.queue_drops(row))


def _tx_bps(before: PortInfo, now: PortInfo, elapsed_s: float) -> float | None:
    if not elapsed_s or before.sent_bytes is None or now.sent_bytes is None:
        return None
    return 8 * (now.sent_bytes - before.sent_bytes) / elapsed_s


def _link(port: PortInfo) -> str | None:
    if port.oper_up is None:
        return None
    if port.admin_up is False:
        return "down (set)"
    return "up" if port.oper_up else "no carrier" if port.admin_up else "down"


def _rate(port: PortInfo) -> str | None:
    if port.rate_bps is None:
        return None
    layer = f" {port.link_layer}" if port.link_layer not in (None, "none") else ""
    return f"{format_rate(port.rate_bps)}{layer}" if port.rate_bps else "unlimited"


def _scheduler(port: PortInfo) -> str | None:
    if port.scheduler is None or port.queues is None:
        return port.scheduler
    return f"{port.scheduler}, {counted(port.queues, 'queue')}"


def _capacity(port: PortInfo) -> str:
    queue = _amount(port.queue_packets, port.queue_bytes, port.queue_cells)
    whole = _amount(port.port_packets, port.port_bytes, port.port_cells)
    return f"{queue or '-'} a queue" + (f"; {whole} in all" if whole else "")


def _amount(packets: int | None, size: int | None, cells: int | None) -> str:
    parts = [
        counted(packets, "packet") if packets else "",
        format_size(size) if size else "",
        counted(cells, "cell") if cells else "",
    ]
    return ", ".join(part for part in parts if part)


def _waiting(port: PortInfo) -> str | None:
    if port.waiting_packets is None:
        return None
    return f"{port.waiting_packets} ({format_size(port.waiting_bytes)})" if port.waiting_packets else "0"


# ---- changes ---------------------------------------------------------------------------------------------------------


_READ = {
    "bit/s": ("RATE", rate_bps),
    "packets": ("PACKETS", packets_of),
    "bytes": ("SIZE", parse_size),
    "cells": ("CELLS", cells_of),
}
"""By unit: what an option takes, and what reads it."""


def _set_options() -> Iterator[inspect.Parameter]:
    """What can be set at a port; the help is what the configuration file says of it."""
    for name, one in PortChange.options.items():
        flag = f"--{name.removesuffix('_bps').replace('_', '-')}"
        doc = PortConfig.model_fields[one.key or name].description
        if one.unit:
            metavar, parse = _READ[one.unit]
            doc = f"{doc[:-1]}; none is no limit." if doc and one.may_be_unlimited else doc
            parser = partial(_read, parse, flag, one.may_be_unlimited)
            yield option(name, int, flag, help=doc, metavar=metavar, parser=parser)
        elif name == "enabled":
            yield option(name, bool, "--up/--down", help=doc)
        else:
            yield option(name, str if one.words else int, flag, help=doc)


def _read(parse: Callable[[str, str], int], flag: str, may_be_none: bool, text: str) -> int:
    """A number, or `none`, which is 0 for the switch."""
    return 0 if may_be_none and text.lower() in _NO_LIMIT else parse(text, flag)


@ports_app.command("set")
@with_options([*_set_options()])
def set_(
    port: PortArgument,
    changes: dict[str, Any],
    weight: Annotated[list[str] | None, typer.Option("--queue-weight", help="QUEUE=WEIGHT; repeatable.", metavar="QUEUE=WEIGHT")] = None,
    packet_bytes: PacketBytesOption = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Change a port while it runs, all or nothing. A managed port's limit in the program follows its queue's capacity.

    PORT may be an interface too: s1:s1-eth3.

    Examples: `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`, `fairlane ports set s1:3 --scheduler drr --queue-weight 1=3`,
    `fairlane ports set s1:3 --down`
    """
    change = PortChange(**changes, weights=_weights(weight or []))
    if not change.values_by_name:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            "nothing to change: give --rate, --queue-packets, --scheduler, --queue-weight, --down, …",
        )
    _change(resolve(state, switch, port), port, change, packet_bytes, dry_run, as_json)


def _weights(texts: list[str]) -> dict[int, int]:
    weights: dict[int, int] = {}
    for text in texts:
        found = _WEIGHT.match(text)
        if not found:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"--queue-weight {text!r}: must be QUEUE=WEIGHT, e.g. 1=3")
        weights[int(found[1])] = int(found[2])
    return weights


def _change(
    targets: Targets, port: PortRef | None, change: PortChange, packet_bytes: int | None, dry_run: bool, as_json: bool
) -> None:
    """One port, or without one all of the switch."""
    endpoint = targets.one("all ports are" if port is None else "a port is")
    made = asyncio.run(_make(targets, endpoint, port.name if port else None, change, packet_bytes, dry_run))
    if as_json:
        rows = [
            {
                "switch": endpoint.name,
                "port": number,
                "dry_run": dry_run,
                "change": change.values_by_name,
                "done": done.sentences,
            }
            for number, done in made
        ]
        print_json(rows if port is None else rows[0])
        return
    head = "would be set" if dry_run else "is set"
    for number, done in made:
        console.print(f"{endpoint.name}:{number} {head}: {change.describe()}", markup=False, soft_wrap=True)
        for sentence in done.sentences:
            console.print(f"  {sentence}", markup=False, soft_wrap=True)
        if done.note:
            console.print(done.note, markup=False, soft_wrap=True)
    if not made:
        console.print(f"{endpoint.name} has no port", markup=False)


async def _make(
    targets: Targets, endpoint: Endpoint, port: str | None, change: PortChange, packet_bytes: int | None, dry_run: bool
) -> list[tuple[int, PortPlan]]:
    """All ports or none, as one change of the history."""

    async def plan(sites: history.Sites) -> list[tuple[int, PortPlan]]:
        made: list[tuple[int, PortPlan]] = []
        for number in await _numbers(targets, endpoint, port):
            length = packet_bytes
            if length is None and run.target == "bmv2":
                length = await _measured_bytes(targets, endpoint, number)
            made.append((number, await plan_port(sites, endpoint.name, number, change, length)))
        return made

    run = targets.run or RunState(name=endpoint.name)
    async with history.Sites(run, (endpoint,)) as sites:
        if dry_run:
            return await plan(sites)
        async with history.changing(targets.folder, typed(), targets.run) as recorded:
            made = await plan(sites)
            steps = [step for _, one in made for step in one.steps]
            await make(steps, sites)
            recorded.note = made[-1][1].note if made else ""
    return made


async def _numbers(targets: Targets, endpoint: Endpoint, port: str | None) -> list[int]:
    """The ports that are meant: by number, by interface, or all."""
    if port is not None and port.isdecimal():
        return [int(port)]
    async with open_ports(endpoint, targets.run) as client:
        found = await client.ports()
    return [one.port for one in found] if port is None else [port_of(found, port, endpoint).port]


async def _measured_bytes(targets: Targets, endpoint: Endpoint, port: int) -> int | None:
    """L_D that a running loop measured at the port; None without."""
    folder = targets.loop_folder
    if folder is None:
        return None
    answer = cast("list[dict[str, Any]]", await ask(folder, {"op": "measure"}))
    for row in answer:
        if row.get("switch") == endpoint.name and row.get("port") == port:
            length = cast("dict[str, Any]", row.get("l_d_bytes") or {}).get("value")
            return None if length is None else round(float(length))
    return None


# ---- the verbs of simple_switch_CLI ------------------------------------------------------------------------------------


def set_queue_rate(
    rate: Annotated[str, typer.Argument(help="With a unit: 2Mbit, or 500pps with --packet-bytes.", metavar="RATE")],
    port: EveryPortArgument = None,
    packet_bytes: PacketBytesOption = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Set the rate of a port, or of all, as in simple_switch_CLI, but with a unit: there a bare number is packets/s, elsewhere bit/s.

    Examples: `fairlane p4 set_queue_rate 2Mbit 3`, `fairlane p4 set_queue_rate 250pps 3 --packet-bytes 1014`
    """
    found = _PPS.match(rate.replace(" ", "").lower())
    if found:
        if packet_bytes is None:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"set_queue_rate {rate}: of which frame length? Give --packet-bytes, or the rate in bits: 2Mbit",
            )
        bps = int(found[1]) * 8 * packet_bytes
    elif rate.replace(".", "", 1).isdigit():
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"set_queue_rate {rate}: packets/s or bit/s? Write {rate}pps (with --packet-bytes) or {rate}bit",
        )
    else:
        bps = round(parse_rate(rate))
    _change(resolve(state, switch, port), port, PortChange(rate_bps=bps), packet_bytes, dry_run, as_json)


def set_queue_depth(
    packets: Annotated[str, typer.Argument(help="Packets that may wait: 100.", metavar="PACKETS")],
    port: EveryPortArgument = None,
    state: StateOption = None,
    switch: SwitchOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Set how many packets may wait in each queue of a port, or of all, as in simple_switch_CLI.

    Example: `fairlane p4 set_queue_depth 100 3`
    """
    change = PortChange(queue_packets=parse_count(packets, "packets", "set_queue_depth"))
    _change(resolve(state, switch, port), port, change, None, dry_run, as_json)
