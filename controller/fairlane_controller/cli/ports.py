# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports [set|measure]`: ports and queues over gNMI, or over Thrift on BMv2."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
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
    PortRef,
    StateOption,
    SwitchOption,
)
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.show import measure_command
from fairlane_controller.cli.targets import Targets, on_switches, resolve
from fairlane_controller.config.compare import PortPlan, plan_port
from fairlane_controller.config.model import PortConfig
from fairlane_controller.errors import FairlaneError, bad_input
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, QueueInfo, find_port
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import make
from fairlane_controller.history.undo import changing
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.pictures import answering, take_two
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.typed import typed
from fairlane_controller.units import format_rate, parse_count, parse_rate, parse_size

ports_app = App(invoke_without_command=True, no_args_is_help=False)
ports_app.command("measure")(measure_command)
PolledPort = tuple[str, PortInfo, float | None]
"""A switch, a port of it, and the rate at which it sends (bit/s; None: not known)."""
_LIMITS = [name for name, one in PortChange.options.items() if one.is_limit]
_READERS = {"bit/s": ("RATE", partial(parse_rate, needs_unit=True)), "bytes": ("SIZE", parse_size)}
"""By unit: what an option takes, and what reads it; all other units are counts."""


@ports_app.callback()
def ports(
    ctx: typer.Context,
    interval: IntervalOption = RATES_OVER,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every port: link state, rate, scheduler, limits, what waits, leaves and is dropped, and why; or change ports.

    Examples: `fairlane ports`, `fairlane ports --interval 0 --json`, `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`
    """
    if ctx.invoked_subcommand is not None:
        return
    targets = resolve(state, switch)

    async def read() -> tuple[list[PolledPort], list[FairlaneError]]:
        return await poll_ports(targets, await take_two(targets, interval), queues=False)

    found, problems = asyncio.run(read())
    with answering(problems, len(targets.endpoints)):
        if as_json:
            print_json([{"switch": name, **port.to_json(), "tx_bps": tx_bps} for name, port, tx_bps in found])
        else:
            print_ports(found)


def print_ports(found: list[PolledPort]) -> None:
    """A line for each port."""
    columns = ("switch", "port", "interface", "link", "rate", "scheduler", "queues", "limits", "waiting", "tx", "dropped", "why")  # fmt: skip
    rows = [
        (name, port.port, port.interface, _link(port), "unlimited" if port.rate_bps == 0 else format_rate(port.rate_bps), port.scheduler, port.queues, _limits(port), port.waiting_packets, format_rate(tx_bps), port.dropped_packets, _reasons(port.drops))
        for name, port, tx_bps in found
    ]  # fmt: skip
    print_table("ports", columns, rows)


def print_queues(found: list[PolledPort]) -> None:
    """A line for each queue that was used."""
    used = [
        (name, port.port, *asdict(queue).values())
        for name, port, _ in found
        for queue in port.queue_list
        if queue.sent_packets or queue.waiting_packets or queue.dropped_packets or queue.weight != 1
    ]
    names = (one.name.replace("_", " ") for one in fields(QueueInfo))
    print_table("queues that had a packet or have a weight", ("switch", "port", *names), used)


async def poll_ports(
    targets: Targets, snapshot: Snapshot, *, queues: bool
) -> tuple[list[PolledPort], list[FairlaneError]]:
    """The ports of all switches that answer.

    Args:
        targets: The switches.
        snapshot: What was read of them before: it has the rates, and what the program refused.
        queues: Read each queue too.

    Returns:
        The ports, with all that was dropped at their queues, what the program refused too, as `fairlane status` has it; and what is
        wrong with the other switches.
    """

    problems: list[FairlaneError] = []

    async def read(endpoint: Endpoint) -> list[PolledPort]:
        found: list[PolledPort] = []
        try:
            async with open_ports(endpoint, targets.run) as client:
                ports = await client.ports(queues=queues)
        except FairlaneError as problem:
            problems.append(problem)
            return found
        for port in ports:
            row = snapshot.port(endpoint.name, port.port)
            if row is not None and row.dropped_packets is not None:
                port = replace(port, dropped_packets=row.dropped_packets, drops=snapshot.queue_drops(row))
            found.append((endpoint.name, port, row.tx_bps if row else None))
        return found

    return [one for ports in await asyncio.gather(*map(read, targets.endpoints)) for one in ports], problems


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
    return round(_READERS[unit][1](text, flag)) if unit in _READERS else parse_count(text, unit, flag)


@ports_app.command("set")
@with_options([*_set_options()])
@on_switches
def set_(
    port: PortArgument,
    changes: dict[str, Any],
    weight: Annotated[list[str] | None, typer.Option("--queue-weight", help="QUEUE=WEIGHT; repeatable.", metavar="QUEUE=WEIGHT")] = None,
    *,
    targets: Targets,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Change a port while it runs, all or nothing. A managed port's limit in the program follows its queue's capacity.

    PORT may be an interface too: s1:s1-eth3. The value `none` removes a rate or a limit.

    Examples: `fairlane ports set s1:3 --rate 2Mbps --queue-packets 100`, `fairlane ports set s1:3 --scheduler drr --queue-weight 1=3`,
    `fairlane ports set s1:3 --down`
    """
    change = PortChange(**changes, weights=dict(map(_weight, weight or ())))
    need_changes("ports set", change.values_by_name)
    switch_name = targets.one(port).name
    number, plan = asyncio.run(_set(targets, port, change, dry_run))
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
        raise bad_input(f"--queue-weight {text!r}: must be QUEUE=WEIGHT, e.g. 1=3")
    return int(queue), int(weight)


async def _set(targets: Targets, port: PortRef, change: PortChange, dry_run: bool) -> tuple[int, PortPlan]:
    """Plan the change of the port, and make it as one change of the history; returns the port's number and the plan."""
    (endpoint,) = targets.endpoints
    async with open_ports(endpoint, targets.run) as client:
        number = find_port(await client.ports(), port.name, endpoint).port
    run = targets.run or RunState(name=endpoint.name)
    async with Sites(run, (endpoint,)) as sites:
        if dry_run:
            return number, await plan_port(sites, endpoint.name, number, change)
        async with changing(targets.folder, typed(), targets.run) as recorded:
            plan = await plan_port(sites, endpoint.name, number, change)
            await make(plan.steps, sites)
            recorded.note = plan.note
    return number, plan
