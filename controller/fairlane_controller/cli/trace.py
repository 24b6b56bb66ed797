# SPDX-License-Identifier: Apache-2.0
"""`fairlane trace`: one packet's path through a switch: parser, tables, actions, queue, what becomes of it and why."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
from typing import Annotated, Any, cast

import typer
from rich.text import Text
from rich.tree import Tree

from fairlane_controller.cli.options import (
    JsonOption,
    PortRef,
    Seconds,
    port_argument,
    time_option,
)
from fairlane_controller.cli.output import console
from fairlane_controller.cli.targets import Targets, on_switches
from fairlane_controller.errors import ErrorCode, bad_input
from fairlane_controller.program.contract import Program, reasons_of
from fairlane_controller.program.registry import find_program
from fairlane_controller.switch import frames
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.tracing import trace, trace_live
from fairlane_controller.units import counted

Row = dict[str, Any]
TIMEOUT = Seconds(60)


def parse_hex(text: str) -> bytes:
    """A frame of hexadecimal digits, also with 0x before them. BAD_INPUT."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise bad_input("--hex: must be pairs of hexadecimal digits, e.g. 080000000100…") from None


@on_switches
def trace_command(
    port: Annotated[PortRef, port_argument("Where the packet comes in: s1:1, or 1 with --switch.")],
    packet: Annotated[str | None, typer.Option("--packet", help=f"A packet such as {frames.EXAMPLE}; options {', '.join(frames.OPTION_MAX)}.")] = None,
    pcap: Annotated[str | None, typer.Option("--pcap", help="A frame of a pcap file: FILE#N, N from 1.")] = None,
    hexadecimal: Annotated[bytes | None, typer.Option("--hex", parser=parse_hex, metavar="DIGITS", help="A frame as hexadecimal digits.")] = None,
    live: Annotated[bool, typer.Option("--live", help="The next real packets that come in there.")] = False,
    match: Annotated[str, typer.Option("--filter", help="With --live: KEY=VALUE,…; keys src, dst, sport, dport, protocol.")] = "",
    count: Annotated[int, typer.Option("--count", help="With --live: the number of packets.")] = 1,
    timeout: Annotated[Seconds, time_option("--timeout", help="With --live: max time to wait.", at_least=1, at_most=3600)] = TIMEOUT,
    full: Annotated[bool, typer.Option("--full", help="Also what changed nothing, and conditions that were false.")] = False,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show what a switch does with a packet, and why. Nothing is sent, and nothing is changed on the switch.

    Example: `fairlane trace s1:1 --live --filter src=10.0.1.1,dport=5001`
    """
    endpoint = targets.one(port)
    sources = (packet, frames.packet), (pcap, frames.from_pcap)
    given = [parse(text) for text, parse in sources if text is not None]
    given += [hexadecimal] if hexadecimal else []
    if len(given) + live != 1 or (match and not live):
        example = f"fairlane trace s1:1 --packet '{frames.EXAMPLE}'"
        raise bad_input(f"name one of --packet, --pcap, --hex and --live (which alone takes --filter), e.g. {example}")

    async def work() -> None:
        program, seen = None if as_json else await _program(targets), 0
        if live:
            wanted = {**parse_filter(match), "ingress_port": port.number}
            traces = trace_live(endpoint, wanted, count, math.ceil(timeout))
        else:
            traces = trace(endpoint, port.number, given[0])
        async for result in traces:
            seen += 1
            if as_json:
                print(json.dumps(result, indent=None if live else 2), flush=True)
            else:
                console.print(tree(endpoint.name, result, program, full=full), soft_wrap=True)
        if live and seen < count:
            problem = f"{endpoint}: {seen} of {counted(count, 'packet')} that match came within {timeout}"
            raise ErrorCode.TIMED_OUT(problem)

    asyncio.run(work())


def parse_filter(text: str) -> dict[str, str | int]:
    """`src=10.0.1.1,dport=5001` as the switch takes it, which checks keys and values."""
    found: dict[str, str | int] = {}
    for part in text.split(",") if text else ():
        key, _, value = part.strip().partition("=")
        found[key] = int(value) if value.isdecimal() else frames.PROTOCOLS.get(value, value.strip("[]"))
    return found


async def _program(targets: Targets) -> Program | None:
    """What the one switch runs; None: nothing that has a contract."""
    async with SwitchClient(targets.endpoints[0]) as client:
        return find_program(client.table_names(), targets.run.program if targets.run else "")


# ---- the answer of the switch as text: `switch/tracing.py` has its keys ------------------------------------------------


def show_value(name: str, width: int, text: str) -> str:
    """The value of a field for people: addresses (MAC, IPv4, IPv6) as such, other numbers in decimal.

    Args:
        name: The field's.
        width: Its bits.
        text: The value in hexadecimal, with 0x.
    """
    number, last = int(text, 16), name.rpartition(".")[2].lower()
    if any(part in last for part in ("addr", "src", "dst", "mac", "spa", "tpa", "sha", "tha")):
        if width in (32, 128):
            return str(ipaddress.IPv4Address(number) if width == 32 else ipaddress.IPv6Address(number))
        if width == 48:
            return number.to_bytes(6, "big").hex(":")
    return str(number)


def outcome(trace: Row, program: Program | None) -> list[str]:
    """One sentence for each thing that becomes of the packet in a switch that runs `program` (None: an unknown one)."""
    found: list[str] = []
    for part in (*trace.get("rounds", ()), *trace.get("copies", ())):
        if drop := part.get("drop"):
            to = f" to port {part['port']}" if "port" in part else ""
            source: Row = drop.get("place", {}).get("source", {})
            where = " at {file}:{line}".format_map(source) if source else ""
            found.append(f"dropped by the {drop['by']}{to}: {drop['reason']}{where}{_reason(trace, program)}")
        elif part["fate"] == "transmit":
            size, queue = len(part["frame"]) // 2, part["queue"]["queue"]
            found.append(f"leaves by port {part['port']}, queue {queue}, {size} bytes ({part['why']})")
        elif part["fate"] == "packet_in":
            found.append("goes to the controller as a packet-in")
    return found


def _reason(trace: Row, program: Program | None) -> str:
    """The reason that programs with a contract write into their metadata."""
    steps = [step for entry in trace.get("rounds", ()) for step in entry["ingress"]]
    changes = [change for step in steps for one in (step, *step.get("lines", ())) for change in one.get("changes", ())]
    numbers = [int(change["to"], 16) for change in changes if change["name"] == "metadata_t.reason"]
    known = reasons_of(program).get(numbers[-1]) if program is not None and numbers else None
    return f", reason {known.name}: {known.meaning}" if known is not None else ""


def tree(switch: str, trace: Row, program: Program | None, *, full: bool = False) -> Tree:
    """The whole trace of a packet.

    Args:
        switch: Its name.
        trace: What the switch has answered.
        program: What it runs; None: unknown.
        full: Also lines that changed nothing, and conditions that were false.
    """
    root = Tree(Text(f"{switch}:{trace['ingress_port']}, {trace['bytes']} bytes, at {trace['time_ns'] / 1e9:.6f} s"))
    for text in outcome(trace, program):
        root.add(Text(text, "bold red" if text.startswith("dropped") else "bold green"))
    for part in (*trace.get("rounds", ()), *trace.get("copies", ())):
        branch = root.add(Text(_line({"port": part.get("port"), "packet": part["why"]}), "bold"))
        for control in ("parser", "ingress", "egress", "deparser"):
            if steps := part.get(control):
                steps_of = branch.add(Text(control, "bold"))
                for step in steps:
                    _add(steps_of, step, full)
        for key in _NOTES:
            if part.get(key):
                branch.add(Text(_line({key: part[key]})))
    return root


_NOTES = ("parser_error", "checksum_error", "digests", "log", "queue", "fate", "to", "frame")
"""Facts of a round or a copy beside its controls; `outcome` has its drop."""
_BELOW = ("extracted", "lines", "changes", "uses")
"""What stands below a step, in lines of its own."""


def _add(parent: Tree, row: Row, full: bool) -> None:
    """A step, what it did, and the place of its source."""
    below = [one for key in _BELOW for one in row.get(key, ()) if full or "op" not in one or _does(one)]
    idle = row.get("result") is False or (row.get("step") in ("action", "deparser") and not below)
    if idle and not full:
        return
    source: Row = row.get("source", {})
    text = Text(_line({key: value for key, value in row.items() if key not in (*_BELOW, "source")}))
    place = "  {file}:{line} {text}".format_map({"text": "", **source}) if source else ""
    branch = parent.add(text.append(place.rstrip(), "dim"))
    for one in below:
        _add(branch, one, full)


def _does(row: Row) -> bool:
    return bool(row.get("changes") or row.get("uses"))


def _line(value: Any) -> str:
    """Any part of the answer in one line: `counter drops, index 3, packets 5`."""
    match value:
        case {"name": str(name), "width": int(width), "value": str(text)}:
            return f"{name}={show_value(name, width, text)}"
        case {"name": str(name), "width": int(width), "from": str(before), "to": str(after)}:
            return f"{name}: {show_value(name, width, before)} → {show_value(name, width, after)}"
        case dict():
            row = cast("Row", value)
            names = [str(row[key]) for key in ("step", "kind", "op", "header", "name") if key in row]
            rest = (
                f"{key.replace('_', ' ')} {_line(one)}"
                for key, one in sorted(row.items())
                if one not in (None, [], "") and key not in ("step", "kind", "op", "header", "name")
            )
            return ", ".join(filter(None, [" ".join(names), *rest]))
        case list():
            return ", ".join(map(_line, cast("list[Any]", value)))
        case _:
            return str(value)
