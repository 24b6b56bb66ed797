# SPDX-License-Identifier: Apache-2.0
"""`fairlane trace`: one packet's way through a switch: parser, tables, actions, queue, what becomes of it and why."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.tree import Tree

from fairlane_controller.cli.complete import complete_port
from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, print_json
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import PortRef, Seconds, parse_port, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range, unknown_name
from fairlane_controller.program.contract import Program
from fairlane_controller.program.reasons import reasons_of
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
            help=f"A packet such as {frames.EXAMPLE}; options {', '.join(frames.OPTION_MAX)}.",
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
    sources = (
        ("--packet", packet, frames.packet),
        ("--hex", hexadecimal, frames.from_hex),
        ("--pcap", pcap, frames.from_pcap),
    )
    given = {name: (parse, text) for name, text, parse in sources if text is not None}
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
    ((parse, text),) = given.values()
    result = asyncio.run(trace(endpoint, port.number, parse(text)))
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


Row = dict[str, Any]

_COLORS = {0: "green", 1: "yellow", 2: "red"}
_SUBJECTS = {"program": "the program", "queue": "the queue", "port": "the switch"}


def show_value(name: str, width: int, text: str) -> str:
    """`0x0a000101` of a 32-bit field that is an address as `10.0.1.1`; MAC and IPv6 likewise; other numbers in decimal."""
    number = int(text, 16)
    last = name.rsplit(".", 1)[-1].lower()
    address = any(part in last for part in ("addr", "src", "dst", "mac", "spa", "tpa", "sha", "tha"))
    if width == 32 and address:
        return str(ipaddress.IPv4Address(number))
    if width == 128 and address:
        return str(ipaddress.IPv6Address(number))
    if width == 48 and address:
        return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))
    if width == 16 and last in ("ether_type", "ethertype", "type"):
        return f"0x{number:04x}"
    return str(number) if number < 2**64 else text


def outcome(trace: Row, program: Program | None) -> list[str]:
    """One sentence for each thing that becomes of the packet in a switch that runs `program` (None: an unknown one)."""
    said: list[str] = []
    for part in (*trace.get("rounds", ()), *trace.get("copies", ())):
        where = f" to port {part['port']}" if "port" in part else ""
        if drop := part.get("drop"):
            place = _part(drop, "place")
            at = _source_place(place.get("source"))
            name = place.get("action") or place.get("step") or ""
            inside = (f" in {name}" if "." in name else "") + (f" at {at}" if at else "")
            by = _SUBJECTS.get(drop["by"], drop["by"])
            said.append(f"dropped by {by}{where}: {drop['reason']}{inside}{_reason(trace, program)}")
        elif part["fate"] == "transmit":
            size = len(part["frame"]) // 2
            said.append(f"leaves by port {part['port']}, queue {part['queue']['queue']}, {size} bytes ({part['why']})")
        elif part["fate"] == "packet_in":
            said.append("goes to the controller as a packet-in")
    return said


def _reason(trace: Row, program: Program | None) -> str:
    """The reason that programs with a contract note in their metadata."""
    steps = [step for entry in trace.get("rounds", ()) for step in entry["ingress"]]
    changes = [change for step in steps for one in (step, *step.get("lines", ())) for change in one.get("changes", ())]
    numbers = [int(change["to"], 16) for change in changes if change["name"] == "metadata_t.reason"]
    known = reasons_of(program).get(numbers[-1]) if program is not None and numbers else None
    return f", reason {known.name}: {known.meaning}" if known is not None else ""


def tree(switch: str, trace: Row, program: Program | None, *, full: bool = False) -> Tree:
    """The whole trace, in a switch that runs `program`; lines that changed nothing, and conditions that held nothing up, only with `full`."""
    root = Tree(
        f"[bold]{escape(switch)}:{trace['ingress_port']}[/bold], {trace['bytes']} bytes, at {trace['time_ns'] / 1e9:.6f} s"
    )
    for text in outcome(trace, program):
        root.add(f"[bold]{'[red]' if text.startswith('dropped') else '[green]'}{escape(text)}[/][/bold]")
    for number, entry in enumerate(trace.get("rounds", ())):
        _round(root, f" ({entry['why']})" if number else "", entry, full)
    for copy in trace.get("copies", ()):
        _copy(root, copy, full)
    if trace.get("left_out"):
        root.add(f"{trace['left_out']} more copies or rounds are not shown")
    return root


def _block(parent: Tree, title: str, part: Row, key: str, full: bool) -> Tree:
    branch = parent.add(title)
    for step in part[key]:
        _step(branch, step, full)
    return branch


def _round(root: Tree, again: str, entry: Row, full: bool) -> None:
    parser = _block(root, f"[bold]parser[/bold]{again}", entry, "parser", full)
    for key, text in (("parser_error", "the parser stopped with error {}"), ("checksum_error", "a checksum is wrong")):
        if entry.get(key):
            parser.add(f"[red]{text.format(entry[key])}[/red]")
    ingress = _block(root, f"[bold]ingress[/bold]{again}", entry, "ingress", full)
    for digest in entry.get("digests", ()):
        ingress.add(f"digest {escape(digest['name'])}: {digest['data']}")
    _log(ingress, entry)
    if entry.get("drop"):
        ingress.add(_drop(entry["drop"]))
    else:
        places = {"enqueue": "port ", "multicast": "multicast group "}
        ingress.add(f"→ {places[entry['fate']]}{entry['to']}" if entry["fate"] in places else f"→ {entry['fate']}")


def _log(branch: Tree, part: Row) -> None:
    for line in part.get("log", ()):
        branch.add(f"log: {escape(line)}")


def _drop(drop: Row) -> str:
    return f"[red]dropped[/red]: {drop['reason']}{_dim(_source_place(_part(drop, 'place').get('source')))}"


def _copy(root: Tree, copy: Row, full: bool) -> None:
    title = f"[bold]port {copy['port']}[/bold] ({copy['why']})"
    if queue := copy.get("queue"):
        limit = queue.get("limit_packets")
        of = f" of {limit}" if limit is not None else ""
        verdict = "admits it" if queue["admits"] else "[red]refuses it[/red]"
        title += f", queue {queue['queue']}: {queue['waiting_packets']}{of} packets, {queue['waiting_bytes']} bytes wait; {verdict}"
    branch = root.add(title)
    for key, text in (("egress", "[bold]egress[/bold], as if it left at once"), ("deparser", "[bold]deparser[/bold]")):
        if copy.get(key):
            _block(branch, text, copy, key, full)
    _log(branch, copy)
    if copy.get("drop"):
        branch.add(_drop(copy["drop"]))
    elif frame := copy.get("frame"):
        branch.add(f"[green]{copy['fate']}[/green]: {len(frame) // 2} bytes {_dim(_shorten_text(frame))}")


def _step(parent: Tree, step: Row, full: bool) -> None:
    kind, at = step["step"], _dim(_source_place(step.get("source")))
    lines = [line for line in step.get("lines", ()) if full or line.get("changes") or line.get("uses")]
    branch = parent
    if kind == "state":
        headers = ", ".join(header["header"] for header in step["extracted"])
        branch = parent.add(f"{escape(step['name'])}{f': {escape(headers)}' if headers else ''}")
        for header in step["extracted"]:
            branch.add(f"{escape(header['header'])}: {_values(header['fields'], header['header'] + '.')}")
    elif kind == "condition":
        held = step["result"]
        if not held and not full:
            return
        text = _part(step, "source").get("text") or step["name"]
        branch = parent.add(f"if {escape(text)}: {'[cyan]yes[/cyan]' if held else '[dim]no[/dim]'}{at}")
    elif kind == "table":
        hit = "[cyan]hit[/cyan]" if step["hit"] else "[yellow]miss[/yellow]"
        branch = parent.add(f"table [bold]{escape(step['name'])}[/bold] {_values(step['key'])}: {hit}{at}")
        if step.get("entry"):
            branch.add(f"entry {escape(step['entry'])}")
        action = step.get("action")
        branch.add(f"→ {escape(action)}({_values(step['args'])})" if action else "→ no action")
    elif kind == "action":
        if not lines and not full:
            return
        # Of statements that stand in the control itself p4c makes actions with names of its own.
        if "." in step["action"]:
            branch = parent.add(f"action [bold]{escape(step['action'])}[/bold]{at}")
    for text in (*map(_use, step.get("uses", ())), *map(_change, step.get("changes", ()))):
        branch.add(text)
    for line in lines:
        _line(branch, line)


def _line(branch: Tree, line: Row) -> None:
    text = _part(line, "source").get("text") or line["op"]
    done = "; ".join([*map(_change, line.get("changes", ())), *map(_use, line.get("uses", ()))])
    # For a constant p4c names the place where it was declared, not the assignment.
    text = _shorten_text(text.removesuffix("; ...").strip(), 90) if "=" in text or "(" in text else line["op"]
    at = _dim(_source_place(line.get("source")))
    branch.add(f"{escape(text)}{f'  [cyan]{done}[/cyan]' if done else ''}{at}")


def _use(use: Row) -> str:
    kind, cell = use["kind"], f"{escape(str(use.get('name', '')))}\\[{use.get('index')}]"
    match kind:
        case "counter" if use["packets"] is not None:
            return f"counts {cell}, {use['packets']} packets before"
        case "meter":
            return f"meter {cell}: {_COLORS.get(use['color'], 'beyond it')}"
        case "register_read":
            return f"reads {cell}" + (f" = {int(use['value'], 16)}" if use["value"] else ", beyond it")
        case "register_write" if use["from"] is not None:
            return f"{cell}: {int(use['from'], 16)} → {int(use['to'], 16)}"
        case "counter" | "register_write":
            return f"{cell} is beyond it"
        case "mark_to_drop":
            return "[red]marks it to be dropped[/red]"
        case "parser_error":
            return "[red]parser error[/red]"
        case _:
            details = [str(use[key]) for key in ("name", "algorithm", "session", "bytes") if key in use]
            return escape(" ".join((kind.replace("_", " "), *details)))


def _change(change: Row) -> str:
    name, width = change["name"], change["width"]
    if name.endswith(".$valid$"):
        header = escape(name.removesuffix(".$valid$"))
        return f"{header} {'appears' if int(change['to'], 16) else 'goes'}"
    before, after = (show_value(name, width, change[key]) for key in ("from", "to"))
    return f"{escape(name.removeprefix('metadata_t.'))}: {before} → {after}"


def _values(values: Iterable[Row], prefix: str = "metadata_t.") -> str:
    return ", ".join(
        f"{escape(value['name'].removeprefix(prefix))}={show_value(value['name'], value['width'], value['value'])}"
        for value in values
    )


def _part(row: Row, key: str) -> Row:
    """The object under `key`, or an empty one."""
    found: Row | None = row.get(key)
    return found or {}


def _source_place(source: Row | None) -> str:
    return f"{source['file']}:{source['line']}" if source else ""


def _dim(text: str) -> str:
    return f"  [dim]{escape(text)}[/dim]" if text else ""


def _shorten_text(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
