# SPDX-License-Identifier: Apache-2.0
"""`fairlane link`: list and show the links of a running topology, change them, hold them up, cut them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from fairlane_controller.cli.complete import complete_names, run_states
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.options import JsonOption, StateOption
from fairlane_controller.cli.types import queue_packets_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.units import format_rate, parse_rate
from rich.console import Console
from rich.table import Table

from fairlane_switch.link_control import (
    DIRECTIONS,
    SPIKE_BLOCKS,
    WAYS,
    LinkNow,
    WayNow,
    change_link,
    cut_link,
    read_links,
    read_stats,
    spike_link,
)
from fairlane_switch.link_presets import PRESETS
from fairlane_switch.running import RunningError, RunningLink, RunningTopology, find_running
from fairlane_switch.units import format_us, parse_share, parse_time_us
from fairlane_switch.wire import Direction, SpikeBlocks

app = App(name="link", help="Links of a running topology: list, show, set, spike, outage.")
_out, _err = Console(highlight=False), Console(stderr=True, highlight=False)
if not _out.is_terminal:
    _out = Console(highlight=False, width=160)


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
Way = Annotated[
    str,
    typer.Option(
        "--direction", "-d", help="a_to_b, b_to_a or both.", autocompletion=complete_names(lambda _: DIRECTIONS)
    ),
]
_PRESET = typer.Option(
    help=f"All settings of {', '.join(PRESETS)}; what stands beside it wins.",
    autocompletion=complete_names(lambda _: {name: preset.what for name, preset in PRESETS.items()}),
)


def _run(as_json: bool, work: Callable[[], None]) -> None:
    """Do it; an error becomes one sentence and an exit code."""
    try:
        work()
    except FairlaneError as error:
        _fail(RunningError(error.code.value, error.message), as_json)
    except RunningError as error:
        _fail(error, as_json)


def _fail(error: RunningError, as_json: bool) -> None:
    if as_json:
        _err.print_json(data={"error": {"code": error.code, "message": str(error)}})
    else:
        _err.print(f"fairlane link: {error}", markup=False, soft_wrap=True)
    raise typer.Exit(ErrorCode(error.code).exit_code)


def _find(state: str | None, name: str, direction: str = "both") -> tuple[RunningTopology, RunningLink, Direction]:
    if direction not in DIRECTIONS:
        raise RunningError("bad_input", f"direction {direction!r} is not known; allowed: {', '.join(DIRECTIONS)}")
    running = find_running(state)
    return running, running.link(name), cast(Direction, direction)


@app.command("list")
def list_links(state: StateOption = None, as_json: JsonOption = False) -> None:
    """All links, each direction a row, as they are now."""

    def work() -> None:
        running = find_running(state)
        links = read_links(running)
        if as_json:
            print(json.dumps([_as_json(now) for now in links], indent=1))
            return
        table = Table(
            "link", "from", "to", "port", "delay", "rate", "loss", "BER", "bursts", "now",
            title=f"Links of topology {running.name} ({Path(running.topology).name})", title_justify="left",
        )  # fmt: skip
        for now in links:
            for way in now.ways:
                table.add_row(now.link.name if way is now.ways[0] else "", *_row(way))
        _out.print(table)

    _run(as_json, work)


def _row(way: WayNow) -> list[str]:
    port = "-" if way.port_rate_bps is None else format_rate(way.port_rate_bps) if way.port_rate_bps else "any"
    ends = [str(way.source), str(way.target), port]
    options = way.options
    if options is None:
        return [*ends, "-", "-", "-", "-", "-", "veth"]
    delay = format_us(options.delay_us)
    if options.jitter_us:
        delay += f" ± {format_us(options.jitter_us)}"
        delay += " normal" if options.jitter_distribution == "normal" else ""
    rate = "any"
    if options.trace:
        rate = Path(options.trace).name
    elif options.rate_bps:
        rate = format_rate(options.rate_bps)
    bursts = "-"
    if options.ge_enter:
        what = f"{options.ge_loss:.3g} lost" + (f", BER {options.ge_ber:.3g}" if options.ge_ber else "")
        bursts = f"{options.ge_enter:.3g} in, {options.ge_leave:.3g} out: {what}"
    held = [
        f"{what}, {format_us(left)} left"
        for what, left in (("held", way.spike_left_us), ("cut", way.outage_left_us))
        if left
    ]
    return [*ends, delay, rate, f"{options.loss:.3g}", f"{options.ber:.3g}", bursts, "; ".join(held) or "up"]


def _as_json(now: LinkNow) -> dict[str, Any]:
    ways = {
        name: {
            "from": str(way.source),
            "to": str(way.target),
            "port_rate_bps": way.port_rate_bps,
            "settings": None if way.options is None else way.options.model_dump(),
            "spike_left_us": way.spike_left_us,
            "outage_left_us": way.outage_left_us,
        }
        for name, way in zip(WAYS, now.ways, strict=True)
    }
    return {"name": now.link.name, "emulated": now.link.emulated, "preset": now.link.preset, **ways}


@app.command("show")
def show_link(name: Name, state: StateOption = None, as_json: JsonOption = False) -> None:
    """One link: all its settings and counts."""

    def work() -> None:
        running, link, _ = _find(state, name)
        now = next(now for now in read_links(running) if now.link.name == name)
        stats = read_stats(running, link)
        if as_json:
            print(json.dumps({**_as_json(now), "stats": None if stats is None else asdict(stats)}, indent=1))
            return
        forth, back = (f"{way.source} to {way.target}" for way in now.ways)
        table = Table("", forth, back, title=f"Link {name}{_of(link)}", title_justify="left")
        labels = ("link", "from", "to", "port's rate", "delay", "rate", "loss", "BER", "bursts", "now")
        cells = [["", *_row(way)] for way in now.ways]
        for index, label in enumerate(labels):
            if index > 2:
                table.add_row(label, cells[0][index], cells[1][index])
        if stats is not None:
            options = [way.options for way in now.ways]
            table.add_row("queue", *(f"{each.queue_packets} packets" if each else "-" for each in options))
            table.add_row("order", *("may change" if each and each.reorder else "kept" for each in options))
            table.add_section()
            counts = asdict(stats)
            for key in counts["a_to_b"]:
                values = [counts[way][key] for way in WAYS]
                if any(values) or key.startswith(("offered_p", "delivered_p")):
                    table.add_row(key.replace("_", " "), *(f"{value:,.0f}" for value in values))
        _out.print(table)

    _run(as_json, work)


def _of(link: RunningLink) -> str:
    return f" (preset {link.preset})" if link.preset else "" if link.emulated else " (a bare veth pair)"


@app.command("set")
def set_link(
    name: Name,
    direction: Way = "both",
    preset: Annotated[str | None, _PRESET] = None,
    delay: Annotated[str | None, typer.Option(help="One way, such as 100ms.", metavar="TIME")] = None,
    jitter: Annotated[str | None, typer.Option(help="Of the delay, not above it.", metavar="TIME")] = None,
    jitter_distribution: Annotated[str | None, typer.Option(help="uniform or normal.")] = None,
    reorder: Annotated[bool | None, typer.Option("--reorder/--keep-order", help="Whether packets may overtake.")] = None,
    rate: Annotated[str | None, typer.Option(help="Of the switch ports at its ends, and of the wire where a host sends, such as 500kbit.", metavar="RATE")] = None,
    loss: Annotated[str | None, typer.Option(help="Probability that a packet is lost: 0.01 or 1%.")] = None,
    ber: Annotated[str | None, typer.Option(help="Probability that a bit is flipped.")] = None,
    errors_in: Annotated[str | None, typer.Option(help="Where bits are flipped: frame or payload.")] = None,
    spare_retransmissions: Annotated[bool | None, typer.Option("--spare-retransmissions/--hit-retransmissions", help="Whether what TCP sends again is never hit.")] = None,
    queue_packets: Annotated[int | None, queue_packets_option("Of the wire's own rate or trace.")] = None,
    ge_enter: Annotated[str | None, typer.Option(help="Bursts: probability per packet that one begins; 0: none.")] = None,
    ge_leave: Annotated[str | None, typer.Option(help="Probability per packet that it ends.")] = None,
    ge_loss: Annotated[str | None, typer.Option(help="Probability that a packet is lost in it.")] = None,
    ge_ber: Annotated[str | None, typer.Option(help="Probability that a bit is flipped in it.")] = None,
    trace: Annotated[str | None, typer.Option(help="File in Mahimahi's format instead of a rate; none: no trace.")] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Change a link from now on: what is given, all of it or nothing. Packets on their way are not lost."""

    def work() -> None:
        running, link, way = _find(state, name, direction)
        settings: dict[str, Any] = {}
        rate_bps: int | None = None
        if preset is not None:
            if preset not in PRESETS:
                there = ", ".join(PRESETS)
                raise RunningError("unknown_name", f"there is no preset {preset!r}; there are {there}")
            settings, rate_bps = PRESETS[preset].options.model_dump(), PRESETS[preset].rate_bps
            del settings["rate_bps"]  # belongs to what sends into the link
        times = {"delay_us": delay, "jitter_us": jitter}
        settings |= {key: parse_time_us(text, key[:-3]) for key, text in times.items() if text is not None}
        shares = {"loss": loss, "ber": ber, "ge_enter": ge_enter, "ge_leave": ge_leave, "ge_loss": ge_loss, "ge_ber": ge_ber}  # fmt: skip
        settings |= {key: parse_share(text, key) for key, text in shares.items() if text is not None}
        others = {"jitter_distribution": jitter_distribution, "reorder": reorder, "queue_packets": queue_packets, "errors_in": errors_in, "spare_retransmissions": spare_retransmissions}  # fmt: skip
        settings |= {key: value for key, value in others.items() if value is not None}
        if trace is not None:
            settings["trace"] = None if trace == "none" else str(Path(trace).resolve())
        if rate is not None:
            rate_bps = round(parse_rate(rate))
        if not settings and rate_bps is None:
            raise RunningError("bad_input", "nothing to set; give an option such as --delay (--help lists them)")
        change_link(running, link, way, settings, rate_bps)
        _print_link(running, name, as_json)

    _run(as_json, work)


def _print_link(running: RunningTopology, name: str, as_json: bool) -> None:
    """The link as it is after a change."""
    now = next(now for now in read_links(running) if now.link.name == name)
    if as_json:
        print(json.dumps(_as_json(now), indent=1))
        return
    for way in now.ways:
        row = dict(zip(("port", "delay", "rate", "loss", "BER", "bursts", "now"), _row(way)[2:], strict=True))
        said = ", ".join(f"{key} {value}" for key, value in row.items() if value not in ("-", "0", "any", "up"))
        _out.print(f"{way.source} to {way.target}: {said or 'nothing but a line'}", markup=False, soft_wrap=True)


@app.command("spike")
def spike(
    name: Name,
    duration: Annotated[str, typer.Argument(help="How long, such as 5s (at most 600s).")],
    direction: Way = "both",
    blocks: Annotated[
        str,
        typer.Option(help="delivery: then all comes at once; line: nothing starts on it, packets wait in its queue."),
    ] = "delivery",
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """A delay spike: let nothing pass for so long; no packet is lost by it."""

    def work() -> None:
        running, link, way = _find(state, name, direction)
        if blocks not in SPIKE_BLOCKS:
            raise RunningError("bad_input", f"blocks {blocks!r} is not known; allowed: {', '.join(SPIKE_BLOCKS)}")
        spike_link(running, link, way, parse_time_us(duration, "duration"), cast(SpikeBlocks, blocks))
        _print_link(running, name, as_json)

    _run(as_json, work)


@app.command("outage")
def outage(
    name: Name,
    duration: Annotated[str, typer.Argument(help="How long, such as 500ms (at most 600s).")],
    direction: Way = "both",
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """An outage: lose everything that enters the link for so long."""

    def work() -> None:
        running, link, way = _find(state, name, direction)
        cut_link(running, link, way, parse_time_us(duration, "duration"))
        _print_link(running, name, as_json)

    _run(as_json, work)
