# SPDX-License-Identifier: Apache-2.0
"""`fairlane trace`: one packet's way through a switch: parser, tables, actions, queue, what becomes of it and why."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Annotated

import typer

from fairlane_controller.cli.complete import complete_port
from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.trace_tree import tree
from fairlane_controller.cli.types import PortRef, Seconds, parse_port, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range, unknown_name
from fairlane_controller.program.contract import Program
from fairlane_controller.program.registry import find_program
from fairlane_controller.switch import frames
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.tracing import trace, trace_live
from fairlane_controller.units import counted

COUNT_MAX = 1000
TIMEOUT = Seconds(60)
PORT_MAX = 510
_PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58}
_MATCH = ("src", "dst", "sport", "dport", "protocol")


def trace_command(
    port: Annotated[
        PortRef | None,
        typer.Argument(
            help="Where the packet comes in: s1:1, or 1 with --switch; with --live default any.",
            metavar="PORT",
            parser=parse_port,
            autocompletion=complete_port,
        ),
    ] = None,
    packet: Annotated[
        str | None,
        typer.Option(
            "--packet",
            help=f"A packet such as {frames.EXAMPLE}; options len, ttl, dscp, ecn, flags, seq, ack, vlan, smac, dmac.",
        ),
    ] = None,
    hexadecimal: Annotated[str | None, typer.Option("--hex", help="A frame as hexadecimal digits.")] = None,
    pcap: Annotated[str | None, typer.Option("--pcap", help="A frame of a pcap file: FILE#N, N from 1.")] = None,
    live: Annotated[bool, typer.Option("--live", help="The next real packets that match, instead.")] = False,
    match: Annotated[
        str | None, typer.Option("--filter", help=f"With --live: KEY=VALUE,…; keys {', '.join(_MATCH)}.")
    ] = None,
    count: Annotated[int, typer.Option("--count", help="With --live: so many packets.")] = 1,
    timeout: Annotated[
        Seconds, time_option("--timeout", help="With --live: wait at most so long.", at_least=1, at_most=3600)
    ] = TIMEOUT,
    full: Annotated[
        bool, typer.Option("--full", help="Also what changed nothing, and conditions that were false.")
    ] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a switch does with a packet, and why. Nothing is sent, and nothing is changed on the switch."""
    targets = resolve(state, switch, port)
    endpoint = targets.one("a packet's way begins at")
    given = [
        name for name, value in (("--packet", packet), ("--hex", hexadecimal), ("--pcap", pcap)) if value is not None
    ]
    if live:
        if given:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"--live waits for real packets: leave {' and '.join(given)} away")
        wanted = _filter(match) | ({"ingress_port": port.number} if port else {})
        asyncio.run(_live(targets, wanted, _count(count), math.ceil(timeout), full=full, as_json=as_json))
        return
    if match is not None:
        raise FairlaneError(ErrorCode.BAD_INPUT, "--filter goes with --live")
    if len(given) != 1 or port is None:
        raise FairlaneError(
            ErrorCode.BAD_INPUT,
            f"name the port and one of --packet, --hex, --pcap, e.g. fairlane trace s1:1 --packet '{frames.EXAMPLE}'",
        )
    if not 0 <= port.number <= PORT_MAX:
        raise out_of_range("port", port.number, 0, PORT_MAX)
    if packet is not None:
        frame = frames.packet(packet)
    elif hexadecimal is not None:
        frame = frames.from_hex(hexadecimal)
    else:
        frame = frames.from_pcap(pcap or "")
    result = asyncio.run(trace(endpoint, port.number, frame))
    if as_json:
        print_json(result)
    else:
        console.print(tree(endpoint.name, result, asyncio.run(_program(targets)), full=full))


async def _program(targets: Targets) -> Program | None:
    """What the one switch runs; None: nothing that has a contract."""
    async with SwitchClient(targets.endpoints[0]) as client:
        return find_program(client.table_names(), targets.run.program if targets.run else "")


async def _live(
    targets: Targets, match: dict[str, str | int], count: int, timeout_s: int, *, full: bool, as_json: bool
) -> None:
    seen, (endpoint,) = 0, targets.endpoints
    program = None if as_json else await _program(targets)
    async for result in trace_live(endpoint, match, count, timeout_s):
        seen += 1
        if as_json:
            print(json.dumps(result), flush=True)
        else:
            console.print(tree(endpoint.name, result, program, full=full))
    if seen < count:
        raise FairlaneError(
            ErrorCode.TIMED_OUT,
            f"{endpoint}: {seen} of {counted(count, 'packet')} that match came within {timeout_s} s",
        )


def _count(count: int) -> int:
    if not 1 <= count <= COUNT_MAX:
        raise out_of_range("--count", count, 1, COUNT_MAX)
    return count


def _filter(text: str | None) -> dict[str, str | int]:
    """`src=10.0.1.1,dport=5001` as the switch takes it."""
    found: dict[str, str | int] = {}
    for part in (text or "").split(",") if text else ():
        key, equals, value = part.strip().partition("=")
        if key not in _MATCH:
            raise unknown_name("key of --filter", key, _MATCH)
        if not equals or not value:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"--filter: {key} needs a value, e.g. src=10.0.1.1,dport=5001")
        if key in ("src", "dst"):
            found[key] = value.strip("[]")
        elif key == "protocol" and value in _PROTOCOLS:
            found[key] = _PROTOCOLS[value]
        elif value.isdigit():
            found[key] = int(value)
        else:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"--filter: {key}: {value!r} is no number")
    return found
