# SPDX-License-Identifier: Apache-2.0
"""`fairlane link`: list and show the links of a running topology, change them, hold them up, cut them."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from fairlane_controller.cli.complete import complete_names, run_states
from fairlane_controller.cli.conventions import App, option
from fairlane_controller.cli.model_options import with_options
from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.errors import ErrorCode, bad_input
from fairlane_controller.state.run_state import LinkState, RunState, find_folder, read_run_state
from fairlane_controller.units import format_rate, parse_count, parse_rate

from fairlane_switch.link_control import WAYS, Change, change_link, read_link, read_links
from fairlane_switch.link_presets import PRESETS
from fairlane_switch.link_series import Series, read_series
from fairlane_switch.units import format_us, parse_share, parse_time_us
from fairlane_switch.wire import SNAP_BYTES, CaptureState, Direction, End, LinkOptions, SpikeBlocks, WireClient

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
ENDS: tuple[End, ...] = get_args(End)
SPIKE_BLOCKS: tuple[SpikeBlocks, ...] = get_args(SpikeBlocks)
app = App(name="link", help="Links of a running topology: list, show, set, spike, outage, capture.")


def _link_names(ctx: Any) -> list[str]:
    return [str(link["name"]) for state in run_states(ctx) for link in state.get("links", [])]


Name = Annotated[
    str,
    typer.Argument(
        metavar="LINK",
        help="Its name: the nodes at its ends, such as s1-s2.",
        autocompletion=complete_names(_link_names),
    ),
]


def _find(state: str | None, name: str) -> tuple[RunState, LinkState]:
    run = read_run_state(find_folder(state))
    for link in run.links:
        if link.name == name:
            return run, link
    there = ", ".join(link.name for link in run.links) or "none"
    raise ErrorCode.UNKNOWN_NAME(f"there is no link {name!r}; there are {there}")


@app.command("list")
def list_links(state: StateOption = None, as_json: JsonOption = False) -> None:
    """All links, each direction a row, as they are now."""
    run = read_run_state(find_folder(state))
    links = read_links(run)
    if as_json:
        print_json(links)
        return
    rows = [("" if at else link["name"], *_row(link[way]).values()) for link in links for at, way in enumerate(WAYS)]
    print_table(f"links of topology {run.name} ({Path(run.topology).name})", ("link", *_COLUMNS), rows)


_COLUMNS = ("from", "to", "port", "delay", "rate", "loss", "BER", "bursts", "now")


def _row(way: dict[str, Any]) -> dict[str, str]:
    """A direction in words, by column."""
    port_bps = way["port_rate_bps"]
    found = [way["from"], way["to"], "-" if port_bps is None else _shown(port_bps, format_rate) if port_bps else "any"]
    if way["settings"] is None:
        return dict(zip(_COLUMNS, [*found, *"-----", "veth"], strict=True))
    options = LinkOptions(**way["settings"])
    now = way["present"]
    delay = _shown(options.delay_us, format_us, now.get("delay_us"))
    if options.jitter_us:
        delay += f" ± {_shown(options.jitter_us, format_us, now.get('jitter_us'))}"
        delay += " normal" if options.jitter_distribution == "normal" else ""
    rate = _shown(options.rate_bps, format_rate, now.get("rate_bps")) if options.rate_bps else "any"
    bursts = "-"
    if options.ge_enter:
        what = f"{options.ge_loss:.3g} lost" + (f", BER {options.ge_ber:.3g}" if options.ge_ber else "")
        bursts = f"{options.ge_enter:.3g} in, {options.ge_leave:.3g} out: {what}"
    elif options.ge_good_us:
        bursts = f"{format_us(options.ge_bad_us)} after {format_us(options.ge_good_us)}: {options.ge_loss:.3g} lost"
    left = (("held", way["spike_left_us"]), ("cut", way["outage_left_us"]))
    state = "; ".join(f"{what}, {format_us(left_us)} left" for what, left_us in left if left_us) or "up"
    found += [delay, rate, _shown(options.loss, "{:.3g}".format, now.get("loss")), f"{options.ber:.3g}", bursts, state]
    return dict(zip(_COLUMNS, found, strict=True))


def _shown(value: float, words: Callable[[float], str], now: float | None = None) -> str:
    """A setting: a number, or what it follows and where it is."""
    if not isinstance(value, Series):
        return words(value)
    return f"{value} ({f'mean {words(float(value))}' if now is None else f'now {words(now)}'})"


@app.command("show")
def show_link(name: Name, state: StateOption = None, as_json: JsonOption = False) -> None:
    """One link: all its settings and counts."""
    run, link = _find(state, name)
    now, counts = read_link(run, name), None
    if link.emulated:
        with WireClient(run.wire) as wire:
            counts = asdict(wire.stats()[name])
    if as_json:
        print_json({**now, "stats": counts})
        return
    cells = [_row(now[way]) for way in WAYS]
    rows = [(column, *(one[column] for one in cells)) for column in _COLUMNS[2:]]
    if counts is not None:
        settings = [now[way]["settings"] for way in WAYS]
        rows.append(("queue", *(f"{one['queue_packets']} packets" for one in settings)))
        rows.append(("order", *("may change" if one["reorder"] else "kept" for one in settings)))
        for key in counts["a_to_b"]:
            values = [counts[way][key] for way in WAYS]
            if any(values) or key.startswith(("offered_p", "delivered_p")):
                rows.append((key.replace("_", " "), *(f"{value:,.0f}" for value in values)))
    kind = f" (preset {link.preset})" if link.preset else "" if link.emulated else " (a bare veth pair)"
    print_table(f"link {name}{kind}", ("", *(f"{one['from']} to {one['to']}" for one in cells)), rows)


_RATE_HELP = "Of the switch ports at its ends, and of the wire where a host sends, such as 500kbit."
_VARIES = " Or a function of time in JSON (docs/links.md)."
_OPPOSITES = {"reorder": "--keep-order", "spare_retransmissions": "--hit-retransmissions"}
"""Flags that take a setting away which is yes or no."""


def _set_options() -> Iterator[inspect.Parameter]:
    """An option for each setting that the declaration of a link has; its help and its range are the declaration's."""
    declared = json.loads((Path(__file__).parent / "link.schema.json").read_text(encoding="utf-8"))["properties"]
    for name, one in declared.items():
        word = name.removesuffix("_us").removesuffix("_bps")
        flag, doc, kind = f"--{word.replace('_', '-')}", one["description"], one.get("type")
        varies = "varies" in one

        def parser(parse: Callable[[str], float], name: str = name, varies: bool = varies) -> Callable[[str], float]:
            return partial(_or_series, name, parse) if varies else parse

        if name.endswith("_bps"):
            doc = _RATE_HELP if name == "rate_bps" else f"{doc} Such as 16kbit."
            allowed = next(each for each in one["anyOf"] if "minimum" in each)
            yield option(name, int, flag, help=doc, metavar="RATE", parser=parser(partial(_rate_bps, allowed)))
        elif name.endswith("_us"):
            doc += f" At most {format_us(one['maximum'])}."
            yield option(name, float, flag, help=doc, metavar="TIME", parser=parser(partial(parse_time_us, what=word)))
        elif kind == "boolean":
            yield option(name, bool, f"{flag}/{_OPPOSITES[name]}", help=doc, metavar="")
        elif kind == "integer":
            doc += f" {one['minimum']:,} to {one['maximum']:,}."
            yield option(
                name, int, flag, help=doc, metavar="PACKETS", parser=partial(parse_count, unit="packets", what=flag)
            )
        elif kind == "number":
            doc += f" {one['minimum']:g} to {one['maximum']:g}; 1% is 0.01."
            yield option(name, float, flag, help=doc, metavar="SHARE", parser=parser(partial(parse_share, what=name)))
        else:
            yield option(name, str, flag, help=doc, metavar="|".join(one["enum"]))


def _or_series(name: str, parse: Callable[[str], float], text: str) -> float:
    if not text.lstrip().startswith("{"):
        return parse(text)
    try:
        return read_series(name, json.loads(text), Path.cwd())
    except ValueError as error:
        raise bad_input(f"{name.partition('_')[0]}: {error}") from None


def _rate_bps(allowed: dict[str, int], text: str) -> int:
    rate_bps, low, high = round(parse_rate(text)), allowed["minimum"], allowed["maximum"]
    if rate_bps and not low <= rate_bps <= high:
        why = f"rate {rate_bps} bit/s is out of range; allowed: {low} to {high}, or 0 (unlimited)"
        raise ErrorCode.OUT_OF_RANGE(why)
    return rate_bps


def _preset(name: str) -> str:
    if name not in PRESETS:
        raise ErrorCode.UNKNOWN_NAME(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return name


def _word(what: str, allowed: tuple[str, ...], text: str) -> str:
    if text not in allowed:
        raise bad_input(f"{what} {text!r} is not known; allowed: {', '.join(allowed)}")
    return text


def _option_of(what: str, words: tuple[str, ...], help_text: str) -> Any:
    return typer.Option(help=help_text, metavar="|".join(words), parser=partial(_word, what, words))


Way = Annotated[
    str,
    typer.Option(
        "--direction", "-d", help="a_to_b, b_to_a or both.", metavar="WAY", parser=partial(_word, "direction", DIRECTIONS),
        autocompletion=complete_names(lambda _: DIRECTIONS),
    ),
]  # fmt: skip
_PRESET = typer.Option(
    help=f"All settings of {', '.join(PRESETS)}; what stands beside it wins.",
    metavar="PRESET",
    parser=_preset,
    autocompletion=complete_names(lambda _: {name: preset.what for name, preset in PRESETS.items()}),
)


@app.command("set")
@with_options([*_set_options()])
def set_link(
    name: Name,
    changes: dict[str, Any],
    direction: Way = "both",
    preset: Annotated[str | None, _PRESET] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a link from now on: what is given, all of it or nothing. Packets on their way are not lost."""
    if preset is not None:
        changes = {"rate_bps": PRESETS[preset].rate_bps, **changes}
    elif not changes:
        raise bad_input("nothing to set; give an option such as --delay (--help lists them)")
    rate_bps = changes.pop("rate_bps", None)
    kind = PRESETS[preset] if preset else None
    _change(state, name, Change(cast(Direction, direction), changes, kind, rate_bps), as_json)


def _change(state: str | None, name: str, change: Change, as_json: bool) -> None:
    """Make it, and print the link as it is then."""
    run, link = _find(state, name)
    change_link(run, link, change)
    now = read_link(run, name)
    if as_json:
        print_json(now)
        return
    for row in (_row(now[way]) for way in WAYS):
        said = [f"{key} {row[key]}" for key in _COLUMNS[2:] if row[key] not in ("-", "0", "any", "up")]
        say(f"{row['from']} to {row['to']}: {', '.join(said) or 'nothing but a line'}")


def _time_argument(example: str) -> Any:
    help_text = f"How long, such as {example} (at most 600s)."
    return typer.Argument(help=help_text, metavar="TIME", parser=partial(parse_time_us, what="duration"))


@app.command("spike")
def spike(
    name: Name,
    duration: Annotated[float, _time_argument("5s")],
    direction: Way = "both",
    blocks: Annotated[
        str,
        _option_of(
            "blocks",
            SPIKE_BLOCKS,
            "delivery: then all comes at once; line: nothing starts on it, packets wait in its queue.",
        ),
    ] = "delivery",
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """A delay spike: let nothing pass for so long; no packet is lost by it."""
    change = Change(cast(Direction, direction), spike_us=duration, spike_blocks=cast(SpikeBlocks, blocks))
    _change(state, name, change, as_json)


@app.command("outage")
def outage(
    name: Name,
    duration: Annotated[float, _time_argument("500ms")],
    direction: Way = "both",
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """An outage: lose everything that enters the link for so long."""
    _change(state, name, Change(cast(Direction, direction), outage_us=duration), as_json)


LOOK_S = 0.1


@app.command("capture")
def capture(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Such as out.pcapng; one that is there is replaced.", metavar="FILE")],
    direction: Way = "both",
    at: Annotated[
        str,
        _option_of(
            "at",
            ENDS,
            "The end that sees: what it sends, as it comes to the link, and what comes to it, as it is delivered.",
        ),
    ] = "a",
    seconds: Annotated[float | None, typer.Option(help="End after so long; otherwise with Ctrl-C.", min=0.001)] = None,
    packets: Annotated[int | None, typer.Option(help="End after so many packets.", min=1)] = None,
    snap: Annotated[int, typer.Option(help="Bytes of each packet; 65535 for all.", min=14, max=65535)] = SNAP_BYTES,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the packets of a link into a pcapng file for Wireshark, with times in ns. What comes too fast for the disk is counted."""
    run, link = _find(state, name)
    if not link.emulated:
        raise ErrorCode.REFUSED(f'{name} is a bare veth pair: "emulated": true in the topology file lets this command see it')  # fmt: skip
    with WireClient(run.wire) as wire:
        wire.capture(
            name, file, direction=cast(Direction, direction), at=cast(End, at), seconds=seconds, packets=packets,
            snap_bytes=snap,
        )  # fmt: skip
        ended = asyncio.run(_until_done(wire, file))
    if as_json:
        print_json({"file": str(file), "packets": ended.packets, "lost": ended.lost, "error": ended.error})
    elif ended.packets or not ended.error:
        say(f"{ended.packets:,} packets in {file}" + (f", {ended.lost:,} came too fast" if ended.lost else ""))
    if ended.error:
        code = ErrorCode.REFUSED if ended.packets else ErrorCode.BAD_FILE
        raise code(f"the capture ended early: {ended.error}")


async def _until_done(wire: WireClient, file: Path) -> CaptureState:
    """Until it ends by itself, or Ctrl-C or SIGTERM ends it."""
    end = make_end_event()
    while not (now := wire.capture_state(file)).done:
        with suppress(TimeoutError):
            await asyncio.wait_for(end.wait(), LOOK_S)
            return wire.end_capture(file)
    return now
