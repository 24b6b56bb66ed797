# SPDX-License-Identifier: Apache-2.0
"""Links of a running topology: what they are now, and changes by command, of the wire and of the switch ports at their ends, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from fairlane_controller.errors import ErrorCode, FairlaneError

from fairlane_switch.port_control import PortControlError, read_ports, set_port, spike_port
from fairlane_switch.running import LinkEnd, RunningError, RunningLink, RunningTopology
from fairlane_switch.wire import (
    Direction,
    LinkOptions,
    LinkStats,
    SpikeBlocks,
    WireClient,
    WireError,
    WireUnreachableError,
)

WAYS: tuple[Direction, Direction] = ("a_to_b", "b_to_a")
DIRECTIONS: tuple[str, ...] = get_args(Direction)
SPIKE_BLOCKS: tuple[str, ...] = get_args(SpikeBlocks)
RATE_BPS_MAX = 400_000_000_000


@dataclass(frozen=True)
class WayNow:
    """One direction of a link as it is now."""

    source: LinkEnd
    target: LinkEnd
    port_rate_bps: int | None
    """Of the switch port that sends into it; 0: unlimited, None: a host sends into it."""
    options: LinkOptions | None
    """None: a bare veth pair."""
    spike_left_us: float = 0
    outage_left_us: float = 0


@dataclass(frozen=True)
class LinkNow:
    """A link as it is now."""

    link: RunningLink
    ways: tuple[WayNow, WayNow]


def _failed(error: Exception) -> RunningError:
    gone = isinstance(error, WireUnreachableError) or str(error).startswith("no switch answers")
    return RunningError(ErrorCode.SWITCH_UNREACHABLE.value if gone else "refused", str(error))


def read_links(running: RunningTopology) -> list[LinkNow]:
    """All links, in the order of the topology file. Raises RunningError."""
    rates = _port_rates(running)
    told: dict[str, dict[str, Any]] = {}
    if any(link.emulated for link in running.links):
        try:
            with WireClient(running.wire) as wire:
                told = {entry["name"]: entry for entry in wire.request({"op": "get"})["links"]}
        except (WireError, WireUnreachableError) as error:
            raise _failed(error) from error
    return [LinkNow(link, _ways(link, told.get(link.name), rates)) for link in running.links]


def _ways(
    link: RunningLink, told: dict[str, Any] | None, rates: Mapping[tuple[str, int], int]
) -> tuple[WayNow, WayNow]:
    def one(way: str, source: LinkEnd, target: LinkEnd) -> WayNow:
        rate_bps = rates.get((source.node, source.port)) if source.port else None
        if told is None:
            return WayNow(source, target, rate_bps, None)
        left = told[f"{way}_state"]
        options = LinkOptions(**told[way])
        return WayNow(source, target, rate_bps, options, left["spike_left_us"], left["outage_left_us"])

    return one("a_to_b", link.a, link.b), one("b_to_a", link.b, link.a)


def _port_rates(running: RunningTopology) -> dict[tuple[str, int], int]:
    """Of all switch ports; on a target that cannot be asked, as it was started."""
    if running.target != "embedded":
        return running.port_rates
    try:
        return {
            (switch, port.port): port.rate_bps for switch, path in running.switches.items() for port in read_ports(path)
        }
    except PortControlError as error:
        raise _failed(error) from error


def read_stats(running: RunningTopology, link: RunningLink) -> LinkStats | None:
    """Counts of a link; None for one without the wire. Raises RunningError."""
    if not link.emulated:
        return None
    try:
        with WireClient(running.wire) as wire:
            return wire.stats()[link.name]
    except (WireError, WireUnreachableError) as error:
        raise _failed(error) from error


def _ends(link: RunningLink, direction: str) -> list[tuple[Direction, LinkEnd]]:
    """(way, the end that sends into it) of the directions that are meant."""
    return [(way, link.a if way == "a_to_b" else link.b) for way in WAYS if direction in (way, "both")]


def need_wire(link: RunningLink) -> None:
    """Raises RunningError when there is only a veth pair."""
    if not link.emulated:
        raise RunningError(
            "refused",
            f'{link.name} is a bare veth pair: give it a delay or "emulated": true in the topology file to change it',
        )


def change_link(
    running: RunningTopology, link: RunningLink, direction: str, settings: Mapping[str, Any], rate_bps: int | None
) -> None:
    """Change settings of the wire and the rate of what sends into the link: all of it, or nothing. Raises RunningError.

    The run state has the new rates too, as `fairlane ports set` does it.
    """
    if rate_bps is not None and not 1_000 <= rate_bps <= RATE_BPS_MAX and rate_bps != 0:
        raise RunningError(
            "out_of_range", f"rate {rate_bps} bit/s is out of range; allowed: 1000 to {RATE_BPS_MAX}, or 0 (unlimited)"
        )
    by_way = {way: dict(settings) for way, _ in _ends(link, direction)}
    ports: list[LinkEnd] = []
    if rate_bps is not None:
        for way, end in _ends(link, direction):
            if end.port:
                ports.append(end)
            else:
                by_way[way]["rate_bps"] = rate_bps
    if ports and running.target != "embedded":
        raise RunningError("refused", f"the rate of a port of {running.target} is not set by this command")
    by_way = {way: values for way, values in by_way.items() if values}
    if by_way:
        need_wire(link)
    before = _port_rates(running) if ports else {}
    try:
        undo = _set_wire(running, link, by_way)
        done: list[LinkEnd] = []
        try:
            for end in ports:
                set_port(running.switches[end.node], end.port, rate_bps=rate_bps)
                done.append(end)
            for end in ports:
                _remember(running, end, rate_bps or 0)
        except (PortControlError, FairlaneError):
            for end in done:
                with suppress(PortControlError):
                    set_port(running.switches[end.node], end.port, rate_bps=before[end.node, end.port])
                with suppress(FairlaneError):
                    _remember(running, end, before[end.node, end.port])
            with suppress(WireError, WireUnreachableError):
                _set_wire(running, link, undo)
            raise
    except FairlaneError as error:
        raise RunningError(error.code.value, error.message) from error
    except (WireError, WireUnreachableError, PortControlError) as error:
        raise _failed(error) from error


def _remember(running: RunningTopology, end: LinkEnd, rate_bps: int) -> None:
    """Put a port's new rate into the run state, which the control plane goes by. Raises FairlaneError."""
    from fairlane_controller.state.run_state import remember_port

    remember_port(running.folder, end.node, end.port, {"rate_bps": rate_bps})


def _set_wire(
    running: RunningTopology, link: RunningLink, by_way: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Set each direction; the first refusal puts the other one back. Returns what was there before."""
    if not by_way:
        return {}
    with WireClient(running.wire) as wire:
        told = next(entry for entry in wire.request({"op": "get"})["links"] if entry["name"] == link.name)
        before = {way: {key: told[way].get(key) for key in values} for way, values in by_way.items()}
        done: list[str] = []
        try:
            for way, values in by_way.items():
                wire.request({"op": "set", "link": link.name, "direction": way, **values})
                done.append(way)
        except WireError:
            for way in done:
                wire.request({"op": "set", "link": link.name, "direction": way, **before[way]})
            raise
    return before


def spike_link(
    running: RunningTopology, link: RunningLink, direction: Direction, duration_us: float, blocks: SpikeBlocks
) -> None:
    """A delay spike. One that blocks the line stops the switch's port, or the wire's line where a host sends. Raises RunningError."""
    if blocks == "delivery":
        _ask_wire(running, link, lambda wire: wire.spike(link.name, duration_us, direction=direction))
        return
    ends = _ends(link, direction)
    now = next(now for now in read_links(running) if now.link.name == link.name)
    for way, end in ends:
        options = now.ways[WAYS.index(way)].options
        why = None
        if end.port and running.target != "embedded":
            why = f"a port of {running.target} cannot be stopped for a time"
        elif end.port and options is not None and (options.rate_bps or options.trace):
            why = f"the queue before the wire's own rate or trace ({way}) would go on"
        if why is not None:
            raise RunningError("refused", f"{why}; allowed: --blocks delivery")
    for way, end in ends:
        if not end.port:
            _ask_wire(
                running, link, lambda wire, way=way: wire.spike(link.name, duration_us, direction=way, blocks=blocks)
            )
            continue
        try:
            spike_port(running.switches[end.node], end.port, duration_us)
        except PortControlError as error:
            raise _failed(error) from error


def cut_link(running: RunningTopology, link: RunningLink, direction: Direction, duration_us: float) -> None:
    """An outage. Raises RunningError."""
    _ask_wire(running, link, lambda wire: wire.outage(link.name, duration_us, direction=direction))


def _ask_wire(running: RunningTopology, link: RunningLink, ask: Callable[[WireClient], None]) -> None:
    need_wire(link)
    try:
        with WireClient(running.wire) as wire:
            ask(wire)
    except (WireError, WireUnreachableError) as error:
        raise _failed(error) from error
