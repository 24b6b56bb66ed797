# SPDX-License-Identifier: Apache-2.0
"""What a change of a link does, to the wire and to the switch ports at its ends, and how it is made in a running topology: all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state.run_state import LinkEnd, LinkState, RunState, remember_port

from fairlane_switch.bmv2 import check_rate, queue_rate, run_cli
from fairlane_switch.link_presets import WAYS as WAYS
from fairlane_switch.link_presets import Preset, Way
from fairlane_switch.link_series import Series
from fairlane_switch.port_control import PortCounts, read_ports, set_port, spike_port
from fairlane_switch.wire import Direction, SpikeBlocks, WireClient


class Ends(Protocol):
    """A link as far as a change goes by it."""

    @property
    def name(self) -> str: ...
    @property
    def a(self) -> LinkEnd: ...
    @property
    def b(self) -> LinkEnd: ...


class Ports(Protocol):
    """The switch ports of a running topology. All raise RuntimeError or FairlaneError."""

    def rate_bps(self, end: LinkEnd) -> int:
        """The rate of a port; 0: unlimited."""
        ...

    def set_rate(self, end: LinkEnd, rate_bps: int) -> None:
        """Change it; the run state, which the control plane goes by, has it too."""
        ...

    def spike(self, end: LinkEnd, duration_us: float) -> None:
        """Let nothing start on the port's line for so long."""
        ...


@dataclass(frozen=True)
class Change:
    """What happens to a link at an instant."""

    direction: Direction = "both"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """New values of `LinkOptions`, the rate left aside."""
    preset: Preset | None = None
    """All settings of a kind of link, as far as `settings` has no others."""
    rate_bps: int | None = None
    """Of what sends into the link: a switch's port, or the wire's own where a host sends."""
    spike_us: float = 0
    """A delay spike of so long …"""
    spike_blocks: SpikeBlocks = "delivery"
    """… and what it blocks; `line`: that of what sends into the link."""
    outage_us: float = 0


@dataclass(frozen=True)
class Effects:
    """What a change does, by place."""

    settings: dict[Way, dict[str, Any]]
    """Of the wire, those that are new."""
    ports: tuple[LinkEnd, ...]
    """Those that get its rate."""
    wire_spikes: tuple[Direction, ...]
    port_spikes: tuple[LinkEnd, ...]
    is_outage: bool

    @property
    def wire(self) -> list[tuple[Direction, dict[str, Any]]]:
        """(direction, new settings): once for both where they are the same."""
        forth, back = (self.settings.get(way) for way in WAYS)
        found: dict[Direction, dict[str, Any]] = {"both": forth} if forth and forth == back else {**self.settings}
        return [(direction, settings) for direction, settings in found.items() if settings]

    @property
    def needs_wire(self) -> bool:
        """Whether a bare veth pair could not do it."""
        return bool(self.wire or self.wire_spikes or self.is_outage)


def senders(link: Ends, direction: Direction) -> dict[Way, LinkEnd]:
    """The directions that are meant, with the end that sends in each."""
    ends: dict[Way, LinkEnd] = {"a_to_b": link.a, "b_to_a": link.b}
    return {way: end for way, end in ends.items() if direction in (way, "both")}


def effects(change: Change, link: Ends) -> Effects:
    """What a change does to the wire and to the switch ports at the ends of its link."""
    ends, rate_bps = senders(link, change.direction), change.rate_bps
    of_wire = {} if rate_bps is None else {"rate_bps": rate_bps}
    by_port = [end for end in ends.values() if change.spike_us and change.spike_blocks == "line" and end.port]
    spiked: list[Direction] = [way for way, end in ends.items() if change.spike_us and end not in by_port]

    def of(way: Way, end: LinkEnd) -> dict[str, Any]:
        preset = dict(change.preset.options(way)) if change.preset else {}
        if end.port == 0:
            preset.pop("rate_bps", None)
        return {**preset, **change.settings, **({} if end.port else of_wire)}

    return Effects(
        settings={way: of(way, end) for way, end in ends.items()},
        ports=tuple(end for end in ends.values() if end.port and rate_bps is not None),
        wire_spikes=("both",) if len(spiked) == 2 else tuple(spiked),
        port_spikes=tuple(by_port),
        is_outage=change.outage_us > 0,
    )


def spike_problem(way: Way, settings: Mapping[str, Any]) -> str | None:
    """Why a spike at a switch's port does not block the line of a direction; None where it does."""
    return f"the queue before the wire's own rate ({way}) would go on" if settings.get("rate_bps") else None


def make_change(change: Change, link: Ends, wire: Path, ports: Ports) -> Effects:
    """Make a change now; what of it was done is taken back where the rest is refused, but for spikes and outages.

    Args:
        change: what is to happen.
        link: to this link.
        wire: control socket of the process that has the links.
        ports: the switches' ports.

    Returns:
        What it did.

    Raises:
        RuntimeError, FairlaneError: with the words of wire or switch.
    """
    todo = effects(change, link)
    with ExitStack() as open_sockets, ExitStack() as undo:
        for end in todo.port_spikes:
            ports.spike(end, change.spike_us)
        if todo.needs_wire:
            client = open_sockets.enter_context(WireClient(wire))
            told = read_wire(client)[link.name] if todo.wire else {}
            for direction, values in todo.wire:
                client.set(link.name, direction=direction, **values)
                for way in senders(link, direction):
                    before = {key: told[way].get(key) for key in values}
                    undo.callback(_quietly, client.set, link.name, direction=way, **before)
            for way in todo.wire_spikes:
                client.spike(link.name, change.spike_us, direction=way, blocks=change.spike_blocks)
            if change.outage_us:
                client.outage(link.name, change.outage_us, direction=change.direction)
        for end in todo.ports:
            undo.callback(_quietly, ports.set_rate, end, ports.rate_bps(end))
            ports.set_rate(end, change.rate_bps or 0)
        undo.pop_all()
    return todo


def _quietly(work: Callable[..., None], *arguments: Any, **named: Any) -> None:
    with suppress(RuntimeError, FairlaneError):
        work(*arguments, **named)


def read_wire(client: WireClient) -> dict[str, dict[str, Any]]:
    """What the wire says of its links, by name: settings by direction, and `a_to_b_state`."""
    return {entry["name"]: entry for entry in client.request({"op": "get"})["links"]}


class RunningPorts:
    """The ports of a running topology, by its run state."""

    def __init__(self, run: RunState) -> None:
        self._run = run

    def rates_bps(self) -> dict[LinkEnd, int]:
        """Of all ports; on a target that cannot be asked, as the run state has them."""
        if self._run.target != "embedded":
            rates = ((switch, port.port, int(port.rate_bps)) for switch in self._run.switches for port in switch.ports)
        else:
            asked = ((switch, read_ports(switch.control)) for switch in self._run.switches)
            rates = ((switch, port.port, _rate_bps(port)) for switch, found in asked for port in found)
        return {LinkEnd(switch.name, port): rate_bps for switch, port, rate_bps in rates}

    def rate_bps(self, end: LinkEnd) -> int:
        """The rate of a port; 0: unlimited."""
        return self.rates_bps()[end]

    def set_rate(self, end: LinkEnd, rate_bps: int) -> None:
        """Change it, in the run state too. On BMv2 it is in packets per second: right for one frame length only."""
        switch = self._run.switch(end.node)
        if switch.thrift is not None:
            check_rate(end.node, rate_bps)
            run_cli(switch.thrift, queue_rate(end.port, rate_bps, switch.frame_bytes))
        else:
            set_port(switch.control, end.port, rate_bps=rate_bps)
        form = rate_bps.form if isinstance(rate_bps, Series) else None
        remember_port(self._run.folder, end.node, end.port, {"rate_bps": rate_bps, "rate_follows": form})

    def spike(self, end: LinkEnd, duration_us: float) -> None:
        """Let nothing start on the port's line for so long."""
        if self._run.target != "embedded":
            why = f'port {end.port} of {self._run.target} cannot be stopped for a time; a spike may block "delivery"'
            raise RuntimeError(f"{end.node}: {why}")
        spike_port(self._run.switch(end.node).control, end.port, duration_us)


def _rate_bps(port: PortCounts) -> int:
    return port.rate_bps if port.rate_form is None else cast(int, Series(port.rate_bps, port.rate_form))


def read_links(run: RunState) -> list[dict[str, Any]]:
    """All links as they are now, in the order of the topology file, as `fairlane link list --json` prints them: `settings` is None for a bare
    veth pair, `port_rate_bps` where a host sends, and 0 unlimited. Raises FairlaneError.
    """
    rates, told = RunningPorts(run).rates_bps(), dict[str, Any]()
    if any(link.emulated for link in run.links):
        with WireClient(run.wire) as client:
            told = read_wire(client)

    def now(link: LinkState, way: Way, source: LinkEnd) -> dict[str, Any]:
        entry = told.get(link.name, {})
        left = {"spike_left_us": 0, "outage_left_us": 0, "present": {}} | entry.get(f"{way}_state", {})
        target = link.b if way == "a_to_b" else link.a
        place = {"from": str(source), "to": str(target), "port_rate_bps": rates.get(source)}
        return {**place, "settings": entry.get(way), **left}

    return [
        link.model_dump(include={"name", "emulated", "preset"})
        | {way: now(link, way, end) for way, end in senders(link, "both").items()}
        for link in run.links
    ]


def read_link(run: RunState, name: str) -> dict[str, Any]:
    """One of them. Raises FairlaneError."""
    return next(now for now in read_links(run) if now["name"] == name)


def change_link(run: RunState, link: LinkState, change: Change) -> None:
    """Make a change in a topology that another process has started. Raises FairlaneError."""
    todo = effects(change, link)
    if todo.ports and run.target != "embedded":
        raise ErrorCode.REFUSED(f"the rate of a port of {run.target} is not set by this command")
    if todo.port_spikes:
        now, ends = read_link(run, link.name), senders(link, change.direction).items()
        whys = [spike_problem(way, now[way]["settings"] or {}) for way, end in ends if end in todo.port_spikes]
        if run.target != "embedded":
            whys = [f"a port of {run.target} cannot be stopped for a time"]
        if why := next(filter(None, whys), None):
            raise ErrorCode.REFUSED(f"{why}; allowed: --blocks delivery")
    if todo.needs_wire and not link.emulated:
        allowed = 'give it a delay or "emulated": true in the topology file to change it'
        raise ErrorCode.REFUSED(f"{link.name} is a bare veth pair: {allowed}")
    make_change(change, link, run.wire, RunningPorts(run))
